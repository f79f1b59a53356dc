"""Turns an error answer of the API server, mostly a Status, into one of our errors. Pure. Called by http, kube.

404 NotFound   409 AlreadyExists or Conflict   410 Gone   401 403 Denied   429 TooManyRequests   other 4xx Invalid
5xx ServerFailed; for a write OutcomeUnknown where the answer leaves open whether it happened:
    504 and the reasons Timeout and ServerTimeout (the API server gave up waiting, the write goes on),
    "etcdserver: request timed out" and the like (a 500), and 502, 503 without a Status (a proxy lost the server)
"""

from __future__ import annotations

from email.utils import parsedate_to_datetime

import msgspec

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

_BY_CODE: dict[int, type[ClusterError]] = {
    401: Denied, 403: Denied, 404: NotFound, 408: ServerFailed, 409: Conflict, 410: Gone,
}  # fmt: skip
_UNKNOWN_OUTCOME_REASONS = frozenset({"Timeout", "ServerTimeout"})
_UNKNOWN_OUTCOME_TEXTS = ("etcdserver: ", "context deadline exceeded")
_MOST_CHARACTERS = 500
_LONGEST_NUMBER = 20  # digits; more of them are not read
MOST_RETRY_SECONDS = 60.0  # the API server says 1 to 10; nothing that is due waits longer for anybody's word


class Cause(msgspec.Struct):
    reason: str = ""
    message: str = ""
    field: str = ""


class Details(msgspec.Struct, rename="camel"):
    causes: list[Cause] | None = None
    retry_after_seconds: float = 0


class Status(msgspec.Struct):
    """Also the object of a watch's ERROR event. Without `kind` it was not the API server that answered."""

    kind: str = ""
    reason: str = ""
    message: str = ""
    code: int = 0
    details: Details | None = None


def build_error(
    code: int, answer: bytes | msgspec.Raw, *, retry_after: float | None = None, is_write: bool = False
) -> ClusterError:
    """Return the error for this answer. `code` and `retry_after` are HTTP's; the body may be a Status or anything."""
    status = _read_status(answer)
    code = code or status.code or 500
    message = status.message or f"the server answered {code} without a reason"
    if code == 429:
        return _build_too_many_requests(message, status, retry_after)
    if status.reason == "AlreadyExists":
        return AlreadyExists(message, reason=status.reason, code=code)
    if code < 500:
        return _BY_CODE.get(code, Invalid)(message, reason=status.reason, code=code)
    is_outcome_unknown = is_write and _leaves_outcome_unknown(code, status)
    return (OutcomeUnknown if is_outcome_unknown else ServerFailed)(message, reason=status.reason, code=code)


def _leaves_outcome_unknown(code: int, status: Status) -> bool:
    if status.kind != "Status":
        return code != 501
    return (
        code == 504
        or status.reason in _UNKNOWN_OUTCOME_REASONS
        or any(word in status.message for word in _UNKNOWN_OUTCOME_TEXTS)
    )


def read_retry_after(retry_after: str, date: str) -> float | None:
    """Return the seconds of a Retry-After header, which may be a moment after that of Date; None if it is neither."""
    try:
        return float(int(retry_after[:_LONGEST_NUMBER]))
    except ValueError:
        pass
    try:
        return (parsedate_to_datetime(retry_after) - parsedate_to_datetime(date)).total_seconds()
    except (ValueError, TypeError, OverflowError):
        return None


def _build_too_many_requests(message: str, status: Status, retry_after: float | None) -> TooManyRequests:
    details = status.details or Details()
    seconds = details.retry_after_seconds or None if retry_after is None else retry_after
    if seconds is not None:  # nobody keeps us waiting for hours, or hurries us
        seconds = min(max(seconds, 0.0), MOST_RETRY_SECONDS)
    causes = [cause.reason for cause in details.causes or () if cause.reason]
    return TooManyRequests(message, reason=status.reason, retry_after=seconds, cause=causes[0] if causes else "")


def _read_status(answer: bytes | msgspec.Raw) -> Status:
    try:
        return msgspec.json.decode(answer, type=Status)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        # A proxy's page, or plain text as from the API server's own early filters.
        return Status(message=" ".join(bytes(answer)[:_MOST_CHARACTERS].decode(errors="replace").split()))
