"""Pods of which the same is left get the same patch: random pairs of pods that differ in what their authors wrote."""

from __future__ import annotations

import copy
from random import Random

import msgspec
import pytest
from msgspec.json import encode

from placement.pods.test_random_pods import PREFERRED, PRIORITY_CLASSES, REQUIRED, SEEDS, capacity_of, plan_of
from random_pods import random_pod
from wukong.api.placement import PlacementPolicy
from wukong.placement.compile import Plan, compile_policy
from wukong.placement.pods import build_pod, find_pod_problem, shorten_pod
from wukong.placement.rules import BUILT_IN
from wukong.ports import Document
from wukong.replies.admission.json_patch import build_json_patch

TERMS = "nodeSelectorTerms"
STRANGE_TERMS: list[Document] = [
    {"matchExpressions": [{"key": "strange", "operator": "In", "values": ["a", "b"]}]},
    {"matchExpressions": []},
    {"matchExpressions": [{"key": "stranger", "operator": "Exists"}, {"key": "strange", "operator": "Exists"}]},
    {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-7"]}], "matchExpressions": []},
]
STRANGE_WISHES = [{"weight": weight, "preference": STRANGE_TERMS[0]} for weight in (1, 100)]
STRANGE_TOLERATIONS: list[Document] = [{"operator": "Exists"}, {"key": "strange", "operator": "Exists"}]


def test_pods_of_which_the_same_is_left_get_the_same_patch() -> None:
    counts = {True: 0, False: 0}
    for seed in SEEDS:
        plan, capacity, rng = plan_of(seed), capacity_of(seed), Random(seed)
        pod = random_pod(seed)
        pod["spec"]["priority"] = 0
        added = build_pod(pod, plan, capacity, PRIORITY_CLASSES).document
        first = vary(pod, added, rng, 1.0)
        second = vary(first, added, rng, 0.4)
        if first == second or find_pod_problem(first) or find_pod_problem(second):
            continue
        is_alike = encode(shorten_pod(first, plan)) == encode(shorten_pod(second, plan))
        counts[is_alike] += 1
        if is_alike:
            assert build_patch(first, plan, capacity) == build_patch(second, plan, capacity), (seed, first, second)
    assert min(counts.values()) > 50, counts


FAST: Document = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["fast"]}]}
ON_SSD: Document = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
PLAIN, EMPTY, TWICE, _ = STRANGE_TERMS


@pytest.mark.parametrize(
    ("policy", "one", "other", "is_alike"),
    [
        ({"scheduling": {"nodeAffinity": {"required": [FAST]}}}, [PLAIN], [TWICE], True),
        ({"scheduling": {"nodeAffinity": {"required": [FAST]}}}, [PLAIN], [PLAIN, TWICE], False),
        ({"scheduling": {"nodeAffinity": {"required": [FAST]}}}, [PLAIN], [FAST], False),  # which stays as it is
        ({"scheduling": {"nodeAffinity": {"required": [FAST]}}}, [PLAIN], [EMPTY], False),  # it matches no node
        ({"scheduling": {"nodeAffinity": {"required": [FAST, ON_SSD]}}}, [PLAIN], [TWICE], False),  # multiplied
        ({"capacity": {"strategy": "spot-only"}}, [PLAIN], [TWICE], False),  # by any of the labels
        ({"capacity": {"strategy": "on-demand-only"}}, [PLAIN], [TWICE], True),
    ],
)
def test_of_terms_it_counts_what_is_added_to_them(
    policy: Document, one: list[Document], other: list[Document], is_alike: bool
) -> None:
    document = {"metadata": {"name": "web"}, "spec": {"selector": {"matchLabels": {"app": "web"}}, **policy}}
    plan = compile_policy(msgspec.convert(document, PlacementPolicy), BUILT_IN)
    pods: list[Document] = [
        {"spec": {"affinity": {"nodeAffinity": {REQUIRED: {TERMS: terms}}}}} for terms in (one, other)
    ]
    assert (encode(shorten_pod(pods[0], plan)) == encode(shorten_pod(pods[1], plan))) is is_alike


def build_patch(pod: Document, plan: Plan, capacity: str) -> tuple[list[Document], tuple[str, ...], str]:
    change = build_pod(pod, plan, capacity, PRIORITY_CLASSES)
    return build_json_patch(pod, change.document), change.skipped, change.capacity


def vary(pod: Document, added: Document, rng: Random, share: float) -> Document:
    """The pod with other entries, in that share of the lists that authors write about nodes."""
    varied = copy.deepcopy(pod)
    spec, affinity = varied["spec"], varied["spec"].setdefault("affinity", {})
    spec["nodeSelector"] = {"pool": rng.choice("abc")}
    nodes = affinity.setdefault("nodeAffinity", {})
    added_nodes = added["spec"].get("affinity", {}).get("nodeAffinity", {})
    if rng.random() < share:
        draw(spec, "tolerations", [*STRANGE_TOLERATIONS, *added["spec"].get("tolerations", [])], rng)
    if rng.random() < share:
        draw(nodes, PREFERRED, [*STRANGE_WISHES, *added_nodes.get(PREFERRED, [])], rng)
    if rng.random() < share:
        nodes.pop(REQUIRED, None)
        terms: Document = {}
        draw(terms, TERMS, [*STRANGE_TERMS, *added_nodes.get(REQUIRED, {}).get(TERMS, [])], rng)
        nodes |= {REQUIRED: terms} if terms else {}
    return varied


def draw(document: Document, field: str, entries: list[Document], rng: Random) -> None:
    """One or two of the entries, the first two most often; now and then nothing."""
    document.pop(field, None)
    if rng.random() < 0.8:
        document[field] = [rng.choice(entries[: rng.choice((2, 2, 9))]) for _ in range(rng.choice((1, 1, 2)))]
