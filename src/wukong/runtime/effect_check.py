"""Did it happen? Reads an object after a write whose answer got lost, and compares it with what was wanted.

Used by `delivery` before it repeats anything. Pure: the object as JSON has it goes in, True or False comes out.
"""

from __future__ import annotations

from typing import Any

from wukong.actions import Bind, Create, Delete, Evict, Patch, Scale
from wukong.ports import Document
from wukong.semantics.label_syntax import parse_integer

Write = Create | Patch | Delete | Evict | Bind | Scale
_MISSING = object()


def has_happened(action: Write, document: Document | None) -> bool:
    """`document` is the object now; None if there is none."""
    if isinstance(action, Delete | Evict):
        return document is None or _is_leaving(action, document)
    if document is None:
        return False
    if isinstance(action, Create):
        return contains(document, action.body)
    if isinstance(action, Bind):
        is_same_pod = not action.uid or _lookup(document, ["metadata", "uid"]) == action.uid
        return is_same_pod and bool(_lookup(document, ["spec", "nodeName"]) == action.node)
    if isinstance(action, Scale):
        return bool(_lookup(document, ["spec", "replicas"]) == action.replicas)
    if action.patch.type == "json":
        return all(_is_applied(document, operation) for operation in action.patch.body)
    return contains(document, action.patch.body)


def contains(value: Any, wanted: Any) -> bool:
    """Whether all that is wanted is there. None asks for absence, as in a merge patch; versions do not count."""
    if isinstance(wanted, dict):
        if not isinstance(value, dict):
            return not wanted
        names = [name for name in wanted if name not in ("resourceVersion", "managedFields")]
        return all(contains(value.get(name), wanted[name]) for name in names)
    if isinstance(wanted, list) and isinstance(value, list):
        # The server fills in defaults, so entries are compared one by one; admission may append entries of its own.
        return len(value) >= len(wanted) and all(contains(*pair) for pair in zip(value, wanted, strict=False))
    return bool(value == wanted) or (value is None and wanted in ("", [], 0, False))


def _is_leaving(action: Delete | Evict, document: Document) -> bool:
    """As soon as was wanted, that is: what is leaving already may have been told to leave at once."""
    meta = document.get("metadata", {})
    if action.uid and meta.get("uid") != action.uid:
        return True
    is_soon = action.grace_seconds is None or (meta.get("deletionGracePeriodSeconds") or 0) <= action.grace_seconds
    return bool(meta.get("deletionTimestamp")) and is_soon


def _is_applied(document: Document, operation: Document) -> bool:
    """Whether one operation of a JSON patch shows in the object. `test` says nothing about it."""
    path = [part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:]]
    if operation["op"] == "test":
        return True
    if operation["op"] == "remove":
        return _lookup(document, path) is _MISSING
    if path and path[-1] == "-":
        entries = _lookup(document, path[:-1])
        return isinstance(entries, list) and any(contains(entry, operation["value"]) for entry in entries)
    found, value = _lookup(document, path), operation.get("value")
    if isinstance(value, list):  # a whole list: one that is longer is the list as it was before
        entries = found if isinstance(found, list) else []
        return len(entries) == len(value) and contains(entries, value)
    return contains(found, value)


def _lookup(value: Any, path: list[str]) -> Any:
    for part in path:
        index = parse_integer(part) if isinstance(value, list) else None
        if index is not None and 0 <= index < len(value):
            value = value[index]
        elif isinstance(value, dict) and part in value:
            value = value[part]
        else:
            return _MISSING
    return value
