"""A placement that was decided and not seen yet: kept until it is seen, seen otherwise, or its time is up."""

from __future__ import annotations

import pytest

from builders import a_pod
from wukong.api.core import Pod
from wukong.api.resources import Key
from wukong.state.assumed_placements import AssumedPlacements

KEY = Key("default", "web-1")


def a_seen_pod(node: str = "", uid: str = "u", phase: str = "Pending") -> Pod:
    pod = a_pod(node=node)
    pod.metadata.uid, pod.status.phase = uid, phase
    return pod


def assume(until: float = 30.0) -> AssumedPlacements:
    placements = AssumedPlacements()
    placements.assume(KEY, a_seen_pod(), "n0", until)
    return placements


@pytest.mark.parametrize(
    ("seen", "result"),
    [
        (a_seen_pod(), "assumed"),
        (a_seen_pod("n0"), "confirmed"),
        (a_seen_pod("n1"), "corrected"),
        (None, "corrected"),
        (a_seen_pod(uid="another"), "corrected"),
        (a_seen_pod("n0", uid="another"), "corrected"),
        (a_seen_pod("n0", phase="Succeeded"), "corrected"),
        (a_seen_pod("n0", phase="Failed"), "corrected"),
        (a_seen_pod("n0", phase="Running"), "confirmed"),
    ],
)
def test_what_is_seen_of_the_pod_settles_it(seen: Pod | None, result: str) -> None:
    placements = assume()
    assert placements.settle(KEY, seen) == result
    assert (KEY in [*placements]) == (result == "assumed")
    assert placements.settle(Key("default", "other"), seen) is None


def test_it_is_forgotten_when_its_time_is_up_and_not_before() -> None:
    placements = assume(30.0)
    assert placements.next_expiry() == 30.0
    assert placements.expire(29.9) == []
    assert placements.expire(30.0) == [KEY]
    assert (len(placements), placements.next_expiry()) == (0, None)


def test_one_that_was_dropped_or_assumed_again_does_not_end_at_its_old_time() -> None:
    placements = assume(30.0)
    placements.assume(KEY, a_seen_pod(), "n1", 60.0)
    assert placements.next_expiry() == 60.0
    assert placements.expire(59.0) == []
    dropped = placements.drop(KEY)
    assert dropped is not None
    assert dropped.node == "n1"
    assert (placements.drop(KEY), placements.next_expiry()) == (None, None)


def test_a_fork_goes_its_own_way() -> None:
    placements = assume()
    fork = placements.fork()
    assert placements.expire(99.0) == [KEY]
    assert (len(placements), len(fork)) == (0, 1)
    assert fork.expire(99.0) == [KEY]
