"""A view kept current equals one compiled afresh, also while nodes fill up and empty and score ranges move."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import HOSTNAME, ZONE, a_node, a_pod
from random_clusters import Case, affinities, cases, make_modest
from wukong.api.core import (
    Affinity,
    NodeAffinity,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Pod,
    PreferredSchedulingTerm,
)
from wukong.engine import Scheduler, Snapshot


def totals(scheduler: Scheduler, pod: Pod) -> list[int]:
    view = scheduler.view_of(pod)
    view.sync()
    return [int(total) for total in np.where(view.feasible, view.total, -1)]


def fresh_totals(snapshot: Snapshot, pod: Pod) -> list[int]:
    return totals(Scheduler(snapshot.fork()), pod)


def preferring(**weights: int) -> Affinity:
    """Preferred node affinity to hosts by name: `preferring(n0=90, n1=50)`."""
    return Affinity(
        node_affinity=NodeAffinity(
            preferred=[
                PreferredSchedulingTerm(
                    weight=weight,
                    preference=NodeSelectorTerm(
                        match_expressions=[NodeSelectorRequirement(key=HOSTNAME, operator="In", values=[host])]
                    ),
                )
                for host, weight in weights.items()
            ]
        )
    )


def test_when_the_most_preferred_node_is_full_the_next_takes_its_score() -> None:
    scheduler = Scheduler(Snapshot([a_node(f"n{i}", pods="1") for i in range(3)]))
    pod = a_pod(affinity=preferring(n0=90, n1=45))
    assert scheduler.decide(pod).scores["NodeAffinity"].tolist() == [200, 100, 0]
    assert scheduler.place(pod, "x/0") == "n0"
    assert scheduler.decide(pod).scores["NodeAffinity"].tolist() == [200, 0]
    scheduler.snapshot.forget("x/0")
    assert scheduler.decide(pod).scores["NodeAffinity"].tolist() == [200, 100, 0]


def test_scores_are_right_again_after_no_node_was_feasible() -> None:
    scheduler = Scheduler(Snapshot([a_node(f"n{i}", pods="1") for i in range(4)]))
    pod = a_pod(affinity=preferring(n0=90, n1=60, n2=30))
    assert scheduler.place_many(pod, 9, "x/pod") == ["n0", "n1", "n2", "n3"]
    for number in (1, 2, 3):
        scheduler.snapshot.forget(f"x/pod-{number}")
        assert totals(scheduler, pod) == fresh_totals(scheduler.snapshot, pod)


def test_scores_are_right_again_after_all_nodes_were_taken_at_once() -> None:
    scheduler = Scheduler(Snapshot([a_node(f"n{i}", pods="1") for i in range(4)]))
    pod = a_pod(affinity=preferring(n0=90, n1=60, n2=30))
    totals(scheduler, pod)
    for number in range(4):
        scheduler.snapshot.assume(f"x/{number}", a_pod(f"other-{number}", app="db"), f"n{number}")
    assert totals(scheduler, pod) == [-1] * 4
    scheduler.snapshot.forget("x/1")
    assert totals(scheduler, pod) == fresh_totals(scheduler.snapshot, pod)


@pytest.mark.slow
@settings(max_examples=80)
@given(cases(), affinities(), st.data())
def test_totals_stay_those_of_a_fresh_view_while_nodes_fill_and_empty(
    case: Case, affinity: Affinity | None, data: st.DataObject
) -> None:
    """Small nodes and several pods in turn: nodes become infeasible and feasible again all the time."""
    for node in case.objects.nodes:
        node.status.allocatable["pods"] = data.draw(st.sampled_from(["1", "2", "3"]))
    snapshot = Snapshot.of(case.objects)
    scheduler = Scheduler(snapshot)
    modest = make_modest(a_pod("second", app="db", affinity=affinity))
    case.pod.spec.node_name = ""
    variants = [make_modest(case.pod), modest, a_pod("third", affinity=preferring(n0=90, n1=60, n2=30))]
    for step in range(data.draw(st.integers(2, 10))):
        if data.draw(st.booleans()) and snapshot.pods:
            snapshot.forget(data.draw(st.sampled_from(sorted(snapshot.pods))))
        else:
            scheduler.place(data.draw(st.sampled_from(variants)), f"x/{step}")
        for pod in variants:
            assert totals(scheduler, pod) == fresh_totals(snapshot, pod)


def test_a_spread_score_follows_the_feasible_nodes() -> None:
    """Over how many zones the feasible nodes lie decides how much a zone's pods weigh."""
    scheduler = Scheduler(Snapshot([a_node(f"n{i}", zone="abc"[i], pods="1") for i in range(3)]))
    pod = a_pod()
    pod.spec.topology_spread_constraints = []
    for step in range(3):
        assert totals(scheduler, pod) == fresh_totals(scheduler.snapshot, pod)
        scheduler.place(pod, f"x/{step}")
    assert scheduler.snapshot.column(ZONE).size == 3
