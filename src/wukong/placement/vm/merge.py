"""`vmTemplate` merged under what the Wukong itself says: maps deeply, lists of named entries by name. Pure.

Where both give a field another value, ours counts in what is built, and the conflict is named with its path: a Wukong
with a conflict is not accepted, so nobody wonders which of the two holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from wukong.admission.problem_text import format_value
from wukong.api.documents import path_of
from wukong.ports import Document

_LONGEST_VALUE = 120  # characters of a value in a message
# Of these lists the entries have names that are unique, and KubeVirt pairs them by name.
_BY_NAME = {"disks", "volumes", "interfaces", "networks", "gpus", "hostDevices", "filesystems"}


def merge_under(ours: Document, template: Document) -> Document:
    """A new document: everything of ours, and of the template what ours does not say."""
    merged = dict(ours)
    for name, value in template.items():
        merged[name] = _merge_values(name, ours[name], value) if name in ours else value
    return merged


def find_conflicts(ours: Document, template: Document, path: str) -> Iterator[str]:
    """What both say otherwise, each with its path in the template."""
    for name, value in template.items():
        if name in ours:
            yield from _find_value_conflicts(name, ours[name], value, path_of(path, name))


def _merge_values(name: str, ours: Any, value: Any) -> Any:
    if isinstance(ours, dict) and isinstance(value, dict):
        return merge_under(ours, value)
    if name in _BY_NAME and _are_named(ours) and _are_named(value):
        by_name = {entry["name"]: entry for entry in value}
        own_names = {entry["name"] for entry in ours}
        return [
            *(merge_under(entry, by_name.get(entry["name"], {})) for entry in ours),
            *(entry for entry in value if entry["name"] not in own_names),
        ]
    return ours


def _find_value_conflicts(name: str, ours: Any, value: Any, path: str) -> Iterator[str]:
    if isinstance(ours, dict) and isinstance(value, dict):
        yield from find_conflicts(ours, value, path)
    elif name in _BY_NAME and _are_named(ours) and _are_named(value):
        own_entries = {entry["name"]: entry for entry in ours}
        for index, entry in enumerate(value):
            if entry["name"] in own_entries:
                yield from find_conflicts(own_entries[entry["name"]], entry, f"{path}[{index}]")
    elif ours != value:
        yield (
            f"{path}: expected nothing, or what the fields of the Wukong make of it, {_shorten(ours)}, got "
            f"{_shorten(value)}. Say it in one of the two places."
        )


def _shorten(value: Any) -> str:
    text = format_value(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"


def _are_named(entries: Any) -> bool:
    return isinstance(entries, list) and all(
        isinstance(entry, dict) and isinstance(entry.get("name"), str) for entry in entries
    )
