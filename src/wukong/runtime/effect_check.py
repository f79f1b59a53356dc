"""Did it happen? Reads an object after a write whose answer got lost, and compares it with what was asked for.

Used by `perform` before it repeats anything. Pure: the object as JSON has it goes in, True or False comes out.
"""

from __future__ import annotations

from typing import Any

from wukong.actions import Bind, Create, Delete, Evict, Patch, Scale
from wukong.ports import Document

Write = Create | Patch | Delete | Evict | Bind | Scale
_MISSING = object()


def has_happened(action: Write, found: Document | None) -> bool:
    """`found` is the object now; None if there is none."""
    if isinstance(action, Delete | Evict):
        return found is None or _is_leaving(action, found)
    if found is None:
        return False
    if isinstance(action, Create):
        return contains(found, action.body)
    if isinstance(action, Bind):
        return bool(_lookup(found, ["spec", "nodeName"]) == action.node)
    if isinstance(action, Scale):
        return bool(_lookup(found, ["spec", "replicas"]) == action.replicas)
    if action.patch.type == "json":
        return all(_is_applied(found, operation) for operation in action.patch.body)
    return contains(found, action.patch.body)


def contains(found: Any, asked: Any) -> bool:
    """Whether all that was asked for is there. None asks for absence, as in a merge patch; versions do not count."""
    if isinstance(asked, dict):
        if not isinstance(found, dict):
            return not asked
        names = [name for name in asked if name not in ("resourceVersion", "managedFields")]
        return all(contains(found.get(name), asked[name]) for name in names)
    if isinstance(asked, list) and isinstance(found, list):
        # The server fills in defaults, so entries are compared one by one; admission may append entries of its own.
        return len(found) >= len(asked) and all(contains(*pair) for pair in zip(found, asked, strict=False))
    return bool(found == asked) or (found is None and asked in ("", [], 0, False))


def _is_leaving(action: Delete | Evict, found: Document) -> bool:
    """As soon as was asked for, that is: what is leaving already may have been told to leave at once."""
    meta = found.get("metadata", {})
    if action.uid and meta.get("uid") != action.uid:
        return True
    is_soon = action.grace_seconds is None or (meta.get("deletionGracePeriodSeconds") or 0) <= action.grace_seconds
    return bool(meta.get("deletionTimestamp")) and is_soon


def _is_applied(found: Document, operation: Document) -> bool:
    """Whether one operation of a JSON patch shows in the object. `test` says nothing about it."""
    path = [part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:]]
    if operation["op"] == "test":
        return True
    if operation["op"] == "remove":
        return _lookup(found, path) is _MISSING
    if path and path[-1] == "-":
        entries = _lookup(found, path[:-1])
        return isinstance(entries, list) and any(contains(entry, operation["value"]) for entry in entries)
    return contains(_lookup(found, path), operation.get("value"))


def _lookup(found: Any, path: list[str]) -> Any:
    for part in path:
        if isinstance(found, list) and part.isdigit() and int(part) < len(found):
            found = found[int(part)]
        elif isinstance(found, dict) and part in found:
            found = found[part]
        else:
            return _MISSING
    return found
