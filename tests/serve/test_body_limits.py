"""Bodies of requests: each has a bound, and so have all at once; what is over is given back."""

from __future__ import annotations

import pytest

from wukong.serve.body_limits import BodyLimits, BodyTooLargeError, TooManyBodiesError


def test_a_body_may_be_as_large_as_the_limit_and_not_a_byte_more() -> None:
    limits = BodyLimits(10, 100)
    with limits.reserve() as reservation:
        reservation.take(4)
        reservation.take(6)
        with pytest.raises(BodyTooLargeError):
            reservation.take(1)
    assert limits.taken_bytes == 0


def test_all_bodies_together_may_be_as_large_as_their_limit() -> None:
    limits = BodyLimits(10, 15)
    with limits.reserve() as first, limits.reserve() as second:
        first.take(9)
        second.take(6)
        assert limits.taken_bytes == 15
        with pytest.raises(TooManyBodiesError):
            second.take(1)
    assert limits.taken_bytes == 0
    with limits.reserve() as third:
        third.take(10)


def test_what_a_request_took_is_given_back_when_it_fails() -> None:
    limits = BodyLimits(10, 15)
    with pytest.raises(BodyTooLargeError), limits.reserve() as reservation:
        reservation.take(11)
    assert limits.taken_bytes == 0
