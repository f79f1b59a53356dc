"""Strategic merge patches for built-in kinds, as apimachinery's strategicpatch applies them. Called by patch.py; pure.

Lists with a merge key are merged item by item, other lists are replaced. The keys are those of Kubernetes' struct tags,
in the table of field types. `$patch`, `$setElementOrder`,
`$deleteFromPrimitiveList` and `$retainKeys` are supported. The order is strategicpatch's, too: new items come before
those only the server knows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wukong.api.field_types import MAP, STRUCT, Field, Type
from wukong.embedded.store.api_errors import bad_request
from wukong.embedded.store.documents import has_same_items, has_same_values, is_same_json
from wukong.errors import ServerFailed
from wukong.ports import Document

_DIRECTIVE = "$patch"
_SET_ORDER, _DELETE_VALUES, _RETAIN_KEYS = "$setElementOrder/", "$deleteFromPrimitiveList/", "$retainKeys"


def apply_strategic_patch(type_: Type | None, document: Document, patch: Any) -> Document:
    """Return the patched document, of this type, which shares unchanged parts with the old. `patch` may be changed."""
    if not isinstance(patch, dict):
        raise bad_request("error decoding patch: expected an object")
    return _merge_maps(document, patch, type_)


def merge_field(type_: Type | None, name: str) -> Field | None:
    """The field of this name in a map of this type, if it is known."""
    return type_.fields.get(name) if type_ is not None and type_.shape == STRUCT else None


def type_within(type_: Type | None, name: str) -> Type | None:
    """The type of what a map of this type has at this name."""
    if type_ is not None and type_.shape == MAP:
        return type_.inner
    field = merge_field(type_, name)
    return field.type if field is not None else None


def _merge_maps(original: Document, patch: Document, type_: Type | None) -> Document:
    if _DIRECTIVE in patch:
        return _follow_directive(patch)
    result = dict(original)
    _retain_keys(result, patch)
    _reorder(result, patch, type_)
    for name, value in patch.items():
        if name.startswith(_DELETE_VALUES):
            _delete_values(result, name.removeprefix(_DELETE_VALUES), value)
        elif value is None:
            result.pop(name, None)
        else:
            _set_field(result, name, value, type_)
    return original if has_same_values(original, result) else result


def _set_field(original: Document, name: str, value: Any, type_: Type | None) -> None:
    if not isinstance(value, dict | list):  # most are plain
        if not is_same_json(original.get(name), value):
            original[name] = value
        return
    before, field = original.get(name), merge_field(type_, name)
    if isinstance(before, dict) and isinstance(value, dict):
        is_replaced = field is not None and field.is_replaced
        original[name] = value if is_replaced else _merge_maps(before, value, type_within(type_, name))
    elif isinstance(before, list) and isinstance(value, list) and field is not None and field.merge_key is not None:
        merged = _merge_lists(before, value, field)
        original[name] = before if has_same_items(before, merged) else merged
    elif is_same_json(before, value):
        return
    elif (cleaned := _without_directives(value)) is not None:
        original[name] = (
            _without_nulls_in_maps(cleaned) if before is None or type(before) is not type(value) else cleaned
        )
    else:
        original.pop(name, None)


def _merge_lists(original: list[Any], patch: list[Any], field: Field) -> list[Any]:
    key = field.merge_key or ""
    if key and not all(isinstance(item, dict) for item in patch):
        raise ServerFailed("list element types are not identical", reason="InternalError")
    if not key:
        merged = list(dict.fromkeys([*original, *patch]))
    else:
        original, patch = _follow_item_directives(original, patch, key)
        merged = _merge_by_key(original, patch, key, field.type.inner)
    return sort_items(merged, patch, original, key)


def _merge_by_key(original: list[Any], patch: list[Any], key: str, item_type: Type | None) -> list[Any]:
    merged = list(original)
    for item in patch:
        if key not in item:
            raise bad_request(f"map: {item} does not contain declared merge key: {key}")
        index = next((number for number, existing in enumerate(merged) if existing.get(key) == item[key]), None)
        if index is None:
            merged.append(_without_directive_keys(item))
        else:
            merged[index] = _merge_maps(merged[index], item, item_type)
    return merged


def _reorder(original: Document, patch: Document, type_: Type | None) -> None:
    for directive in [name for name in patch if name.startswith(_SET_ORDER)]:
        order, name = patch.pop(directive), directive.removeprefix(_SET_ORDER)
        field = merge_field(type_, name)
        before, change = original.get(name), patch.pop(name, None)
        if before is None and change is None:
            continue
        if before is None or change is None or field is None:
            merged = before if before is not None else _without_directives(change)
        else:
            merged = _merge_lists(before, change, field)
        original[name] = sort_items(merged, order, before or [], (field.merge_key if field else "") or "")


def _delete_values(original: Document, name: str, values: list[Any]) -> None:
    if name in original:
        original[name] = [value for value in original[name] if value not in values]


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
