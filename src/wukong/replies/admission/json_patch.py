"""The JSON patch (RFC 6902) that makes one document of another: only what differs, lists grown at their end.

Called by pods.py. What a patch does not name stays, byte for byte, as it was sent.
"""

from __future__ import annotations

from typing import Any

from wukong.ports import Document

_MISSING = object()


def build_json_patch(before: Document, after: Document) -> list[Document]:
    """The operations, in the order in which they must be applied. [] if both are alike."""
    operations: list[Document] = []
    _compare_objects(before, after, "", operations)
    return operations


def escape(name: str) -> str:
    """A member's name as a part of a path."""
    return name.replace("~", "~0").replace("/", "~1")


def _compare_objects(before: Document, after: Document, path: str, operations: list[Document]) -> None:
    if not before.keys() <= after.keys():
        for name in before:
            if name not in after:
                operations.append({"op": "remove", "path": f"{path}/{escape(name)}"})
    for name, value in after.items():
        old = before.get(name, _MISSING)
        if old is _MISSING:
            operations.append({"op": "add", "path": f"{path}/{escape(name)}", "value": value})
        elif old is not value:  # most of a document that was built of another is shared
            _compare(old, value, f"{path}/{escape(name)}", operations)


def _compare_lists(before: list[Any], after: list[Any], path: str, operations: list[Document]) -> None:
    """Entry by entry; what is beyond the end of the first is appended. No entry changes its place."""
    for index, old in enumerate(before):
        if old is not after[index]:
            _compare(old, after[index], f"{path}/{index}", operations)
    for entry in after[len(before) :]:
        operations.append({"op": "add", "path": f"{path}/-", "value": entry})


def _compare(before: Any, after: Any, path: str, operations: list[Document]) -> None:
    if isinstance(before, dict) and isinstance(after, dict):
        _compare_objects(before, after, path, operations)
    elif isinstance(before, list) and isinstance(after, list) and before and len(before) <= len(after):
        _compare_lists(before, after, path, operations)
    elif before != after or type(before) is not type(after):
        operations.append({"op": "replace", "path": path, "value": after})
