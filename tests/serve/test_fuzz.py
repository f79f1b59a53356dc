"""Twenty thousand requests, half of them right in form, against the served application: no 5xx, no growth, no lie.

A failure names its seed and number: `FUZZ_SEED=7 pytest tests/serve/test_fuzz.py` plays it again.
"""

from __future__ import annotations

import asyncio
import copy
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

from builders import a_usage
from serve.plain_client import connect
from serve.strict import check_filter, check_preempt, check_prioritize
from serve.test_extender import Noon
from wukong.api.core import Node
from wukong.api.placement import PlacementPolicy
from wukong.app.components.extender.server import CountingExtender
from wukong.replies.extender.verbs import Extender
from wukong.runtime.metrics import ExtenderMetrics, Metrics
from wukong.serve.extender.server import build_extender_app
from wukong.serve.site import serve
from wukong.state import State

REQUESTS = 20_000
SETTLED = 17_000  # from here on memory is compared; watching it makes everything twice as slow
GROWTH_BYTES = 360_000  # a hundred bytes a request would be 0.3 MB; counters and caches are far below
SEED = int(os.environ.get("FUZZ_SEED", "20261116"))

KNOWN = [f"node-{number:03}.example.com"[: 8 + number % 13] + f"-{number}" for number in range(60)]
ODD_NAMES = ["", "new-node", "名前", 'quo"te', "com,ma", "back\\slash", "new\nline", "\u2028", "a" * 300, "🐒"]
ODD_VALUES: list[Any] = [
    None, True, False, 0, -1, 1 << 62, 1 << 70, 0.5, 1e300, "", "x", "100m", "-5", [], {}, [None], {"a": None}, [[[]]],
]  # fmt: skip
POD: dict[str, Any] = {
    "metadata": {"name": "web-1", "namespace": "shop", "uid": "u", "labels": {"app": "web"}, "ownerReferences": None},
    "spec": {
        "containers": [{"name": "main", "image": "web:1", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}],
        "tolerations": [{"key": "spot", "operator": "Exists"}],
        "nodeSelector": {"disk": "ssd"},
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]}
        ]}}},
        "priority": 100,
    },
    "status": {"phase": "Pending", "conditions": None},
}  # fmt: skip
NODE: dict[str, Any] = {
    "metadata": {"labels": {"karpenter.sh/capacity-type": "spot", "zone": "a"}, "annotations": {"x": 'é\\"'}},
    "spec": {"taints": [{"key": "spot", "effect": "NoSchedule"}]},
    "status": {"allocatable": {"cpu": "4", "memory": "16Gi"}, "images": [{"names": ["a"], "sizeBytes": 1}]},
}
ENCODED_POD, ENCODED_NODE = msgspec.json.encode(POD), msgspec.json.encode(NODE)
POLICY: dict[str, Any] = {
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {
        "capacity": {"strategy": "spot-first"},
        "scheduling": {
            "resourceAffinity": {
                "preferredCPU": {"weight": 50, "threshold": "70%"},
                "requiredResources": [{"resourceType": "memory", "minAvailable": "1Gi"}],
            },
            "schedulingPolicy": {
                "rules": [
                    {"name": "cost-aware", "type": "score", "config": {"costFactor": 0.5}},
                    {"name": "label-match", "type": "filter", "config": {"matchLabels": {"zone": "a"}}},
                ]
            },
        },
    },
}


def an_extender(now: float) -> Extender:
    """The real one; of its nodes some are spot, some in another zone, some leave."""
    state = State()
    for number, name in enumerate(KNOWN):
        labels = {"karpenter.sh/capacity-type": "spot" if number % 3 else "on-demand", "zone": "ab"[number % 5 == 0]}
        taints = [{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}] if number % 7 == 0 else []
        node = {**NODE, "metadata": {"name": name, "labels": labels}, "spec": {"taints": taints}}
        state.apply("ADDED", msgspec.convert(node, Node))
        state.apply("ADDED", a_usage(name, now, cpu=number * 1.5, memory=50.0))
    state.apply("ADDED", msgspec.convert(POLICY, PlacementPolicy))
    return Extender(state)


class Request(NamedTuple):
    verb: str
    sent: dict[str, Any]
    body: bytes
    is_valid: bool  # has to be answered with 200


def a_request(rng: random.Random) -> Request:
    verb = rng.choice(["filter", "prioritize", "preempt"])
    sent = a_preemption(rng) if verb == "preempt" else an_offer(rng)
    if rng.random() < 0.5:
        return Request(verb, sent, encode_oddly(rng, sent), True)
    if rng.random() < 0.6:
        for _ in range(rng.randint(1, 3)):
            mutate(rng, sent)
        return Request(verb, sent, encode_oddly(rng, sent), False)
    return Request(verb, sent, spoiled(rng, encode_oddly(rng, sent)), False)


def an_offer(rng: random.Random) -> dict[str, Any]:
    names = [a_name(rng) for _ in range(rng.choice([0, 1, 2, 5, 20]))]
    key = str.lower if rng.random() < 0.5 else str
    if rng.random() < 0.5:
        return {key("Pod"): a_pod(rng), key("Nodes"): None, key("NodeNames"): names}
    items = [a_node(rng, name) for name in names] or (None if rng.random() < 0.5 else [])
    return {key("Pod"): a_pod(rng), key("Nodes"): {"metadata": {}, "items": items}, key("NodeNames"): None}


def a_preemption(rng: random.Random) -> dict[str, Any]:
    names = sorted({a_name(rng) for _ in range(rng.choice([0, 1, 3]))})
    if rng.random() < 0.5:
        meta = {name: {"Pods": [{"UID": f"u{rng.random()}"}], "NumPDBViolations": rng.randint(0, 3)} for name in names}
        return {"Pod": a_pod(rng), "NodeNameToVictims": None, "NodeNameToMetaVictims": meta}
    return {"Pod": a_pod(rng), "NodeNameToVictims": {name: {"Pods": [a_pod(rng)]} for name in names}}


def a_name(rng: random.Random) -> str:
    return rng.choice(ODD_NAMES) if rng.random() < 0.1 else rng.choice(KNOWN)


def a_pod(rng: random.Random) -> dict[str, Any]:
    pod: dict[str, Any] = msgspec.json.decode(ENCODED_POD)  # ten times as fast as a deep copy
    pod["metadata"]["name"] = rng.choice(["web-1", "any-1", "名前"])
    for part in ("spec", "status"):
        for field in list(pod[part]):
            if rng.random() < 0.2:
                pod[part][field] = None
    return pod


def a_node(rng: random.Random, name: str) -> dict[str, Any]:
    node: dict[str, Any] = msgspec.json.decode(ENCODED_NODE)
    first = {"kind": "Node", "apiVersion": "v1"} if rng.random() < 0.3 else {}
    return {**first, **node, "metadata": {"name": name, **node["metadata"]}}


def mutate(rng: random.Random, value: Any) -> None:
    """Something odd somewhere below."""
    while True:
        keys: list[Any] = list(value) if isinstance(value, dict) else list(range(len(value)))
        if not keys:
            return
        key = rng.choice(keys)
        if isinstance(value[key], dict | list) and rng.random() < 0.8:
            value = value[key]
            continue
        if isinstance(value, dict) and rng.random() < 0.3:
            del value[key]
        else:
            value[key] = copy.deepcopy(rng.choice(ODD_VALUES))
        return


def encode_oddly(rng: random.Random, sent: Any) -> bytes:
    separators = rng.choice([(",", ":"), (",", ":"), None])
    return json.dumps(sent, separators=separators, ensure_ascii=rng.random() < 0.5).encode()


def spoiled(rng: random.Random, body: bytes) -> bytes:
    at, length = rng.randrange(len(body)), rng.randrange(1, 9)
    ways: list[Callable[[], bytes]] = [
        lambda: body[:at],
        lambda: body[:at] + rng.randbytes(length) + body[at + length :],
        lambda: body[:at] + rng.choice([b"[", b"{", b"]", b"\\", b'"', b",", b"\0"]) + body[at:],
        lambda: rng.randbytes(rng.choice([0, 1, 10, 1000])),
        lambda: b'{"Pod":' + rng.choice([b"[", b'{"a":']) * rng.choice([100, 900, 5000]),
        lambda: body.replace(b"100", b"9" * rng.choice([20, 400, 5000])),
        lambda: body.replace(b'"u"', rng.choice([b'"\\ud800"', b'"\\u0000"', b'"\xff"', b"1e999"])),
    ]
    return rng.choice(ways)()


def check(request: Request, status: int, body: bytes) -> None:
    assert status in ((200,) if request.is_valid else (200, 400)), body
    if status != 200:
        assert json.loads(body)["error"]
    elif request.is_valid:
        checks: dict[str, Callable[[dict[str, Any], bytes], object]] = {
            "filter": check_filter,
            "prioritize": check_prioritize,
            "preempt": check_preempt,
        }
        checks[request.verb](request.sent, body)


@pytest.mark.slow
def test_no_request_breaks_the_extender(
    record_property: Callable[[str, object], None], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    statuses, growth = asyncio.run(play(random.Random(SEED)))
    assert [record.message for record in caplog.records] == []
    assert growth < GROWTH_BYTES
    counts = ", ".join(f"{count:,} × {status}" for status, count in sorted(statuses.items()))
    record_property("figure", f"extender fuzz: {counts}; {growth / 1000:,.0f} kB kept after {REQUESTS:,} requests")


async def play(rng: random.Random) -> tuple[Counter[int], int]:
    noon, statuses, before = Noon(), Counter[int](), 0
    metrics = Metrics()
    app = build_extender_app(
        CountingExtender(an_extender(noon.now()), metrics, noon), noon, ExtenderMetrics(metrics), noon
    )
    async with AsyncExitStack() as stack:
        port = await serve(stack, app, "127.0.0.1", 0)
        client = await stack.enter_async_context(connect(port))
        for number in range(REQUESTS):
            if number == SETTLED:
                tracemalloc.start()
                before = tracemalloc.get_traced_memory()[0]
            request = a_request(rng)
            answer = await client.post(f"/{request.verb}", request.body)
            statuses[answer.status] += 1
            try:
                check(request, answer.status, answer.body)
            except AssertionError as error:
                raise AssertionError(f"seed {SEED}, request {number}: {request.verb} {request.body!r}") from error
        growth = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
    return statuses, growth
