"""Times of objects are read and written whatever they say."""

from __future__ import annotations

import pytest

from wukong.api.times import format_time, parse_time


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (None, None),
        ("", None),
        ("1970-01-01T00:01:00Z", 60.0),
        ("1970-01-01T00:01:00", 60.0),
        ("1970-01-01T01:00:00+01:00", 0.0),
        ("1970-01-01T00:00:00.123456789Z", 0.123456),
        ("0001-01-01T00:00:00Z", -62135596800.0),
        ("0000-01-01T00:00:00Z", None),  # Go knows it
        ("10000-01-01T00:00:00Z", None),
        ("2026-02-30T00:00:00Z", None),
        ("2026-01-01T00:00:00Z\n", None),
        ("yesterday", None),
    ],
)
def test_what_is_no_time_is_none(text: str | None, seconds: float | None) -> None:
    assert parse_time(text) == seconds


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (60.9, "1970-01-01T00:01:00Z"),
        (-1.0, "1969-12-31T23:59:59Z"),
        (2.0**62, "9999-12-31T23:59:59Z"),
        (-(2.0**62), "0001-01-01T00:00:00Z"),
    ],
)
def test_what_is_beyond_all_times_is_the_last_one(seconds: float, text: str) -> None:
    assert format_time(seconds) == text
