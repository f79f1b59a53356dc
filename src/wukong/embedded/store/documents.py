"""Objects as JSON has them: copies, looking into them, times. Used by every module of the store; knows no kinds.

What is stored is never changed in place: who wants to change a document takes a copy first.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from operator import is_
from typing import Any

import msgspec

from wukong.ports import Document


def copied(document: Document) -> Document:
    """A copy that shares nothing. Tuples become lists, and what JSON cannot say is refused with a TypeError."""
    made: Document = msgspec.json.decode(msgspec.json.encode(document))
    return made


def same(one: Any, other: Any) -> bool:
    """Whether two values are alike in JSON: unlike Python, where 1, 1.0 and True are."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(value, other[name]) for name, value in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def has_same_values(one: Document, other: Document) -> bool:
    """Whether two maps hold the very same objects."""
    return one.keys() == other.keys() and all(value is other[name] for name, value in one.items())


def has_same_items(one: list[Any], other: list[Any]) -> bool:
    """Whether two lists hold the very same objects, in the same order."""
    return len(one) == len(other) and all(map(is_, one, other))


def meta_of(document: Document) -> Document:
    found: Document = document.get("metadata") or {}
    return found


def at(document: Document, path: str) -> Any:
    """The value at `spec.nodeName`, or None."""
    found: Any = document
    for name in path.split("."):
        found = found.get(name) if isinstance(found, dict) else None
    return found


def without(document: Document, *names: str) -> Document:
    """A shallow copy that lacks these fields."""
    return {name: value for name, value in document.items() if name not in names}


def with_meta(document: Document, **fields: Any) -> Document:
    """A copy, shallow but for its metadata, with these fields set there; None takes one away."""
    meta = {**meta_of(document), **fields}
    return {**document, "metadata": {name: value for name, value in meta.items() if value is not None}}


def stamp(now: float) -> str:
    """Seconds since the epoch as the API writes times."""
    return _stamp(int(now // 1))


@lru_cache(4096)
def _stamp(now: int) -> str:
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@lru_cache(4096)
def seconds(stamped: str) -> float:
    return datetime.fromisoformat(stamped).timestamp()


def is_leaving(document: Document) -> bool:
    return "deletionTimestamp" in meta_of(document)


def condition_of(document: Document, kind: str) -> Document | None:
    conditions: list[Document] = at(document, "status.conditions") or []
    return next((each for each in conditions if each.get("type") == kind), None)


def with_condition(document: Document, condition: Document, now: float) -> Document:
    """The same document with this condition set; it keeps its time where its status did not change."""
    conditions: list[Document] = list(at(document, "status.conditions") or [])
    places = [index for index, each in enumerate(conditions) if each.get("type") == condition["type"]]
    before = conditions[places[0]] if places else {}
    is_same = before.get("status") == condition["status"] and "lastTransitionTime" in before
    made = {**condition, "lastTransitionTime": before["lastTransitionTime"] if is_same else stamp(now)}
    if places:
        conditions[places[0]] = made
    else:
        conditions.append(made)
    return {**document, "status": {**(document.get("status") or {}), "conditions": conditions}}
