"""The smallest strategic merge patch between two versions of a document, and that patch made. Pure.

Built by candidates, played by search.py, written by kustomize.py. Lists that Kubernetes merges by a key (containers)
are patched item by item, all other lists (rules, tolerations) are written whole: that is what kubectl and kustomize do
with them, so a patch means the same everywhere.
"""

from __future__ import annotations

from typing import Any

from wukong.api.field_types import Type, type_of
from wukong.api.kinds import KINDS
from wukong.embedded.store.documents import copy_document
from wukong.embedded.store.patch.strategic_merge import apply_strategic_patch, merge_field, type_within
from wukong.ports import Document

_HEAD = ("apiVersion", "kind")


def build_patch(before: Document, after: Document) -> Document:
    """What makes `after` of `before`, with the head that says whose patch it is. Both are of the same object."""
    changed = _compare_maps(before, after, find_type(before))
    meta = {name: before["metadata"][name] for name in ("name", "namespace") if before["metadata"].get(name)}
    head: Document = {name: before[name] for name in _HEAD}
    return {**head, "metadata": {**meta, **changed.pop("metadata", {})}, **changed}


def make_patch(document: Document, patch: Document) -> Document:
    """The document with the patch made; neither of the two is changed."""
    return apply_strategic_patch(find_type(document), document, copy_document(patch))  # which takes the copy apart


def find_type(document: Document) -> Type | None:
    kind = KINDS.of_document(document["kind"], document.get("apiVersion") or "")
    return type_of(kind.resource) if kind is not None else None


def count_fields(patch: Document) -> int:
    """How many values a patch sets or removes; a list that is written whole counts once for each item."""
    return _count({name: value for name, value in patch.items() if name not in (*_HEAD, "metadata")})


def _count(value: Any) -> int:
    if isinstance(value, dict):
        return sum(map(_count, value.values()))
    return len(value) if isinstance(value, list) else 1


def _compare_maps(before: Document, after: Document, type_: Type | None) -> Document:
    patch: Document = {}
    for name in [*after, *(name for name in before if name not in after)]:
        old, new = before.get(name), after.get(name)
        if old == new:
            continue
        if isinstance(old, dict) and isinstance(new, dict):
            patch[name] = _compare_maps(old, new, type_within(type_, name))
        elif isinstance(old, list) and isinstance(new, list):
            patch[name] = _compare_lists(old, new, type_, name)
        else:
            patch[name] = new
    return patch


def _compare_lists(before: list[Any], after: list[Any], type_: Type | None, name: str) -> list[Any]:
    field = merge_field(type_, name)
    key = field.merge_key if field is not None else None
    if field is None or not key:
        return after
    items = {item.get(key): item for item in before}
    if len(items) != len(before) or [item.get(key) for item in after] != list(items):
        return [{"$patch": "replace"}, *after]
    pairs = ((items[item[key]], item) for item in after)
    return [{key: new[key], **_compare_maps(old, new, field.type.inner)} for old, new in pairs if old != new]
