"""Answers of an API server, or of what stands before it, as our errors."""

from __future__ import annotations

import json
from typing import Any

import pytest

from wukong.cluster.api_status import build_error, read_retry_after
from wukong.errors import (
    AlreadyExists,
    ClusterError,
    Conflict,
    Denied,
    Gone,
    Invalid,
    NotFound,
    OutcomeUnknown,
    ServerFailed,
    TooManyRequests,
)


def a_status(reason: str = "", message: str = "no", **fields: Any) -> bytes:
    return json.dumps({"kind": "Status", "reason": reason, "message": message, **fields}).encode()


@pytest.mark.parametrize(
    ("code", "reason", "expected"),
    [
        (400, "BadRequest", Invalid),
        (401, "Unauthorized", Denied),
        (403, "Forbidden", Denied),
        (404, "NotFound", NotFound),
        (408, "", ServerFailed),
        (409, "Conflict", Conflict),
        (409, "AlreadyExists", AlreadyExists),
        (410, "Expired", Gone),
        (422, "Invalid", Invalid),
        (429, "TooManyRequests", TooManyRequests),
        (499, "", Invalid),
        (500, "InternalError", ServerFailed),
        (503, "ServiceUnavailable", ServerFailed),
    ],
)
def test_a_code_has_its_error(code: int, reason: str, expected: type[ClusterError]) -> None:
    for is_write in (False, True):
        error = build_error(code, a_status(reason), is_write=is_write)
        assert type(error) is expected
        assert (str(error), error.reason) == ("no", reason)
        assert error.code == code


@pytest.mark.parametrize(
    ("code", "answer", "is_unknown"),
    [
        (504, a_status(), True),
        (500, a_status("Timeout"), True),
        (500, a_status("ServerTimeout"), True),
        (500, a_status(message="etcdserver: request timed out"), True),
        (500, a_status(message="context deadline exceeded"), True),
        (500, a_status("InternalError"), False),
        (502, b"<html>bad gateway</html>", True),
        (501, b"<html>not implemented</html>", False),
    ],
)
def test_whether_a_write_happened_may_be_left_open(code: int, answer: bytes, is_unknown: bool) -> None:
    assert type(build_error(code, answer, is_write=True)) is (OutcomeUnknown if is_unknown else ServerFailed)
    assert type(build_error(code, answer)) is ServerFailed, "a read is asked again"


def test_an_answer_without_a_status_is_told_by_its_words_or_its_code() -> None:
    assert str(build_error(400, b"  go\n away ")) == "go away"
    assert str(build_error(500, b"x" * 10_000)) == "x" * 500
    assert str(build_error(418, b"{}")) == "the server answered 418 without a reason"
    assert build_error(0, b"{}").code == 500
    assert type(build_error(0, a_status(code=410))) is Gone, "as in a watch"
    assert type(build_error(404, a_status(code=410))) is NotFound, "HTTP's own code counts"


@pytest.mark.parametrize(
    ("header", "in_status", "expected"),
    [
        (None, 0, None),
        (None, 7, 7.0),
        (3.0, 7, 3.0),
        (0.0, 7, 0.0),
        (60.0, 0, 60.0),
        (61.0, 0, 60.0),
        (-5.0, 0, 0.0),
        (None, 1e9, 60.0),
    ],
)
def test_how_long_to_wait_is_between_nothing_and_a_minute(
    header: float | None, in_status: float, expected: float | None
) -> None:
    error = build_error(429, a_status(details={"retryAfterSeconds": in_status}), retry_after=header)
    assert isinstance(error, TooManyRequests)
    assert error.retry_after == expected


def test_the_first_cause_that_has_a_reason_is_told() -> None:
    causes = [{"message": "x"}, {"reason": "DisruptionBudget", "message": "y"}, {"reason": "Other"}]
    error = build_error(429, a_status(details={"causes": causes}))
    assert isinstance(error, TooManyRequests)
    assert error.cause == "DisruptionBudget"
    without = build_error(429, a_status(details={"causes": None}))
    assert isinstance(without, TooManyRequests)
    assert without.cause == ""


@pytest.mark.parametrize(
    ("header", "date", "expected"),
    [
        ("5", "", 5.0),
        ("-5", "", -5.0),
        ("9" * 30, "", float("9" * 20)),
        ("Mon, 16 Nov 2026 12:00:30 GMT", "Mon, 16 Nov 2026 12:00:00 GMT", 30.0),
        ("Mon, 16 Nov 2026 12:00:30 GMT", "", None),
        ("soon", "Mon, 16 Nov 2026 12:00:00 GMT", None),
        ("", "", None),
    ],
)
def test_retry_after_is_a_number_or_a_moment(header: str, date: str, expected: float | None) -> None:
    assert read_retry_after(header, date) == expected
