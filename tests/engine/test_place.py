"""Placing: many at once equals one by one, ties are the caller's choice, hand-countable cases come out right."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import (
    HOSTNAME,
    ZONE,
    a_node,
    a_pod,
    apart_from,
    rather_near,
    spread_over,
    together_with,
)
from random_clusters import Case, cases
from wukong.api.core import Node, Pod
from wukong.api.profile import FitArguments, Profile, default_profile
from wukong.engine import FIRST_BY_NAME, RandomTies, RoundRobin, Scheduler, Snapshot, Ties

TIES: dict[str, Callable[[], Ties]] = {
    "first by name": lambda: FIRST_BY_NAME,
    "round robin": RoundRobin,
    "drawn": lambda: RandomTies(random.Random(7).randrange),
}
PACKING = Profile(fit=FitArguments(strategy="MostAllocated"))


@pytest.mark.slow
@settings(max_examples=120)
@given(cases(), st.sampled_from(sorted(TIES)), st.sampled_from([default_profile(), PACKING]), st.integers(1, 40))
def test_a_batch_is_placed_as_if_one_by_one(case: Case, ties: str, profile: Profile, count: int) -> None:
    case.pod.spec.node_name = ""
    together, apart = Snapshot.of(case.objects), Snapshot.of(case.objects)
    batch = Scheduler(together, profile, ties=TIES[ties]()).place_many(case.pod, count, "x/pod")
    scheduler = Scheduler(apart, profile, ties=TIES[ties]())
    single = [scheduler.place(case.pod, f"x/pod-{number}") for number in range(count)]
    assert batch == [node for node in single if node is not None]
    assert together.load.tolist() == apart.load.tolist()
    assert together.placed == apart.placed


@pytest.mark.slow
@settings(max_examples=60)
@given(cases(), st.integers(1, 12))
def test_every_placement_has_the_top_score_when_scored_from_scratch(case: Case, count: int) -> None:
    case.pod.spec.node_name = ""
    snapshot = Snapshot.of(case.objects)
    scheduler = Scheduler(snapshot)
    for number in range(count):
        fresh = Scheduler(snapshot.fork()).decide(case.pod)
        node = scheduler.place(case.pod, f"x/{number}")
        assert node == (fresh.best[0] if fresh.best else None)


def some_nodes(count: int = 6) -> list[Node]:
    return [a_node(f"n{number}", zone="abc"[number % 3], cpu="4") for number in range(count)]


@pytest.mark.parametrize(
    ("pod", "count"),
    [
        (a_pod(cpu="1"), 24),
        (a_pod(cpu="3"), 6),
        (a_pod(affinity=apart_from(key=HOSTNAME)), 6),
        (a_pod(affinity=apart_from(key=ZONE)), 3),
        (a_pod(host_port=80), 6),
        (a_pod(cpu="1", affinity=together_with(key=ZONE)), 8),
        (a_pod(cpu="1", affinity=together_with(key=HOSTNAME)), 4),
        (a_pod(cpu="1", spread=[spread_over(ZONE)]), 24),
        (a_pod(cpu="1", node_selector={ZONE: "a"}), 8),
        (a_pod(cpu="5"), 0),
    ],
    ids=lambda value: "" if isinstance(value, Pod) else str(value),
)
def test_as_many_fit_as_can_be_counted_by_hand(pod: Pod, count: int) -> None:
    assert len(Scheduler(Snapshot(some_nodes())).place_many(pod, 100)) == count


def test_pods_spread_over_zones_alternate_between_them() -> None:
    nodes = Scheduler(Snapshot(some_nodes())).place_many(a_pod(spread=[spread_over(ZONE)]), 6)
    zones = [int(node[1:]) % 3 for node in nodes]
    assert sorted(zones[:3]) == sorted(zones[3:]) == [0, 1, 2]


def test_pods_that_like_company_go_to_the_same_zone() -> None:
    scheduler = Scheduler(Snapshot(some_nodes()))
    scheduler.snapshot.assume("default/first", a_pod("first"), "n1")
    assert {int(node[1:]) % 3 for node in scheduler.place_many(a_pod(affinity=rather_near()), 4)} == {1}


def test_ties_go_to_the_first_by_name_unless_asked_otherwise() -> None:
    alike = [a_node(name) for name in ("c", "a", "b")]
    assert Scheduler(Snapshot(alike)).place(a_pod()) == "a"
    draws = iter([2, 0, 0])
    drawn = Scheduler(Snapshot(alike), ties=RandomTies(lambda count: next(draws)))
    assert [drawn.place(a_pod(f"p{i}")) for i in range(3)] == ["c", "a", "b"]


def test_round_robin_goes_on_where_it_stopped() -> None:
    scheduler = Scheduler(Snapshot([a_node(name) for name in "abc"]), ties=RoundRobin())
    nothing = a_pod(cpu=None, memory=None)  # leaves real requests as they are; only the defaults tell nodes apart
    assert [scheduler.place(nothing, f"x/{i}") for i in range(4)] == ["a", "b", "c", "a"]


def test_packing_fills_one_node_before_the_next() -> None:
    nodes = Scheduler(Snapshot(some_nodes(3)), PACKING).place_many(a_pod(cpu="1"), 12)
    assert nodes == ["n0"] * 4 + ["n1"] * 4 + ["n2"] * 4


def test_a_cluster_without_nodes_says_so() -> None:
    scheduler = Scheduler(Snapshot())
    assert scheduler.place(a_pod()) is None
    assert scheduler.place_many(a_pod(), 3) == []
    assert scheduler.decide(a_pod()).message == "no nodes available to schedule pods"
