"""The change between two versions of a document in the forms that an API server takes. Pure.

    json        operations, in the order of the fields
    merge       what differs; null removes; lists are written whole
    strategic   the same, where Kubernetes replaces the lists that differ; else it falls back to merge
    apply       what differs and what was applied before, for a field manager of its own

Every form names the version that was read: an object that changed since is refused as a Conflict. Equal changes in all
forms make equal objects; what apply cannot do, removing what others own, shows in a dry run.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from wukong.errors import InputError
from wukong.placement.workloads.rules import PREFERRED, REQUIRED, REVISION
from wukong.ports import Document, PatchBody, PatchType

APPLIER = "wukong-patch"  # the field manager of applied edits, so that what it applied before is known
_REPLACED_WHOLE = frozenset({REQUIRED, PREFERRED})  # lists of rules; nodeSelectorTerms is below one of them
_META = ("labels", "annotations")
_LEFT_OUT = ("apiVersion", "kind", "metadata", "status")


def build_patch(before: Document, after: Document, form: PatchType) -> PatchBody:
    """What makes `after` of `before`, at the version of `before`. Of its metadata labels and annotations count."""
    difference = compare_maps(_body_of(before), _body_of(after))
    version = before["metadata"]["resourceVersion"]
    if form == "strategic" and not _is_plain(difference):
        form = "merge"
    if form == "json":
        return PatchBody("json", [_demand_version(version), *_list_operations(_body_of(before), _body_of(after), "")])
    if form == "apply":
        owned = find_applied(before, after, APPLIER)
        body = merge_maps(owned, _without_removed(difference))
        return PatchBody("apply", _with_version(body, version), manager=APPLIER)
    return PatchBody(form, _with_version(difference, version))


def add_version(patch: PatchBody, version: str) -> PatchBody:
    """A patch of anybody's, refused unless the object has this version. Raises InputError for what is no patch."""
    if patch.type == "json":
        if not isinstance(patch.body, list):
            raise InputError("expected a list of operations for a patch of type json.")
        body: Any = [_demand_version(version), *patch.body]
    else:
        if not isinstance(patch.body, dict) or not isinstance(patch.body.get("metadata") or {}, dict):
            raise InputError(f"expected an object for a patch of type {patch.type}.")
        body = _with_version(patch.body, version)
    return PatchBody(patch.type, body, manager=patch.manager, force=patch.force, is_dry_run=patch.is_dry_run)


def without_version(patch: PatchBody) -> Any:
    """The body as people write it: for git, and to be shown."""
    if patch.type == "json":
        return [operation for operation in patch.body if operation.get("path") != "/metadata/resourceVersion"]
    meta = {name: value for name, value in patch.body["metadata"].items() if name != "resourceVersion"}
    rest = {name: value for name, value in patch.body.items() if name != "metadata"}
    return {"metadata": meta, **rest} if meta else rest


def compare_maps(before: Document, after: Document) -> Document:
    """A merge patch: what `after` has otherwise, and null for what it has not."""
    patch: Document = {}
    for name in [*after, *(name for name in before if name not in after)]:
        old, new = before.get(name), after.get(name)
        if name in before and name in after and _is_same(old, new):
            continue
        if isinstance(old, dict) and isinstance(new, dict):
            patch[name] = compare_maps(old, new)
        else:
            patch[name] = _without_nulls(new)
    return patch


def merge_maps(first: Document, second: Document) -> Document:
    """The first with what the second says put over it, map by map."""
    merged = dict(first)
    for name, value in second.items():
        old = merged.get(name)
        merged[name] = merge_maps(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged


def find_applied(before: Document, after: Document, manager: str) -> Document:
    """What this manager has applied, with the values of `after`: an apply that left it out would remove it."""
    applied: Document = {}
    for entry in before["metadata"].get("managedFields") or ():
        if entry.get("manager") == manager and entry.get("operation") == "Apply":
            applied = merge_maps(applied, _pick(after, entry.get("fieldsV1") or {}))
    return applied


def _pick(document: Document, fields: Document) -> Document:
    picked: Document = {}
    for key, below in fields.items():
        name = key.removeprefix("f:")
        if key == name or name not in document:
            continue
        value = document[name]
        is_inner = isinstance(value, dict) and any(inner.startswith("f:") for inner in below)
        picked[name] = _pick(value, below) if is_inner else value
    return picked


def _body_of(document: Document) -> Document:
    meta = {name: value for name, value in document["metadata"].items() if name in _META}
    if isinstance(annotations := meta.get("annotations"), dict):
        meta["annotations"] = {name: text for name, text in annotations.items() if name != REVISION}
    return {"metadata": meta, **{name: value for name, value in document.items() if name not in _LEFT_OUT}}


def _demand_version(version: str) -> Document:
    return {"op": "replace", "path": "/metadata/resourceVersion", "value": version}


def _with_version(body: Document, version: str) -> Document:
    return {**body, "metadata": {**(body.get("metadata") or {}), "resourceVersion": version}}


def _is_plain(difference: Any) -> bool:
    """Whether the lists in it are of those that a strategic merge replaces."""
    if not isinstance(difference, dict):
        return True
    return all(
        name in _REPLACED_WHOLE if isinstance(value, list) else _is_plain(value) for name, value in difference.items()
    )


def _list_operations(before: Document, after: Document, path: str) -> Iterator[Document]:
    for name in [*before, *(name for name in after if name not in before)]:
        place = f"{path}/{name.replace('~', '~0').replace('/', '~1')}"
        if name not in after:
            yield {"op": "remove", "path": place}
        elif name not in before:
            yield {"op": "add", "path": place, "value": after[name]}
        elif isinstance(before[name], dict) and isinstance(after[name], dict):
            yield from _list_operations(before[name], after[name], place)
        elif not _is_same(before[name], after[name]):
            yield {"op": "replace", "path": place, "value": after[name]}


def _without_removed(patch: Document) -> Document:
    picked = {
        name: _without_removed(value) if isinstance(value, dict) else value
        for name, value in patch.items()
        if value is not None
    }
    return {name: value for name, value in picked.items() if value != {} or patch[name] == {}}


def _without_nulls(value: Any) -> Any:
    """A map that is added whole: a null in it would be read as a removal."""
    if isinstance(value, dict):
        return {name: _without_nulls(entry) for name, entry in value.items() if entry is not None}
    return value


def _is_same(left: Any, right: Any) -> bool:
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(_is_same(value, right[name]) for name, value in left.items())
    if isinstance(left, list):
        return len(left) == len(right) and all(map(_is_same, left, right))
    return bool(left == right)
