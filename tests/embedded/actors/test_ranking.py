"""Who leaves first when a ReplicaSet shrinks: one row for each of Kubernetes' criteria, in their order."""

from __future__ import annotations

from collections import Counter as Tally
from itertools import pairwise
from typing import Any

import pytest

from wukong.api.resources import Key
from wukong.embedded.actors.replica_set.ranking import DELETION_COST, DeletionRanking
from wukong.embedded.store.documents import format_time
from wukong.embedded.world import objects
from wukong.embedded.world.objects import Pod

NOW = 1_767_225_600.0


def a_pod(name: str, **traits: Any) -> Pod:
    """A healthy pod of an hour ago on a node of its own, but for its traits."""
    is_ready, ready_for = traits.get("ready", True), traits.get("ready_for", 3600)
    condition = {"type": "Ready", "status": str(is_ready), "lastTransitionTime": format_time(NOW - ready_for)}
    annotations = {DELETION_COST: traits["cost"]} if "cost" in traits else {}
    document = {
        "metadata": {
            "name": name,
            "namespace": "shop",
            "uid": traits.get("uid", name),
            "annotations": annotations,
            "creationTimestamp": format_time(NOW - traits.get("age", 3600)),
        },
        "spec": {"nodeName": traits.get("node", f"node-of-{name}"), "containers": []},
        "status": {
            "phase": traits.get("phase", "Running"),
            "conditions": [condition],
            "containerStatuses": [{"restartCount": traits.get("restarts", 0)}],
        },
    }
    pod = objects.read("Pod", document)
    assert isinstance(pod, Pod)
    return pod


def rank(*pods: Pod, beside: tuple[Pod, ...] = ()) -> list[str]:
    ranking = DeletionRanking()
    for pod in pods:
        ranking.put(Key("shop", pod.metadata.name), pod)
    related = Tally(pod.spec.node_name for pod in (*pods, *beside))
    return [pod.metadata.name for pod in ranking.choose_pods(len(pods), [related], NOW)]


# Each is to go before the next one, though in every later criterion the next one were the first to go.
CRITERIA: list[dict[str, Any]] = [
    {"node": ""},
    {"phase": "Pending"},
    {"phase": "Unknown"},
    {"ready": False},
    {"cost": "-1"},
    {"node": "crowded"},
    {"ready_for": 10},
    {"restarts": 3},
    {"age": 10},
]
WORST_LATER = {"cost": "-100", "node": "crowded", "ready_for": 2, "restarts": 9, "age": 2}


@pytest.mark.parametrize("number", range(len(CRITERIA)))
def test_an_earlier_criterion_outweighs_all_later_ones(number: int) -> None:
    (trait,) = CRITERIA[number]
    beside = (a_pod("other", node="crowded"), a_pod("another", node="crowded"))
    later = ["cost", "node", "ready_for", "restarts", "age"]
    worse = later[later.index(trait) + 1 :] if trait in later and number > 0 else later
    rival = a_pod("rival", **{name: WORST_LATER[name] for name in worse})
    assert rank(rival, a_pod("first", **CRITERIA[number]), beside=beside) == ["first", "rival"]


def test_the_criteria_are_in_kubernetes_order() -> None:
    in_order = [a_pod(str(number), **traits) for number, traits in enumerate(CRITERIA)]
    beside = (a_pod("other", node="crowded"),)
    for first, second in pairwise([*in_order, a_pod("healthy")]):
        assert rank(second, first, beside=beside) == [first.metadata.name, second.metadata.name]


@pytest.mark.parametrize(
    ("young", "old", "is_told_apart"),
    [(10, 3600, True), (3000, 3600, False), (5, 8, False), (1, 3, True), (2048, 4096, True)],
)
def test_ages_are_compared_by_powers_of_two(young: int, old: int, is_told_apart: bool) -> None:
    """Of about the same age, uids decide: here that of the older one is the smaller."""
    young_pod = a_pod("young", ready_for=young, age=young, uid="b")
    old_pod = a_pod("old", ready_for=old, age=old, uid="a")
    assert rank(old_pod, young_pod)[0] == ("young" if is_told_apart else "old")


@pytest.mark.parametrize(
    ("text", "is_first"),
    [
        ("-5", True),
        ("0", False),
        ("+5", False),
        ("05", False),
        ("much", False),
        (str(2**31), False),
        ("-²", False),
        ("-" + "9" * 5000, False),
    ],
)
def test_a_cost_that_cannot_be_read_is_none(text: str, is_first: bool) -> None:
    assert (rank(a_pod("a", uid="a", cost="0"), a_pod("b", uid="b", cost=text)) == ["b", "a"]) == is_first
