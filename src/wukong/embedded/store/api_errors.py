"""What the API server says when it says no, in its own words, as the errors of errors.py. Decides nothing."""

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

BUDGET_RETRY_SECONDS = 10.0  # what a server says of a budget whose pods are not counted yet


def not_found(plural: str, key: Key) -> NotFound:
    return NotFound(f'{plural} "{key.name}" not found', reason="NotFound")


def no_such_kind() -> NotFound:
    return NotFound("the server could not find the requested resource", reason="NotFound")


def already_exists(plural: str, key: Key) -> AlreadyExists:
    return AlreadyExists(f'{plural} "{key.name}" already exists', reason="AlreadyExists")


def conflict(plural: str, key: Key, why: str) -> Conflict:
    return Conflict(f'Operation cannot be fulfilled on {plural} "{key.name}": {why}', reason="Conflict")


def modified(plural: str, key: Key) -> Conflict:
    advice = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(plural, key, advice)


def recreated(kind: str, key: Key, asked: str, found: str) -> Conflict:
    why = f"the UID in the precondition ({asked}) does not match the UID in record ({found}). "
    return conflict(kind, key, why + "The object might have been deleted and then recreated")


def changed_since(kind: str, key: Key, asked: str, found: str) -> Conflict:
    why = f"the ResourceVersion in the precondition ({asked}) does not match the ResourceVersion in record ({found}). "
    return conflict(kind, key, why + "The object might have been modified")


def another(plural: str, key: Key, asked: str, found: str) -> Conflict:
    return conflict(plural, key, f"Precondition failed: UID in precondition: {asked}, UID in object meta: {found}")


def invalid(kind: str, name: str, problems: Iterable[str]) -> Invalid:
    found = list(problems)
    said = found[0] if len(found) == 1 else f"[{', '.join(found)}]"
    return Invalid(f'{kind} "{name}" is invalid: {said}', reason="Invalid")


def bad_request(message: str) -> Invalid:
    return Invalid(message, reason="BadRequest", code=400)


def unfit_patch(why: str) -> Invalid:
    """A patch that can be read but not carried out on this object."""
    return Invalid(f"the server rejected our request due to an error in our request: {why}", reason="Invalid")


def unsupported(message: str, code: int, reason: str) -> Invalid:
    return Invalid(message, reason=reason, code=code)


def forbidden(plural: str, name: str, why: str) -> Denied:
    return Denied(f'{plural} "{name}" is forbidden: {why}', reason="Forbidden")


def no_version(text: str) -> Invalid:
    return bad_request(f'invalid resource version: resourceVersion: Invalid value: "{text}": invalid syntax')


def too_old(asked: int, oldest: int) -> Gone:
    return Gone(f"too old resource version: {asked} ({oldest})", reason="Expired")


def expired_token() -> Gone:
    message = "The provided continue parameter is too old to display a consistent list result. Start a new list."
    return Gone(message, reason="Expired")


def too_large(asked: int, current: int) -> ClusterError:
    return ServerFailed(f"Too large resource version: {asked}, current: {current}", reason="Timeout", code=504)


def budget_says_not_now(retry_after: float | None) -> TooManyRequests:
    message = "Cannot evict pod as it would violate the pod's disruption budget."
    return TooManyRequests(message, reason="TooManyRequests", retry_after=retry_after, cause="DisruptionBudget")


def two_budgets() -> ServerFailed:
    message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
    return ServerFailed(message)
