"""The errors of the API server in its own words, as exceptions of errors.py. Each function builds one; none raises.

Raised by every module of the store. The texts are those of a real server.
"""

from __future__ import annotations

from collections.abc import Iterable

from wukong.api.resources import Key
from wukong.errors import (
    AlreadyExists,
    ClusterError,
    Conflict,
    Denied,
    Gone,
    Invalid,
    NotFound,
    ServerFailed,
    TooManyRequests,
)

BUDGET_RETRY_SECONDS = 10.0  # Retry-After for a budget whose pods are not counted yet


def not_found(plural: str, key: Key) -> NotFound:
    return NotFound(f'{plural} "{key.name}" not found', reason="NotFound")


def no_such_kind() -> NotFound:
    return NotFound("the server could not find the requested resource", reason="NotFound")


def already_exists(plural: str, key: Key) -> AlreadyExists:
    return AlreadyExists(f'{plural} "{key.name}" already exists', reason="AlreadyExists")


def conflict(plural: str, key: Key, detail: str) -> Conflict:
    return Conflict(f'Operation cannot be fulfilled on {plural} "{key.name}": {detail}', reason="Conflict")


def modified_conflict(plural: str, key: Key) -> Conflict:
    advice = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(plural, key, advice)


def uid_mismatch(kind: str, key: Key, expected: str, actual: str) -> Conflict:
    """For a deletion or an eviction that names another uid."""
    detail = f"the UID in the precondition ({expected}) does not match the UID in record ({actual}). "
    return conflict(kind, key, detail + "The object might have been deleted and then recreated")


def version_mismatch(kind: str, key: Key, expected: str, actual: str) -> Conflict:
    """For a deletion that names another version."""
    detail = (
        f"the ResourceVersion in the precondition ({expected}) does not match the ResourceVersion in record ({actual})"
    )
    return conflict(kind, key, detail + ". The object might have been modified")


def storage_uid_mismatch(plural: str, key: Key, expected: str, actual: str) -> Conflict:
    """For a binding that names another uid: the storage below the API server words it differently."""
    return conflict(plural, key, f"Precondition failed: UID in precondition: {expected}, UID in object meta: {actual}")


def invalid(kind: str, name: str, problems: Iterable[str]) -> Invalid:
    details = list(problems)
    text = details[0] if len(details) == 1 else f"[{', '.join(details)}]"
    return Invalid(f'{kind} "{name}" is invalid: {text}', reason="Invalid")


def bad_request(message: str) -> Invalid:
    return Invalid(message, reason="BadRequest", code=400)


def unprocessable_patch(detail: str) -> Invalid:
    """For a patch that can be read but cannot be applied to this object."""
    return Invalid(f"the server rejected our request due to an error in our request: {detail}", reason="Invalid")


def unsupported_request(message: str, code: int, reason: str) -> Invalid:
    """For a method (405) or a media type (415) that the resource does not support."""
    return Invalid(message, reason=reason, code=code)


def forbidden(plural: str, name: str, detail: str) -> Denied:
    return Denied(f'{plural} "{name}" is forbidden: {detail}', reason="Forbidden")


def invalid_version(text: str) -> Invalid:
    """For a resourceVersion that is no number."""
    return bad_request(f'invalid resource version: resourceVersion: Invalid value: "{text}": invalid syntax')


def version_too_old(version: int, oldest: int) -> Gone:
    return Gone(f"too old resource version: {version} ({oldest})", reason="Expired")


def expired_token() -> Gone:
    message = "The provided continue parameter is too old to display a consistent list result. Start a new list."
    return Gone(message, reason="Expired")


def version_too_large(version: int, current: int) -> ClusterError:
    """For a resourceVersion that the server has not reached yet."""
    return ServerFailed(f"Too large resource version: {version}, current: {current}", reason="Timeout", code=504)


def budget_violation(retry_after: float | None) -> TooManyRequests:
    """For an eviction that a PodDisruptionBudget does not allow now."""
    message = "Cannot evict pod as it would violate the pod's disruption budget."
    return TooManyRequests(message, reason="TooManyRequests", retry_after=retry_after, cause="DisruptionBudget")


def multiple_budgets() -> ServerFailed:
    message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
    return ServerFailed(message)
