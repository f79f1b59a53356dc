"""Twenty thousand reviews, half of them right in form, against the served webhooks: no 5xx, no growth, no lie.

A failure names its seed and number: `FUZZ_SEED=7 pytest tests/serve/test_admission_fuzz.py` plays it again.
"""

from __future__ import annotations

import asyncio
import copy
import itertools
import json
import logging
import os
import random
import tracemalloc
from collections import Counter
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any, NamedTuple

import msgspec
import pytest

from admission_reviews import a_new_pod, a_review, patch_of, read_answer
from serve.plain_client import connect
from serve.test_extender import Noon
from serve.test_fuzz import ODD_VALUES, encode_oddly, mutate, spoiled
from wukong.admission.pod_validation import find_pod_problems
from wukong.api.core import Node, Pod, PriorityClass
from wukong.api.documents import without_nulls
from wukong.api.kinds import KINDS
from wukong.api.meta import ObjectMeta
from wukong.api.placement import ClusterPlacementPolicy, PlacementPolicy
from wukong.app.components.admission.server import Reviewers
from wukong.embedded.store.patch.json_patch import apply_json_patch
from wukong.placement.rules import BUILT_IN
from wukong.replies.admission.own_kinds import KindAdmission
from wukong.replies.admission.pods import PodAdmission
from wukong.runtime.metrics import AdmissionMetrics, Metrics
from wukong.serve.admission.server import build_admission_app
from wukong.serve.site import serve
from wukong.state import State

REQUESTS = 20_000
SETTLED = 17_000  # from here on memory is compared
GROWTH_BYTES = 2_000_000  # decisions and cached patches, both bounded
SEED = int(os.environ.get("FUZZ_SEED", "20261116"))
ODD_NAMES = ["", "名前", "a" * 300, "new\nline", "🐒", "-", "x/y", "\u2028"]
AFFINITY: dict[str, Any] = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]}]
        },
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 5, "preference": {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}}
        ],
    },
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
        ]
    },
}
RULES: list[dict[str, Any]] = [
    {"capacity": {"strategy": "spot-preferred", "onDemandBase": 2, "spotPercent": 60, "fallback": "Wait"}},
    {"capacity": {"strategy": "spot-only"}, "versionAntiAffinity": {"required": True}},
    {"critical": True, "scheduling": {"tolerations": [{"key": "team", "operator": "Exists"}]}},
    {
        "priority": {"className": "gold"},
        "scheduling": {"nodeAffinity": {"required": [{"matchExpressions": [{"key": "gpu", "operator": "Exists"}]}]}},
    },
]
APPS = ["web", "db", "job", "cache"]
CHANGED = {"affinity", "tolerations", "topologySpreadConstraints", "priorityClassName", "priority", "preemptionPolicy"}


def some_reviewers() -> Reviewers:
    """The real ones, with a policy for each app, and nodes of both sorts."""
    state, numbers = State(), itertools.count()
    for number, (app, spec) in enumerate(zip(APPS, RULES, strict=True)):
        selector = {"selector": {"matchLabels": {"app": app}}}
        policy = {"metadata": {"name": app, "namespace": "shop"}, "spec": {**selector, **spec}}
        state.apply("ADDED", msgspec.convert(policy, PlacementPolicy))
        labels = {"karpenter.sh/capacity-type": "spot"} if number % 2 else {}
        state.apply("ADDED", Node(kind="Node", metadata=ObjectMeta(name=f"n{number}", labels=labels)))
    default = {"metadata": {"name": "default"}, "spec": {"capacity": {"strategy": "on-demand-first"}}}
    state.apply("ADDED", msgspec.convert(default, ClusterPlacementPolicy))
    state.apply("ADDED", PriorityClass(kind="PriorityClass", metadata=ObjectMeta(name="gold"), value=7))
    return Reviewers(PodAdmission(state, lambda: f"n{next(numbers)}"), KindAdmission(BUILT_IN))


class Request(NamedTuple):
    webhook: str
    sent: dict[str, Any]
    body: bytes
    is_valid: bool  # has to be answered with 200


def a_request(rng: random.Random) -> Request:
    webhook = rng.choice(["mutate", "mutate", "validate"])
    sent = a_random_review(rng, an_own_object(rng) if webhook == "validate" else a_random_pod(rng))
    if rng.random() < 0.5:
        return Request(webhook, sent, encode_oddly(rng, sent), True)
    if rng.random() < 0.6:
        for _ in range(rng.randint(1, 3)):
            mutate(rng, sent)
        return Request(webhook, sent, encode_oddly(rng, sent), False)
    return Request(webhook, sent, spoiled(rng, encode_oddly(rng, sent)), False)


def a_random_review(rng: random.Random, document: dict[str, Any]) -> dict[str, Any]:
    more: dict[str, Any] = {"uid": f"u-{rng.random()}"}
    if rng.random() < 0.2:
        more["operation"] = rng.choice(["UPDATE", "DELETE", "CONNECT", ""])
    if rng.random() < 0.1:
        more["subResource"] = rng.choice(["", "status", "exec"])
    if rng.random() < 0.2:
        more["dryRun"] = rng.choice([True, False, None])
    if rng.random() < 0.1:
        more["oldObject"] = copy.deepcopy(document)
    return a_review(document, **more)


def a_random_pod(rng: random.Random) -> dict[str, Any]:
    owner, namespace = rng.choice(["rs-1", "rs-2", ""]), rng.choice(["shop", "lab", "kube-system"])
    pod = a_new_pod(owner=owner, namespace=namespace)
    pod["metadata"]["labels"] = {"app": rng.choice([*APPS, *ODD_NAMES]), "pod-template-hash": "5d9f"}
    pod["spec"] |= {"affinity": copy.deepcopy(AFFINITY)} if rng.random() < 0.4 else {}
    pod["spec"] |= {"priorityClassName": rng.choice(["", "gold", "none"])} if rng.random() < 0.3 else {}
    if rng.random() < 0.2:
        values = {name: rng.choice(['{"policy":"x"}', "n1", ""]) for name in ("applied", "decision")}
        pod["metadata"]["annotations"] = {f"placement.novasphere.dev/{name}": value for name, value in values.items()}
    for part in ("metadata", "spec"):
        for field in list(pod[part]):
            if rng.random() < 0.05:
                pod[part][field] = None
    return pod


def an_own_object(rng: random.Random) -> dict[str, Any]:
    kind = rng.choice(["PlacementPolicy", "ClusterPlacementPolicy", "Wukong", "Pod"])
    meta = {"name": rng.choice(["web", *ODD_NAMES])}
    document = {"kind": kind, "apiVersion": KINDS.resource_named(kind).api_version, "metadata": meta}
    spec: Any = copy.deepcopy(rng.choice(RULES))
    if rng.random() < 0.5:
        mutate(rng, spec)
    if rng.random() < 0.1:
        spec = rng.choice(ODD_VALUES)
    return {**document, "spec": spec}


def check(request: Request, status: int, body: bytes) -> None:
    assert status in ((200,) if request.is_valid else (200, 400)), body
    if status != 200:
        assert json.loads(body)["error"]
        return
    uid = json.loads(body)["response"]["uid"]
    response = read_answer(body, uid)
    if not request.is_valid:
        return
    asked = request.sent["request"]
    assert uid == asked["uid"]
    if request.webhook == "mutate":
        assert response["allowed"] is True
        if patch := patch_of(response):
            check_patched(asked, patch)
    elif asked["operation"] not in ("CREATE", "UPDATE") or asked["kind"]["kind"] == "Pod":
        assert response["allowed"] is True


def check_patched(asked: dict[str, Any], patch: list[dict[str, Any]]) -> None:
    """It can be applied, what comes out is as valid as before, and nothing of the author's is gone."""
    assert asked["operation"] == "CREATE"
    assert asked["namespace"] != "kube-system"
    before = asked["object"]
    after = apply_json_patch(copy.deepcopy(before), patch)
    assert set(problems_of(after)) <= set(problems_of(before))
    names = {*before["spec"], *after["spec"]}
    assert {name for name in names if before["spec"].get(name) != after["spec"].get(name)} <= CHANGED
    assert (before["metadata"].get("annotations") or {}).keys() <= after["metadata"]["annotations"].keys()


def problems_of(pod: dict[str, Any]) -> list[str]:
    return find_pod_problems(msgspec.convert(without_nulls(pod), Pod))


@pytest.mark.slow
def test_no_review_breaks_the_webhooks(
    record_property: Callable[[str, object], None], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    statuses, results, growth = asyncio.run(play(random.Random(SEED)))
    assert [record.message for record in caplog.records] == []
    assert growth < GROWTH_BYTES
    assert results["failed"] == 0
    assert min(results[name] for name in ("patched", "unreadable", "denied", "accepted")) > 100
    counts = ", ".join(f"{count:,} × {status}" for status, count in sorted(statuses.items()))
    record_property("figure", f"webhook fuzz: {counts}; {growth / 1000:,.0f} kB kept after {REQUESTS:,} reviews")


async def play(rng: random.Random) -> tuple[Counter[int], Counter[str], int]:
    noon, statuses, before, metrics = Noon(), Counter[int](), 0, Metrics()
    app = build_admission_app(some_reviewers(), noon, AdmissionMetrics(metrics), noon)
    async with AsyncExitStack() as stack:
        port = await serve(stack, app, "127.0.0.1", 0)
        client = await stack.enter_async_context(connect(port))
        for number in range(REQUESTS):
            if number == SETTLED:
                tracemalloc.start()
                before = tracemalloc.get_traced_memory()[0]
            request = a_request(rng)
            answer = await client.post(f"/{request.webhook}", request.body)
            statuses[answer.status] += 1
            try:
                check(request, answer.status, answer.body)
            except Exception as error:
                raise AssertionError(f"seed {SEED}, review {number}: {request.webhook} {request.body!r}") from error
        growth = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
    (family,) = [metric for metric in metrics.registry.collect() if metric.name == "wukong_admission_requests"]
    totals = [sample for sample in family.samples if sample.name.endswith("_total")]
    results = Counter({sample.labels["result"]: int(sample.value) for sample in totals})
    return statuses, results, growth
