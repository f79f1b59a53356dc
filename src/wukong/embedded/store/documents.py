"""Objects as JSON documents: copying, comparing, reading fields, times. Used by every module of the store.

Knows no kinds. A stored document is never changed in place: whoever wants to change one copies it first.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from operator import is_
from typing import Any

import msgspec

from wukong.api import times
from wukong.ports import Document


def encode_document(document: Any) -> bytes:
    """Return the JSON of a stored document, or of a value that holds some. Raises TypeError for what JSON lacks."""
    return _encode(document)


def copy_document(document: Document) -> Document:
    """Return a deep copy. Tuples become lists; raises TypeError for values that JSON cannot represent."""
    copy: Document = _decode(_encode(document))
    if "managedFields" in (meta := meta_of(copy)) and not meta["managedFields"]:
        del meta["managedFields"]  # worked out only now, and nobody owns anything
    return copy


def _list_of(value: object) -> list[Any]:
    """The managedFields of a stored document are a sequence that is worked out when it is read."""
    if isinstance(value, Sequence):
        return list(value)
    raise TypeError(f"JSON has no {type(value).__name__}")


_encode, _decode = msgspec.json.Encoder(enc_hook=_list_of).encode, msgspec.json.Decoder().decode


def is_same_json(left: Any, right: Any) -> bool:
    """Whether two values are equal in JSON. In Python 1, 1.0 and True are equal, here they differ."""
    if left is right:
        return True
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(is_same_json(value, right[name]) for name, value in left.items())
    if isinstance(left, list):
        return len(left) == len(right) and all(map(is_same_json, left, right))
    return bool(left == right)


def has_same_values(left: Document, right: Document) -> bool:
    """Whether two maps have the same keys with identical objects as values."""
    return left.keys() == right.keys() and all(map(is_, left.values(), map(right.__getitem__, left)))


def has_same_items(left: list[Any], right: list[Any]) -> bool:
    """Whether two lists hold identical objects in the same order."""
    return len(left) == len(right) and all(map(is_, left, right))


def has_same_desired_state(before: Document, after: Document) -> bool:
    """Whether two documents share all but metadata and status, as identical objects."""
    for name, value in after.items():
        if before.get(name) is not value and name not in ("metadata", "status"):
            return False
    return before.keys() <= after.keys()


def meta_of(document: Document) -> Document:
    metadata: Document = document.get("metadata") or {}
    return metadata


def value_at(document: Document, path: str) -> Any:
    """Return the value at a path such as `spec.nodeName`, or None."""
    value: Any = document
    for name in path.split("."):
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def without_fields(document: Document, *names: str) -> Document:
    """Return a shallow copy without these fields."""
    return {name: value for name, value in document.items() if name not in names}


def with_metadata(document: Document, **fields: Any) -> Document:
    """Return a copy with these fields of its metadata set; None removes a field. All but the metadata is shared."""
    metadata = {**meta_of(document), **fields}
    if None in fields.values():
        metadata = {name: value for name, value in metadata.items() if value is not None}
    return {**document, "metadata": metadata}


def format_time(now: float) -> str:
    """Format seconds since the epoch as the API writes times, in whole seconds."""
    return _format_second(int(now // 1))


@lru_cache(4096)
def _format_second(now: int) -> str:
    return times.format_time(now)


@lru_cache(4096)
def parse_time(text: str) -> float:
    """Return the seconds since the epoch of a time as the API writes it; 0 for what is no time."""
    return times.parse_time(text) or 0.0


def is_terminating(document: Document) -> bool:
    """Whether somebody deleted the object and it still waits for its grace period or its finalizers."""
    return "deletionTimestamp" in meta_of(document)


def condition_of(document: Document, type_: str) -> Document | None:
    conditions: list[Document] = (document.get("status") or {}).get("conditions") or []
    for condition in conditions:
        if condition.get("type") == type_:
            return condition
    return None


def with_condition(document: Document, condition: Document, now: float) -> Document:
    """Return a copy with this condition set. lastTransitionTime changes only where the condition's status does."""
    conditions: list[Document] = list(value_at(document, "status.conditions") or [])
    indexes = [index for index, existing in enumerate(conditions) if existing.get("type") == condition["type"]]
    before = conditions[indexes[0]] if indexes else {}
    is_same = before.get("status") == condition["status"] and "lastTransitionTime" in before
    updated = {**condition, "lastTransitionTime": before["lastTransitionTime"] if is_same else format_time(now)}
    if indexes:
        conditions[indexes[0]] = updated
    else:
        conditions.append(updated)
    return {**document, "status": {**(document.get("status") or {}), "conditions": conditions}}
