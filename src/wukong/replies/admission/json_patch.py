"""The JSON patch (RFC 6902) that makes one document of another: only what differs, lists grown at their end.

Called by pods.py. What a patch does not name stays, byte for byte, as it was sent.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from wukong.ports import Document


def build_json_patch(before: Document, after: Document) -> list[Document]:
    """The operations, in the order in which they must be applied. [] if both are alike."""
    return list(_compare_objects(before, after, ""))


def escape(name: str) -> str:
    """A member's name as a part of a path."""
    return name.replace("~", "~0").replace("/", "~1")


def _compare(before: Any, after: Any, path: str) -> Iterator[Document]:
    if before is after:
        return
    if isinstance(before, dict) and isinstance(after, dict):
        yield from _compare_objects(before, after, path)
    elif isinstance(before, list) and isinstance(after, list) and before and len(before) <= len(after):
        yield from _compare_lists(before, after, path)
    elif before != after or type(before) is not type(after):
        yield {"op": "replace", "path": path, "value": after}


def _compare_objects(before: Document, after: Document, path: str) -> Iterator[Document]:
    for name in before:
        if name not in after:
            yield {"op": "remove", "path": f"{path}/{escape(name)}"}
    for name, value in after.items():
        place = f"{path}/{escape(name)}"
        if name not in before:
            yield {"op": "add", "path": place, "value": value}
        else:
            yield from _compare(before[name], value, place)


def _compare_lists(before: list[Any], after: list[Any], path: str) -> Iterator[Document]:
    """Entry by entry; what is beyond the end of the first is appended. No entry changes its place."""
    for index, (old, new) in enumerate(zip(before, after, strict=False)):
        yield from _compare(old, new, f"{path}/{index}")
    for entry in after[len(before) :]:
        yield {"op": "add", "path": f"{path}/-", "value": entry}
