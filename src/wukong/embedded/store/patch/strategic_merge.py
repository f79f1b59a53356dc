"""Strategic merge patches for built-in kinds, as apimachinery's strategicpatch applies them. Called by patch.py; pure.

Lists with a merge key are merged item by item, other lists are replaced. The keys are those of Kubernetes' struct tags,
looked up by the field's name, and by its parent's where names alone are ambiguous. `$patch`, `$setElementOrder`,
`$deleteFromPrimitiveList` and `$retainKeys` are supported. The order is strategicpatch's, too: new items come before
those only the server knows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wukong.api.kinds import POD_DISRUPTION_BUDGETS
from wukong.embedded.store.api_errors import bad_request
from wukong.embedded.store.documents import has_same_items, has_same_values, is_same_json
from wukong.embedded.store.kinds import OwnKeys
from wukong.ports import Document

_MERGE_KEYS: dict[str, str] = {  # field, or parent.field → merge key; "" for lists of plain values
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
    "ports": "containerPort",
}
_REPLACED_LISTS = {"spec.finalizers"}  # of a Namespace: not merged
_REPLACED_MAPS = {POD_DISRUPTION_BUDGETS.group_kind: {"spec.selector"}}  # maps that a patch replaces
_DIRECTIVE = "$patch"
_SET_ORDER, _DELETE_VALUES, _RETAIN_KEYS = "$setElementOrder/", "$deleteFromPrimitiveList/", "$retainKeys"


def apply_strategic_patch(group_kind: str, document: Document, patch: Any, own: OwnKeys = ()) -> Document:
    """Return the patched document, which shares unchanged parts with the old. `patch` may be changed.

    `own` are merge keys of this kind alone.
    """
    if not isinstance(patch, dict):
        raise bad_request("error decoding patch: expected an object")
    return _Merge(group_kind, own).merge_maps(document, patch, "")


def merge_key_function(group_kind: str, own: OwnKeys = ()) -> Callable[[str, str], str | None] | None:
    """Return what gives the merge key of a list by the names of its parent and itself; None where it is replaced.

    There is none for kinds of which patches replace whole maps.
    """
    merge = _Merge(group_kind, own)
    return None if merge.replaced_maps else merge.merge_key_of


class _Merge:
    """One strategic merge. `field` is always the name of the field that holds what is merged."""

    def __init__(self, group_kind: str, own: OwnKeys) -> None:
        self.replaced_maps = _REPLACED_MAPS.get(group_kind, set())
        self.merge_keys = {**_MERGE_KEYS, **{path: keys[0] for path, keys in own}} if own else _MERGE_KEYS

    def merge_maps(self, original: Document, patch: Document, field: str) -> Document:
        if _DIRECTIVE in patch:
            return _follow_directive(patch)
        result = dict(original)
        _retain_keys(result, patch)
        self._reorder(result, patch, field)
        for name, value in patch.items():
            if name.startswith(_DELETE_VALUES):
                self._delete_values(result, name.removeprefix(_DELETE_VALUES), value)
            elif value is None:
                result.pop(name, None)
            else:
                self._set_field(result, name, value, field)
        return original if has_same_values(original, result) else result

    def _set_field(self, original: Document, name: str, value: Any, field: str) -> None:
        if not isinstance(value, dict | list):  # most are plain
            if not is_same_json(original.get(name), value):
                original[name] = value
            return
        before, place = original.get(name), f"{field}.{name}"
        if isinstance(before, dict) and isinstance(value, dict):
            original[name] = value if place in self.replaced_maps else self.merge_maps(before, value, name)
        elif (
            isinstance(before, list) and isinstance(value, list) and (key := self.merge_key_of(field, name)) is not None
        ):
            merged = self.merge_lists(before, value, key, name)
            original[name] = before if has_same_items(before, merged) else merged
        elif is_same_json(before, value):
            return
        elif (cleaned := _without_directives(value)) is not None:
            original[name] = (
                _without_nulls_in_maps(cleaned) if before is None or type(before) is not type(value) else cleaned
            )
        else:
            original.pop(name, None)

    def merge_lists(self, original: list[Any], patch: list[Any], key: str, field: str) -> list[Any]:
        if not key:
            merged = list(dict.fromkeys([*original, *patch]))
        else:
            original, patch = _follow_item_directives(original, patch, key)
            merged = self._merge_by_key(original, patch, key, field)
        return sort_items(merged, patch, original, key)

    def _merge_by_key(self, original: list[Any], patch: list[Any], key: str, field: str) -> list[Any]:
        merged = list(original)
        for item in patch:
            if key not in item:
                raise bad_request(f"map: {item} does not contain declared merge key: {key}")
            index = next((number for number, existing in enumerate(merged) if existing.get(key) == item[key]), None)
            if index is None:
                merged.append(_without_directive_keys(item))
            else:
                merged[index] = self.merge_maps(merged[index], item, field)
        return merged

    def _reorder(self, original: Document, patch: Document, field: str) -> None:
        for name in [name for name in patch if name.startswith(_SET_ORDER)]:
            order, field_name = patch.pop(name), name.removeprefix(_SET_ORDER)
            key = self.merge_key_of(field, field_name) or ""
            before, change = original.get(field_name), patch.pop(field_name, None)
            if before is None and change is None:
                continue
            if before is None or change is None:
                merged = before if before is not None else _without_directives(change)
            else:
                merged = self.merge_lists(before, change, key, field_name)
            original[field_name] = sort_items(merged, order, before or [], key)

    def _delete_values(self, original: Document, name: str, values: list[Any]) -> None:
        if name in original:
            original[name] = [value for value in original[name] if value not in values]

    def merge_key_of(self, field: str, name: str) -> str | None:
        """Return the merge key of a list, or None where a patch replaces the whole list."""
        place = f"{field}.{name}"
        return None if place in _REPLACED_LISTS else self.merge_keys.get(place, self.merge_keys.get(name))


def _follow_directive(patch: Document) -> Document:
    directive = patch.pop(_DIRECTIVE)
    if directive == "replace":
        return patch
    if directive == "delete":
        return {}
    raise bad_request(f"Unknown patch type {directive} in map: {patch}")


def _retain_keys(original: Document, patch: Document) -> None:
    retained = patch.pop(_RETAIN_KEYS, None)
    if retained is None:
        return
    if any(value is not None and not name.startswith("$") and name not in retained for name, value in patch.items()):
        raise bad_request("invalid patch format of retainKeys")
    for name in [name for name in original if name not in retained]:
        del original[name]


def _follow_item_directives(original: list[Any], patch: list[Any], key: str) -> tuple[list[Any], list[Any]]:
    """Follow the `$patch` directives among the items. Returns the original and the patch that remain to be merged."""
    plain_items = [item for item in patch if _DIRECTIVE not in item]
    for item in patch:
        directive = item.get(_DIRECTIVE)
        if directive == "delete":
            original = [existing for existing in original if existing.get(key) != item.get(key)]
        elif directive not in (None, "replace"):
            raise bad_request(f"Unknown patch type {directive} in map: {item}")
    if any(item.get(_DIRECTIVE) == "replace" for item in patch):
        return [_without_directive_keys(item) for item in plain_items], []
    return original, plain_items


def sort_items(merged: list[Any], patch: list[Any], server: list[Any], key: str) -> list[Any]:
    """Sort the patch's items in its order and the server's others in theirs, interleaved as the server had them."""

    def name_of(item: Any) -> Any:
        return item.get(key) if key else item

    patch_ranks, server_ranks = _rank_items(patch, name_of), _rank_items(server, name_of)
    patch_items = sorted(
        (item for item in merged if name_of(item) in patch_ranks), key=lambda item: patch_ranks[name_of(item)]
    )
    server_items = [item for item in merged if name_of(item) not in patch_ranks]
    server_items.sort(key=lambda item: server_ranks.get(name_of(item), len(server_ranks)))
    result: list[Any] = []
    while patch_items and server_items:
        server_rank, patch_rank = server_ranks.get(name_of(server_items[0])), server_ranks.get(name_of(patch_items[0]))
        is_server_first = server_rank is not None and patch_rank is not None and server_rank < patch_rank
        result.append((server_items if is_server_first else patch_items).pop(0))
    return [*result, *patch_items, *server_items]


def _rank_items(items: list[Any], name_of: Callable[[Any], Any]) -> dict[Any, int]:
    ranks: dict[Any, int] = {}
    for index, item in enumerate(items):
        ranks.setdefault(name_of(item), index)
    return ranks


def _without_directives(value: Any) -> Any:
    """Return a new value without directives, or None where it is nothing but a directive."""
    if isinstance(value, dict):
        if _DIRECTIVE in value:
            return None
        cleaned = {name: _without_directives(entry) for name, entry in value.items() if not name.startswith("$")}
        return {name: entry for name, entry in cleaned.items() if entry is not None}
    if isinstance(value, list):
        return [cleaned for entry in value if (cleaned := _without_directives(entry)) is not None]
    return value


def _without_directive_keys(value: Any) -> Any:
    """Return a new item without its directives, which no struct knows."""
    if isinstance(value, dict):
        return {name: _without_directive_keys(entry) for name, entry in value.items() if not name.startswith("$")}
    return [_without_directive_keys(entry) for entry in value] if isinstance(value, list) else value


def _without_nulls_in_maps(value: Any) -> Any:
    """A copy without nulls in maps. Lists are left as they are, as strategicpatch does."""
    if isinstance(value, dict):
        return {name: _without_nulls_in_maps(entry) for name, entry in value.items() if entry is not None}
    return value
