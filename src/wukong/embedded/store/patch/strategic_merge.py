"""Strategic merge patches for Kubernetes' own kinds, as apimachinery's strategicpatch carries them out.

Lists with a merge key are merged item by item, other lists are replaced. The keys are Kubernetes' struct tags, looked
up by the field's name, and by its parent's where names alone are ambiguous. `$patch`, `$setElementOrder`,
`$deleteFromPrimitiveList` and `$retainKeys` are understood. Order is strategicpatch's, too: items that are new stand
before those only the server knows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wukong.embedded.store.api_errors import bad_request
from wukong.embedded.store.documents import has_same_items, has_same_values, is_same_json
from wukong.ports import Document

_KEYS: dict[str, str] = {  # field, or parent.field → merge key; "" for lists of plain values
    "containers": "name",
    "initContainers": "name",
    "ephemeralContainers": "name",
    "volumes": "name",
    "env": "name",
    "volumeMounts": "mountPath",
    "volumeDevices": "devicePath",
    "imagePullSecrets": "name",
    "hostAliases": "ip",
    "topologySpreadConstraints": "topologyKey",
    "schedulingGates": "name",
    "spec.resourceClaims": "name",
    "conditions": "type",
    "addresses": "type",
    "podIPs": "ip",
    "hostIPs": "ip",
    "ownerReferences": "uid",
    "finalizers": "",
    "podCIDRs": "",
    "spec.ports": "port",  # of a Service
    "ports": "containerPort",
}
_PLAIN_IN = {"spec.finalizers"}  # of a Namespace: not merged
_REPLACED = {"PodDisruptionBudget": {"spec.selector"}}  # maps that a patch replaces
_DIRECTIVE = "$patch"
_ORDER, _DELETE, _RETAIN = "$setElementOrder/", "$deleteFromPrimitiveList/", "$retainKeys"


def patched(kind: str, document: Document, patch: Any) -> Document:
    """A new document that shares what the patch does not touch with the old. `patch` is a copy that may be changed."""
    if not isinstance(patch, dict):
        raise bad_request("error decoding patch: expected an object")
    return _Merge(kind).map(document, patch, "")


class _Merge:
    def __init__(self, kind: str) -> None:
        self.replaced = _REPLACED.get(kind, set())

    def map(self, original: Document, patch: Document, field: str) -> Document:
        if _DIRECTIVE in patch:
            return _directed(patch)
        made = dict(original)
        _retain(made, patch)
        self._reorder(made, patch, field)
        for name, value in patch.items():
            if name.startswith(_DELETE):
                self._delete(made, name.removeprefix(_DELETE), value)
            elif value is None:
                made.pop(name, None)
            else:
                self._set(made, name, value, field)
        return original if has_same_values(original, made) else made

    def _set(self, original: Document, name: str, value: Any, field: str) -> None:
        if not isinstance(value, dict | list):  # most are plain
            if not is_same_json(original.get(name), value):
                original[name] = value
            return
        before, place = original.get(name), f"{field}.{name}"
        if isinstance(before, dict) and isinstance(value, dict):
            original[name] = value if place in self.replaced else self.map(before, value, name)
        elif isinstance(before, list) and isinstance(value, list) and (key := _key(field, name)) is not None:
            made = self.items(before, value, key, name)
            original[name] = before if has_same_items(before, made) else made
        elif is_same_json(before, value):
            return
        elif (kept := _without_directives(value)) is not None:
            original[name] = _without_nulls(kept) if before is None or type(before) is not type(value) else kept
        else:
            original.pop(name, None)

    def items(self, original: list[Any], patch: list[Any], key: str, field: str) -> list[Any]:
        if not key:
            merged = list(dict.fromkeys([*original, *patch]))
        else:
            original, patch = _special(original, patch, key)
            merged = self._merged(original, patch, key, field)
        return _ordered(merged, patch, original, key)

    def _merged(self, original: list[Any], patch: list[Any], key: str, field: str) -> list[Any]:
        merged = list(original)
        for item in patch:
            if key not in item:
                raise bad_request(f"map: {item} does not contain declared merge key: {key}")
            place = next((index for index, each in enumerate(merged) if each.get(key) == item[key]), None)
            if place is None:
                merged.append(_without_marks(item))
            else:
                merged[place] = self.map(merged[place], item, field)
        return merged

    def _reorder(self, original: Document, patch: Document, field: str) -> None:
        for name in [name for name in patch if name.startswith(_ORDER)]:
            order, field_name = patch.pop(name), name.removeprefix(_ORDER)
            key = _key(field, field_name) or ""
            before, change = original.get(field_name), patch.pop(field_name, None)
            if before is None and change is None:
                continue
            if before is None or change is None:
                merged = before if before is not None else _without_directives(change)
            else:
                merged = self.items(before, change, key, field_name)
            original[field_name] = _ordered(merged, order, before or [], key)

    def _delete(self, original: Document, name: str, values: list[Any]) -> None:
        if name in original:
            original[name] = [each for each in original[name] if each not in values]


def _key(field: str, name: str) -> str | None:
    """The merge key of a list; None where a patch replaces the whole list."""
    place = f"{field}.{name}"
    return None if place in _PLAIN_IN else _KEYS.get(place, _KEYS.get(name))


def _directed(patch: Document) -> Document:
    directive = patch.pop(_DIRECTIVE)
    if directive == "replace":
        return patch
    if directive == "delete":
        return {}
    raise bad_request(f"Unknown patch type {directive} in map: {patch}")


def _retain(original: Document, patch: Document) -> None:
    retained = patch.pop(_RETAIN, None)
    if retained is None:
        return
    if any(value is not None and not name.startswith("$") and name not in retained for name, value in patch.items()):
        raise bad_request("invalid patch format of retainKeys")
    for name in [name for name in original if name not in retained]:
        del original[name]


def _special(original: list[Any], patch: list[Any], key: str) -> tuple[list[Any], list[Any]]:
    """Items that say what to do, rather than what to be, are done and dropped."""
    plain = [item for item in patch if _DIRECTIVE not in item]
    for item in patch:
        directive = item.get(_DIRECTIVE)
        if directive == "delete":
            original = [each for each in original if each.get(key) != item.get(key)]
        elif directive not in (None, "replace"):
            raise bad_request(f"Unknown patch type {directive} in map: {item}")
    if any(item.get(_DIRECTIVE) == "replace" for item in patch):
        return [_without_marks(item) for item in plain], []
    return original, plain


def _ordered(merged: list[Any], patch: list[Any], server: list[Any], key: str) -> list[Any]:
    """The patch's items in its order, the server's other ones in theirs, interleaved as the server had them."""

    def name_of(item: Any) -> Any:
        return item.get(key) if key else item

    wanted, known = _ranks(patch, name_of), _ranks(server, name_of)
    ours = sorted((each for each in merged if name_of(each) in wanted), key=lambda each: wanted[name_of(each)])
    theirs = [each for each in merged if name_of(each) not in wanted]
    theirs.sort(key=lambda each: known.get(name_of(each), len(known)))
    result: list[Any] = []
    while ours and theirs:
        left, right = known.get(name_of(theirs[0])), known.get(name_of(ours[0]))
        is_before = left is not None and right is not None and left < right
        result.append((theirs if is_before else ours).pop(0))
    return [*result, *ours, *theirs]


def _ranks(items: list[Any], name_of: Callable[[Any], Any]) -> dict[Any, int]:
    ranks: dict[Any, int] = {}
    for index, item in enumerate(items):
        ranks.setdefault(name_of(item), index)
    return ranks


def _without_directives(value: Any) -> Any:
    """A new value may not carry directives; one that is nothing else is None."""
    if isinstance(value, dict):
        if _DIRECTIVE in value:
            return None
        kept = {name: _without_directives(entry) for name, entry in value.items() if not name.startswith("$")}
        return {name: entry for name, entry in kept.items() if entry is not None}
    if isinstance(value, list):
        return [kept for entry in value if (kept := _without_directives(entry)) is not None]
    return value


def _without_marks(value: Any) -> Any:
    """A new item comes as it is, but no struct knows what its directives would be."""
    if isinstance(value, dict):
        return {name: _without_marks(entry) for name, entry in value.items() if not name.startswith("$")}
    return [_without_marks(entry) for entry in value] if isinstance(value, list) else value


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(entry) for name, entry in value.items() if entry is not None}
    return value
