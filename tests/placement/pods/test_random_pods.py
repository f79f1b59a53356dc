"""Properties of what is built, over many made-up pods and policies."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec
import pytest

from builders import a_node
from random_pods import CLASSES, random_node_labels, random_pod, random_pod_policy
from wukong.admission.pod_validation import find_pod_problems
from wukong.api.core import Node, NodeSelector, Pod, PriorityClass
from wukong.api.meta import ObjectMeta
from wukong.api.placement import PlacementPolicy
from wukong.placement.capacity import SPOT_LABELS
from wukong.placement.compile import Plan, compile_policy, find_policy_problems
from wukong.placement.free_labels import free_amount
from wukong.placement.limits import MOST_NODE_TERMS
from wukong.placement.pods import MARK, ON_DEMAND, SPOT, PodChange, build_pod
from wukong.placement.rules import BUILT_IN
from wukong.ports import Document
from wukong.semantics.node_selectors import accepts_node, allows_node, compile_node_selector

SEEDS = range(400)
CAPACITIES = ("", SPOT, ON_DEMAND)
PRIORITY_CLASSES = {
    name: PriorityClass(metadata=ObjectMeta(name=name), value=value, global_default=name == "usual")
    for name, value in CLASSES.items()
}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
LISTS = ("tolerations", "topologySpreadConstraints")
TOO_MANY = f"more than {MOST_NODE_TERMS}"


@cache
def plan_of(seed: int) -> Plan:
    return compile_policy(msgspec.convert(random_pod_policy(seed), PlacementPolicy), BUILT_IN)


def seeds_of(tens: int) -> range:
    return range(10 * tens, 10 * tens + 10)


def capacity_of(seed: int) -> str:
    return CAPACITIES[1 + seed % 2] if plan_of(seed).split is not None else ""


@cache
def change_of(seed: int) -> tuple[Document, PodChange]:
    pod = random_pod(seed)
    return pod, build_pod(pod, plan_of(seed), capacity_of(seed), PRIORITY_CLASSES)


@cache
def nodes() -> list[Node]:
    return [a_node(f"node-{seed}", labels=random_node_labels(seed)) for seed in range(60)]


def typed(document: Document) -> Pod:
    return msgspec.convert(document, Pod)


def terms_of(document: Document) -> list[Document]:
    affinity = document["spec"].get("affinity", {}).get("nodeAffinity", {})
    terms: list[Document] = affinity.get(REQUIRED, {}).get("nodeSelectorTerms", [])
    return terms


def lists_of(document: Document) -> Iterator[tuple[str, list[Any]]]:
    """The lists to which something may be appended, but for required node terms."""
    spec = document["spec"]
    yield from ((name, spec.get(name, [])) for name in LISTS)
    affinity = spec.get("affinity", {})
    for kind, how in (
        ("nodeAffinity", PREFERRED),
        ("podAffinity", REQUIRED),
        ("podAffinity", PREFERRED),
        ("podAntiAffinity", REQUIRED),
        ("podAntiAffinity", PREFERRED),
    ):
        yield f"{kind}.{how}", affinity.get(kind, {}).get(how, [])


def test_none_of_the_policies_has_a_problem_and_none_of_the_pods_either() -> None:
    policies = [msgspec.convert(random_pod_policy(seed), PlacementPolicy) for seed in SEEDS]
    assert [problem for policy in policies for problem in find_policy_problems(policy, BUILT_IN)] == []
    assert [problem for seed in SEEDS for problem in find_pod_problems(typed(random_pod(seed)))] == []


def test_they_are_of_every_sort() -> None:
    """Against properties that hold because nothing happens."""
    changes = [change_of(seed)[1] for seed in SEEDS]
    reasons = {reason.partition(":")[0] for change in changes for reason in change.skipped}
    assert {"nodeAffinity", "priority", "versionAntiAffinity", "nodes and capacity"} <= reasons
    assert not any(reason.startswith("the pod would be refused") for reason in reasons)
    assert sum(MARK in change.document["metadata"].get("annotations", {}) for change in changes) > 300


@pytest.mark.parametrize("tens", range(len(SEEDS) // 10))
def test_what_the_author_wrote_stays_to_the_letter(tens: int) -> None:
    for seed in seeds_of(tens):
        check_what_stays(seed)


def check_what_stays(seed: int) -> None:
    pod, change = change_of(seed)
    document = change.document
    for (name, before), (_, after) in zip(lists_of(pod), lists_of(document), strict=True):
        assert after[: len(before)] == before, name
    own_terms = terms_of(pod)
    for term in terms_of(document) if own_terms else ():
        origins = [
            own
            for own in own_terms
            if all(term.get(part, [])[: len(own.get(part, []))] == own.get(part, []) for part in own)
        ]
        assert origins, term
    ours = {"affinity", *LISTS, "priorityClassName", "priority", "preemptionPolicy"}
    assert {name: value for name, value in document["spec"].items() if name not in ours} == {
        name: value for name, value in pod["spec"].items() if name not in ours
    }
    metadata = {"annotations": {}, **document["metadata"]}
    metadata["annotations"] = {key: text for key, text in metadata["annotations"].items() if key != MARK}
    assert metadata == {"annotations": {}, **pod["metadata"]}
    assert {**document, "spec": 0, "metadata": 0} == {**pod, "spec": 0, "metadata": 0}


@pytest.mark.parametrize("tens", range(len(SEEDS) // 10))
def test_a_second_call_changes_nothing_and_the_first_did_not_change_the_pod(tens: int) -> None:
    for seed in seeds_of(tens):
        check_second_call(seed)


def check_second_call(seed: int) -> None:
    pod, change = change_of(seed)
    assert pod == random_pod(seed)
    again = build_pod(change.document, plan_of(seed), capacity_of(seed), PRIORITY_CLASSES)
    assert again.document is change.document
    others = [capacity for capacity in CAPACITIES if capacity != capacity_of(seed)]
    if plan_of(seed).split is not None and MARK in change.document["metadata"].get("annotations", {}):
        for other in others:  # whatever is decided later, what is marked stands
            is_daemon = "nodes and capacity: a DaemonSet's pod goes to its node" in change.skipped
            repeated = build_pod(change.document, plan_of(seed), other, PRIORITY_CLASSES)
            assert is_daemon or repeated.document is change.document


@pytest.mark.parametrize("tens", range(len(SEEDS) // 10))
def test_the_result_is_accepted(tens: int) -> None:
    for seed in seeds_of(tens):
        document = change_of(seed)[1].document
        assert find_pod_problems(typed(document)) == [], seed
        assert len(terms_of(document)) <= max(MOST_NODE_TERMS, len(terms_of(random_pod(seed)))), seed


def meets_policy(plan: Plan, capacity: str, node: Node) -> bool:
    """The plain reading of what a policy requires of nodes."""
    assert plan.spec is not None
    labels, name = node.metadata.labels, node.metadata.name
    is_spot = any(labels.get(label) in values for label, values in SPOT_LABELS.items())
    if (capacity == ON_DEMAND or plan.strategy == "on-demand-only") and is_spot:
        return False
    if (plan.strategy == "spot-only" or (capacity == SPOT and plan.waits_for_spot)) and not is_spot:
        return False
    scheduling = plan.spec.scheduling
    if scheduling is None:
        return True
    affinity, resources = scheduling.node_affinity, scheduling.resource_affinity
    if affinity is not None and affinity.required:
        terms = compile_node_selector(NodeSelector(node_selector_terms=affinity.required))
        if not accepts_node(terms, labels, name):
            return False
    for entry in resources.required_resources if resources is not None else ():
        free = labels.get(f"free.novasphere.dev/{entry.resource_type.replace('/', '_')}")
        if free is not None and int(free) < free_amount(entry.resource_type, entry.min_available):
            return False
    return True


@pytest.mark.slow
def test_a_node_is_accepted_exactly_if_author_and_policy_both_accept_it() -> None:
    wrong, compared = [], 0
    for seed in SEEDS[::2]:
        pod, change = change_of(seed)
        if any(TOO_MANY in reason or "DaemonSet" in reason for reason in change.skipped):
            continue
        before, after = typed(pod), typed(change.document)
        for node in nodes():
            expected = allows_node(before, node) and meets_policy(plan_of(seed), capacity_of(seed), node)
            compared += expected
            if allows_node(after, node) != expected:
                wrong.append((seed, node.metadata.name))
    assert wrong == []
    assert compared > 1000
