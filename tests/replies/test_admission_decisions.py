"""What was decided about pods that have not come yet counts, once, and not for long."""

from __future__ import annotations

import pytest

from wukong.placement.pods import CapacityCounts
from wukong.replies.admission.decisions import FORGET_SECONDS, Decision, Decisions

PLAN = object()


def a_decision(group: str = "rs", capacity: str = "spot", at: float = 0.0) -> Decision:
    return Decision(group, PLAN, capacity, at)


def test_a_decision_counts_for_its_group_until_its_pod_has_come() -> None:
    decisions = Decisions()
    decisions.add("one", a_decision())
    decisions.add("two", a_decision(capacity="on-demand"))
    decisions.add("three", a_decision(group="other"))
    assert decisions.count("rs", 0.0) == CapacityCounts(on_demand=1, spot=1)
    for _ in range(2):
        decisions.remove("one")
        assert decisions.count("rs", 0.0) == CapacityCounts(on_demand=1)
    decisions.remove("of another instance")
    assert len(decisions) == 2


def test_a_decision_whose_pod_does_not_come_is_forgotten() -> None:
    decisions = Decisions()
    decisions.add("one", a_decision(at=0.0))
    decisions.add("two", a_decision(at=5.0))
    assert decisions.count("rs", FORGET_SECONDS - 0.1) == CapacityCounts(spot=2)
    assert decisions.find("one", "rs", PLAN, FORGET_SECONDS) is None
    assert decisions.count("rs", FORGET_SECONDS) == CapacityCounts(spot=1)


def test_a_clock_that_is_set_back_keeps_nothing_for_ever() -> None:
    decisions = Decisions()
    decisions.add("one", a_decision(at=1000.0))
    assert decisions.count("rs", 10.0) == CapacityCounts()


@pytest.mark.parametrize(
    ("nonce", "group", "plan", "is_known"),
    [
        ("one", "rs", PLAN, True),
        ("other", "rs", PLAN, False),
        ("one", "another", PLAN, False),
        ("one", "rs", object(), False),  # the policy changed meanwhile
        ("", "rs", PLAN, False),
    ],
)
def test_a_pod_that_comes_again_is_known_by_its_nonce(nonce: str, group: str, plan: object, is_known: bool) -> None:
    decisions = Decisions()
    decisions.add("one", a_decision())
    assert decisions.find(nonce, group, plan, 1.0) == (a_decision() if is_known else None)


def test_there_are_never_more_than_a_bounded_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wukong.replies.admission.decisions._MOST_DECISIONS", 10)
    decisions = Decisions()
    for number in range(30):
        decisions.add(str(number), a_decision())
    assert len(decisions) == 10
    assert decisions.count("rs", 0.0) == CapacityCounts(spot=10)
