"""Counts of a Rollout are written in a burst and then once a second; what turns is written at once."""

from __future__ import annotations

import msgspec
import pytest

from wukong.api.policy_status import Condition
from wukong.api.resources import Key
from wukong.api.rollout import RolloutStatus, VersionStatus
from wukong.controllers.rollout.status_limit import MOST_AT_ONCE, StatusLimit

KEY, NOW = Key("default", "web"), 1_800_000_000.0
BEFORE = RolloutStatus(phase="Progressing", current="b", stable="a", ready_replicas=1)
COUNTED = msgspec.structs.replace(BEFORE, ready_replicas=2, message="2 of 8", progressed_at="2027-01-15T08:00:00Z")


def a_limit_after_a_burst() -> StatusLimit:
    limit = StatusLimit()
    assert [limit.find_wait(KEY, BEFORE, COUNTED, NOW) for _ in range(MOST_AT_ONCE)] == [None] * MOST_AT_ONCE
    return limit


def test_counts_wait_after_a_burst_and_are_then_written_once_a_second() -> None:
    limit = a_limit_after_a_burst()
    written = [tick for tick in range(1, 51) if limit.find_wait(KEY, BEFORE, COUNTED, NOW + tick / 10) is None]
    assert written == [10, 20, 30, 40, 50]


def test_who_waits_for_the_seconds_named_is_written() -> None:
    limit = a_limit_after_a_burst()
    wait = limit.find_wait(KEY, BEFORE, COUNTED, NOW + 0.25)
    assert wait is not None
    assert wait == pytest.approx(0.75)
    assert limit.find_wait(KEY, BEFORE, COUNTED, NOW + 0.25 + wait) is None


@pytest.mark.parametrize(
    "turned",
    [
        {"phase": "Degraded"},
        {"stable": "b"},
        {"step": 1},
        {"paused_at": "2027-01-15T08:00:00Z"},
        {"observed_generation": 2},
        {"versions": [VersionStatus(hash="b", role="Canary")]},
        {"conditions": [Condition(type="Separated", status="False", reason="Yielded")]},
    ],
    ids=lambda turned: next(iter(turned)),
)
def test_what_turns_is_written_at_once(turned: dict[str, object]) -> None:
    limit = a_limit_after_a_burst()
    assert limit.find_wait(KEY, BEFORE, COUNTED, NOW) is not None
    assert limit.find_wait(KEY, BEFORE, msgspec.structs.replace(COUNTED, **turned), NOW) is None


def test_a_clock_that_is_set_back_holds_nothing_up_for_long() -> None:
    limit = a_limit_after_a_burst()
    wait = limit.find_wait(KEY, BEFORE, COUNTED, NOW - 3600)
    assert wait is not None
    assert wait <= 1


def test_rollouts_do_not_wait_for_each_other() -> None:
    limit = a_limit_after_a_burst()
    assert limit.find_wait(Key("default", "api"), BEFORE, COUNTED, NOW) is None
    limit.forget(KEY)
    assert limit.find_wait(KEY, BEFORE, COUNTED, NOW) is None
