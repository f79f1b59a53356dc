"""Turns an error answer of the API server, mostly a Status, into one of our errors. Pure. Called by http, kube.

404 NotFound   409 AlreadyExists or Conflict   410 Gone   401 403 Denied   429 TooManyRequests   other 4xx Invalid
5xx ServerFailed; for a write OutcomeUnknown where the answer leaves open whether it happened:
    504 and the reasons Timeout and ServerTimeout (the API server gave up waiting, the write goes on),
    "etcdserver: request timed out" and the like (a 500), and 502, 503 without a Status (a proxy lost the server)
"""

from __future__ import annotations

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
    code: int, answer: bytes | msgspec.Raw, *, retry_after: str = "", is_write: bool = False
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


def _build_too_many_requests(message: str, status: Status, retry_after: str) -> TooManyRequests:
    details = status.details or Details()
    seconds = float(retry_after) if retry_after.strip().isdigit() else details.retry_after_seconds or None
    causes = [cause.reason for cause in details.causes or () if cause.reason]
    return TooManyRequests(message, reason=status.reason, retry_after=seconds, cause=causes[0] if causes else "")


def _read_status(answer: bytes | msgspec.Raw) -> Status:
    try:
        return msgspec.json.decode(answer, type=Status)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        # A proxy's page, or plain text as from the API server's own early filters.
        return Status(message=" ".join(bytes(answer)[:_MOST_CHARACTERS].decode(errors="replace").split()))
