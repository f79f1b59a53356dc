"""Failures in a row, by controller and key."""

from __future__ import annotations

from wukong.api.resources import Key
from wukong.state.attempts import Attempts

A, B, C = (Key("default", name) for name in "abc")


def test_the_keys_that_a_controller_fails_at_are_listed_in_order_until_it_succeeds() -> None:
    attempts = Attempts()
    for key in (C, A, A):
        attempts.record_failure("drain", key, "429", 1.0)
    attempts.record_failure("load", B, "409", 1.0)
    assert (attempts.list_failing("drain"), attempts.list_failing("load")) == ([A, C], [B])
    assert (attempts.list_failing("policy"), len(attempts)) == ([], 3)
    attempts.record_success("drain", C)
    attempts.record_success("drain", B)  # never failed there
    assert (attempts.list_failing("drain"), attempts.list_failing("load"), len(attempts)) == ([A], [B], 2)


def test_a_fork_counts_for_itself() -> None:
    attempts = Attempts()
    attempts.record_failure("drain", A, "429", 1.0)
    fork = attempts.fork()
    fork.record_failure("drain", A, "429", 2.0)
    fork.record_failure("drain", B, "429", 3.0)
    (first, second) = attempts.get("drain", A), fork.get("drain", A)
    assert first is not None
    assert second is not None
    assert (first.count, first.at, second.count, second.at) == (1, 1.0, 2, 2.0)
    assert (attempts.list_failing("drain"), fork.list_failing("drain")) == ([A], [A, B])
    attempts.record_success("drain", A)
    assert (len(attempts), len(fork)) == (0, 2)
