"""How many replicas usage asks for: which pods count, and how others are guessed at, as replica_calculator.go."""

from __future__ import annotations

from typing import Any

import pytest

from wukong.embedded.actors.horizontal_autoscaler.replica_calculator import (
    PodSample,
    Proposal,
    Tolerances,
    propose_by_average,
    propose_by_utilization,
)

NOW = 10_000.0
NO_METRICS = "unable to get metrics for resource {}: no metrics returned from resource metrics API"
NOT_RECEIVED = "did not receive metrics for targeted pods (pods might be unready)"


def a_pod(name: str, usage: int | None, request: int | str = 1000, **fields: Any) -> PodSample:
    values: dict[str, Any] = {"measured_at": NOW, "is_measured": usage is not None, **fields}
    return PodSample(name, request=request, usage=usage, **values)


def by_utilization(*pods: PodSample, target: int = 50, resource: str = "cpu", current: int | None = None) -> Proposal:
    count = len(pods) if current is None else current
    return propose_by_utilization(pods, count, target, resource, Tolerances(), NOW)


def by_average(*pods: PodSample, target: int = 100, resource: str = "memory") -> Proposal:
    return propose_by_average(pods, len(pods), target, resource, Tolerances(), NOW)


def test_utilization_is_of_what_the_measured_pods_request_together() -> None:
    proposal = by_utilization(a_pod("a", 1000, 1000), a_pod("b", 499, 2000))
    assert proposal == Proposal(2, 49, 749)  # 1499 of 3000; 98 % of the target is near enough
    assert by_utilization(a_pod("a", 900), a_pod("b", 301)) == Proposal(3, 60, 600)


@pytest.mark.parametrize(
    ("usage", "replicas"), [(449, 9), (450, 10), (500, 10), (550, 10), (560, 12), (1000, 20), (50, 1)]
)
def test_a_tenth_more_or_less_than_the_target_changes_nothing(usage: int, replicas: int) -> None:
    pods = [a_pod(str(number), usage) for number in range(10)]
    assert by_utilization(*pods).replicas == replicas


def test_tolerances_of_both_directions_are_their_own() -> None:
    pods = [a_pod(str(number), 600) for number in range(10)]
    for tolerances, replicas in ((Tolerances(0.0, 0.2), 10), (Tolerances(0.2, 0.1), 12)):
        assert propose_by_utilization(pods, 10, 50, "cpu", tolerances, NOW).replicas == replicas
    pods = [a_pod(str(number), 400) for number in range(10)]
    for tolerances, replicas in ((Tolerances(0.2, 0.0), 10), (Tolerances(0.1, 0.2), 8)):
        assert propose_by_utilization(pods, 10, 50, "cpu", tolerances, NOW).replicas == replicas


def test_what_is_wanted_is_rounded_up_from_the_pods_that_count() -> None:
    assert by_utilization(a_pod("a", 1010), a_pod("b", 1010)).replicas == 5
    assert by_utilization(a_pod("a", 1000), a_pod("b", 1000), current=9).replicas == 4


@pytest.mark.parametrize("fields", [{"is_terminating": True}, {"phase": "Failed"}])
def test_pods_that_go_or_have_failed_are_as_if_they_were_not_there(fields: dict[str, Any]) -> None:
    assert by_utilization(a_pod("a", 1000), a_pod("b", 4000, **fields)) == Proposal(2, 100, 1000)
    assert by_utilization(a_pod("a", 1000, **fields)).problem == NOT_RECEIVED


def test_pods_that_wait_use_nothing_where_there_would_be_more() -> None:
    waiting = a_pod("c", None, phase="Pending")
    assert by_utilization(a_pod("a", 1500), a_pod("b", 1500), waiting).replicas == 6
    assert by_utilization(a_pod("a", 600), a_pod("b", 600), waiting).replicas == 3  # 40 % of three: it turns
    assert by_utilization(a_pod("a", 100), a_pod("b", 100), waiting).replicas == 1  # of the two that count
    busy = [a_pod(name, 560) for name in "abde"]
    assert by_utilization(*busy, waiting, a_pod("f", None, phase="Pending"), current=4).replicas == 4  # it turns


def test_pods_without_metrics_dampen_the_change() -> None:
    missing = a_pod("b", None)
    assert by_utilization(a_pod("a", 2000), missing).replicas == 4  # 100 % of two
    assert by_utilization(a_pod("a", 100), missing).replicas == 2  # (100 + 1000) / 2000 is above the target: it turns
    assert by_utilization(a_pod("a", 100), missing, target=80).replicas == 2  # 55 / 80 of two is two
    assert by_utilization(a_pod("a", 100), a_pod("c", 100), a_pod("d", 100), missing, target=80).replicas == 2
    assert by_utilization(a_pod("a", 500), missing).replicas == 2  # at the target nothing is guessed


def test_a_target_above_all_that_is_requested_is_what_a_missing_pod_uses() -> None:
    pods = [a_pod(name, 200) for name in "abc"]
    assert by_utilization(*pods, a_pod("d", None), target=150).replicas == 2  # (600 + 1500) / 4000 = 52 %, of 150


def test_a_guess_never_leads_the_other_way() -> None:
    """More pods were there than are measured: it would be fewer than now, though usage asks for more."""
    assert by_utilization(a_pod("a", 1000), a_pod("b", None, phase="Pending"), current=9).replicas == 9
    assert by_utilization(a_pod("a", 1400), a_pod("b", None, phase="Pending"), current=9).replicas == 9
    assert by_utilization(a_pod("a", 1400), a_pod("b", None), current=1).replicas == 3


def test_unready_pods_that_would_only_shrink_it_are_left_out() -> None:
    unready = a_pod("b", 0, is_ready=False, ready_since=NOW - 10, started_at=NOW - 20)
    proposal = by_utilization(a_pod("a", 200), unready)
    assert (proposal.replicas, proposal.utilization, proposal.is_settled) == (1, 20, False)


@pytest.mark.parametrize(
    ("fields", "is_counted"),
    [
        ({}, True),
        ({"has_ready_condition": False}, False),
        ({"started_at": None}, False),
        # Within five minutes of its start: ready, and measured for a whole window since.
        ({"started_at": NOW - 299, "ready_since": NOW - 60, "window_seconds": 60.0}, True),
        ({"started_at": NOW - 299, "ready_since": NOW - 59, "window_seconds": 60.0}, False),
        ({"started_at": NOW - 299, "ready_since": NOW - 200, "is_ready": False}, False),
        # Later: only who has never been ready is left out.
        ({"started_at": NOW - 300, "ready_since": NOW - 59, "window_seconds": 60.0}, True),
        ({"started_at": NOW - 400, "ready_since": NOW - 371, "is_ready": False}, False),
        ({"started_at": NOW - 400, "ready_since": NOW - 370, "is_ready": False}, True),
        ({"started_at": NOW - 400, "ready_since": NOW - 371, "is_ready": True}, True),
    ],
)
def test_cpu_of_a_pod_that_starts_says_little(fields: dict[str, Any], is_counted: bool) -> None:
    proposal = by_utilization(a_pod("a", 500), a_pod("b", 1000, **fields))
    assert proposal.utilization == (75 if is_counted else 50)
    assert proposal.is_settled is is_counted
    assert by_utilization(a_pod("a", 500), a_pod("b", 1000, **fields), resource="memory").utilization == 75


def test_why_nothing_is_proposed() -> None:
    assert by_utilization().problem == by_utilization(a_pod("a", None)).problem == NO_METRICS
    assert by_utilization(a_pod("a", None, is_measured=True)).problem == NOT_RECEIVED
    assert by_utilization(a_pod("a", 500), a_pod("b", 500, "no request")).problem == "no request"
    assert by_utilization(a_pod("a", 500, 0)).problem == "no metrics returned matched known pods"
    assert by_average().problem == by_average(a_pod("a", None)).problem == NO_METRICS
    assert by_average(a_pod("a", 5, phase="Pending")).problem == NOT_RECEIVED
    unready = a_pod("a", 5, started_at=None)
    for proposal in (by_utilization(unready), by_average(unready, resource="cpu")):
        assert (proposal.problem, proposal.is_settled) == (NOT_RECEIVED, False)


def test_an_average_is_of_the_pods_that_are_measured() -> None:
    assert by_average(a_pod("a", 300), a_pod("b", 101)) == Proposal(4, None, 200)
    assert by_average(a_pod("a", 105), a_pod("b", 105)) == Proposal(2, None, 105)
    assert by_average(a_pod("a", 300), a_pod("b", None)).replicas == 3  # who is missing uses nothing
    assert by_average(*(a_pod(name, 10) for name in "abc"), a_pod("d", None)).replicas == 2  # or the target
    assert by_average(a_pod("a", 300), a_pod("b", None, phase="Pending")).replicas == 3
