"""The strategic patch that `kubectl apply` sends: from the manifest applied before, the one applied now, the object.

What the old manifest had and the new one lacks is deleted; what the new one has and the object lacks, or has otherwise,
is set; all else is left alone.
"""

from __future__ import annotations

import copy
import json
from typing import Any

from wukong.api.field_types import MAP, STRUCT, Field, Type

Json = dict[str, Any]
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class NoPatchError(Exception):
    """kubectl itself refuses such a manifest: an item of a list lacks the key by which it is merged."""


def annotate(manifest: Json) -> Json:
    """Return the manifest with the annotation in which kubectl keeps it."""
    meta = manifest["metadata"]
    annotations = {**(meta.get("annotations") or {}), LAST_APPLIED: json.dumps(manifest, sort_keys=True)}
    return {**manifest, "metadata": {**meta, "annotations": annotations}}


def build_patch(type_: Type, manifest: Json, live: Json) -> Json:
    """Return the patch that applies a manifest to a live object."""
    text = (live["metadata"].get("annotations") or {}).get(LAST_APPLIED)
    original = annotate(json.loads(text)) if text else {}
    modified = annotate(manifest)
    deletions = _Diff(is_deletions=True).maps(original, modified, type_)
    changes = _Diff(is_deletions=False).maps(live, modified, type_)
    patch = copy.deepcopy(_join(deletions, changes, type_))
    _sort_items(patch, type_)
    return patch


def _sort_items(patch: Any, type_: Type | None) -> None:
    """In place: items of a list stand in the order that the patch asks for, as a server demands."""
    for name, value in patch.items():
        field = _field_of(type_, name)
        if isinstance(value, dict):
            _sort_items(value, _within(type_, name))
        elif isinstance(value, list) and field is not None and f"$setElementOrder/{name}" in patch:
            key = field.merge_key
            order = [item[key] for item in patch[f"$setElementOrder/{name}"]]
            value.sort(key=lambda item: order.index(item[key]) if item[key] in order else len(order))
            for item in value:
                _sort_items(item, field.type.inner)


def _field_of(type_: Type | None, name: str) -> Field | None:
    return type_.fields.get(name) if type_ is not None and type_.shape == STRUCT else None


def _within(type_: Type | None, name: str) -> Type | None:
    field = _field_of(type_, name)
    return field.type if field is not None else type_.inner if type_ is not None and type_.shape == MAP else None


class _Diff:
    """One of the two halves: what is deleted, or what is changed and added."""

    def __init__(self, is_deletions: bool) -> None:
        self.is_deletions = is_deletions

    def maps(self, old: Json, new: Json, type_: Type | None, retains_keys: bool = False) -> Json:
        patch: Json = {}
        for name, value in new.items():
            field, before = _field_of(type_, name), old.get(name)
            if isinstance(value, dict) and isinstance(before, dict) and not (field and field.is_replaced):
                inner = self.maps(before, value, _within(type_, name), bool(field and field.retains_keys))
                if inner:
                    patch[name] = inner
            elif isinstance(value, list) and isinstance(before, list) and field and field.merge_key is not None:
                patch |= self._lists(name, before, value, field)
            elif not self.is_deletions and before != value:
                patch[name] = value
        if self.is_deletions:
            patch |= dict.fromkeys(name for name in old if name not in new)
        if retains_keys and (patch or any(name not in new for name in old)):
            patch["$retainKeys"] = sorted(new)
        return patch

    def _lists(self, name: str, old: list[Any], new: list[Any], field: Field) -> Json:
        key = field.merge_key or ""
        if not key:
            added = [] if self.is_deletions else [value for value in new if value not in old]
            removed = [value for value in old if value not in new] if self.is_deletions else []
            patch: Json = {name: added} if added else {}
            return patch | ({f"$deleteFromPrimitiveList/{name}": removed} if removed else {})
        if not all(isinstance(item, dict) and isinstance(item.get(key), str | int) for item in new):
            raise NoPatchError(f"an item of {name} has no {key}")
        before, items = {item.get(key): item for item in old}, list[Json]()
        for item in new:
            if item.get(key) in before:
                change = self.maps(before[item[key]], item, field.type.inner, field.retains_keys)
                items += [{**change, key: item[key]}] if change else []
            elif not self.is_deletions:
                items.append(item)
        if self.is_deletions:
            kept = {item.get(key) for item in new}
            items += [{"$patch": "delete", key: value} for value in before if value not in kept]
        order = [item[key] for item in new]
        is_reordered = not self.is_deletions and [value for value in before if value in order] != order
        if not items and not is_reordered:
            return {}
        patch = {name: items} if items else {}
        return {**patch, f"$setElementOrder/{name}": [{key: value} for value in order]}


def _join(deletions: Any, changes: Any, type_: Type | None) -> Json:
    """Return one patch that does what both do."""
    patch: Json = dict(deletions)
    for name, value in changes.items():
        field, before = _field_of(type_, name), patch.get(name)
        if isinstance(before, dict) and isinstance(value, dict):
            patch[name] = _join(before, value, _within(type_, name))
        elif isinstance(before, list) and isinstance(value, list) and field and field.merge_key:
            key, items = field.merge_key, {item[field.merge_key]: item for item in before}
            for item in value:
                items[item[key]] = _join(items[item[key]], item, field.type.inner) if item[key] in items else item
            patch[name] = list(items.values())
        else:
            patch[name] = value
    return patch
