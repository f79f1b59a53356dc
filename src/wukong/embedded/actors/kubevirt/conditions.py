"""Conditions in the statuses of KubeVirt's objects: lists of documents in, lists out; nothing is changed in place."""

from __future__ import annotations

from collections.abc import Sequence

from wukong.embedded.store.documents import format_time
from wukong.ports import Document

Conditions = Sequence[Document]


def find_condition(conditions: Conditions, kind: str) -> Document | None:
    return next((condition for condition in conditions if condition.get("type") == kind), None)


def has_status(conditions: Conditions, kind: str, status: str = "True", reason: str | None = None) -> bool:
    """Whether a condition is there with this status, and for this reason if one is given."""
    condition = find_condition(conditions, kind)
    if condition is None or condition.get("status") != status:
        return False
    return reason is None or condition.get("reason", "") == reason


def set_condition(
    conditions: Conditions, kind: str, status: str, now: float, *, reason: str = "", message: str = ""
) -> list[Document]:
    """The conditions with this one set. The time of its last transition changes where its status does."""
    before = find_condition(conditions, kind)
    since = before.get("lastTransitionTime") if before is not None and before.get("status") == status else None
    condition: Document = {"type": kind, "status": status, "lastTransitionTime": since or format_time(now)}
    condition |= {"reason": reason} if reason else {}
    condition |= {"message": message} if message else {}
    if before is None:
        return [*conditions, condition]
    return [condition if entry is before else entry for entry in conditions]


def copy_condition(conditions: Conditions, source: Document) -> list[Document]:
    """The conditions with this one of another object in the place of their own."""
    before = find_condition(conditions, source["type"])
    if before is None:
        return [*conditions, source]
    return [source if entry is before else entry for entry in conditions]


def remove_condition(conditions: Conditions, kind: str) -> list[Document]:
    return [condition for condition in conditions if condition.get("type") != kind]
