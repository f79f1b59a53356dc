"""Sets of fields as managedFields has them (FieldsV1), as nested maps.

    {"f:spec": {"f:containers": {'k:{"name":"main"}': {".": {}, "f:image": {}}}}}

A path is the sequence of steps to a field. patch/merge_keys.py says which lists are merged by keys and which maps are
one field. Used by field_managers.py. Pure: every function returns a new set or document that shares unchanged parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

import msgspec

from wukong.embedded.store.patch.merge_keys import Shape
from wukong.ports import Document

Path = tuple[str, ...]
Fields = dict[str, Any]  # a tree of steps; a leaf is {}, an item of a list that is also a field itself has "."
_SELF = "."
_encode = msgspec.json.Encoder(order="sorted").encode


def leaf_paths_of(value: Any, shape: Shape, path: Path = ()) -> Iterator[Path]:
    """Yield the paths of the fields that a document sets; an empty document sets none."""
    steps = list(_children_of(value, shape))
    if not steps and path:
        yield path
    for step, child, inner in steps:
        if step.startswith("k:"):
            yield (*path, step, _SELF)
        yield from leaf_paths_of(child, inner, (*path, step))


def diff_fields(before: Any, after: Any, shape: Shape, path: Path = ()) -> Iterator[tuple[Path, bool]]:
    """Yield the path of each field that differs, and whether it is set in `after` (else it was removed)."""
    if before is after or before == after:
        return
    if isinstance(before, dict) and isinstance(after, dict) and not shape.is_atomic:
        yield from _diff_maps(before, after, shape, path)
        return
    if not isinstance(before, dict | list) and not isinstance(after, dict | list):  # nothing is below them
        yield path, True
        return
    if isinstance(before, list) and isinstance(after, list) and before and after and shape.keys:
        before, after = _drop_shared(before, after), _drop_shared(after, before)
    old = {step: (value, inner) for step, value, inner in _children_of(before, shape)}
    new = {step: (value, inner) for step, value, inner in _children_of(after, shape)}
    if not old and not new:
        yield path, True
        return
    if shape.is_map and bool(old) != bool(new):  # a map that comes or goes is a field itself
        yield (*path, _SELF), bool(new)
    for step in {**old, **new}:
        here = (*path, step)
        if step not in new:
            value, inner = old[step]
            yield from ((removed_path, False) for removed_path in _all_paths_of(value, inner, here))
        elif step not in old:
            value, inner = new[step]
            yield from ((added_path, True) for added_path in _all_paths_of(value, inner, here))
        else:
            yield from diff_fields(old[step][0], new[step][0], new[step][1], here)


def _drop_shared(items: list[Any], others: list[Any]) -> list[Any]:
    """Return the items that are not in the other list as identical objects, for those do not differ."""
    shared_ids = {id(item) for item in others}
    return [item for item in items if id(item) not in shared_ids]


def _diff_maps(before: Document, after: Document, shape: Shape, path: Path) -> Iterator[tuple[Path, bool]]:
    """Do the same for two maps. Most of their fields are identical objects and cost nothing."""
    if shape.is_map and bool(before) != bool(after):  # a map that comes or goes is a field itself
        yield (*path, _SELF), bool(after)
    for name, old in before.items():
        if name not in after:
            yield from (
                (removed_path, False) for removed_path in _all_paths_of(old, shape.child(name), (*path, f"f:{name}"))
            )
        elif (new := after[name]) is not old:
            yield from diff_fields(old, new, shape.child(name), (*path, f"f:{name}"))
    for name, new in after.items():
        if name not in before:
            yield from (
                (added_path, True) for added_path in _all_paths_of(new, shape.child(name), (*path, f"f:{name}"))
            )


def add_paths(fields: Fields, paths: Iterable[Path]) -> Fields:
    """Return a copy of the set with these fields added."""
    tree: Fields = {}
    for path in paths:
        here = tree
        for step in path:
            here = here.setdefault(step, {})
    return _merge_tree(fields, tree)


def _merge_tree(fields: Fields, tree: Fields) -> Fields:
    if not fields:
        return tree
    changed = {}
    for step, inner in tree.items():
        present = fields.get(step)
        merged = inner if present is None else _merge_tree(present, inner) if inner else present
        if merged is not present:
            changed[step] = merged
    return {**fields, **changed} if changed else fields


def remove_paths(fields: Fields, paths: Iterable[Path]) -> Fields:
    """Return a copy without these fields, or the set itself where it has none of them."""
    for path in paths:
        if path[0] in fields:  # the sets of most other managers have none of them
            fields = remove_path(fields, path)
    return fields


def remove_path(fields: Fields, path: Path) -> Fields:
    """Return a copy without this field and all that is below it. Branches left empty are removed, too."""
    below = fields.get(path[0]) if path else None
    if below is None:
        return fields
    if len(path) > 1 and (remaining := remove_path(below, path[1:])):
        return fields if remaining is below else {**fields, path[0]: remaining}
    return {step: inner for step, inner in fields.items() if step != path[0]}


def has_path(fields: Fields, path: Path) -> bool:
    for step in path:
        if step not in fields:
            return False
        fields = fields[step]
    return not fields or _SELF in fields


def covers_path(fields: Fields, path: Path) -> bool:
    """Whether the field of this path, or one below it, is in the set. For an item of a list only the item counts."""
    if path[-1] == _SELF:
        return has_path(fields, path[:-1])
    for step in path:
        if step not in fields:
            return False
        fields = fields[step]
    return True


def removable_paths_of(fields: Fields) -> list[Path]:
    """Return the paths of a set and their prefixes, the shortest first. Items of lists go only with their "."."""
    prefixes = {path[:length] for path in paths_of(fields) for length in range(1, len(path) + 1)}
    return sorted((path for path in prefixes if not path[-1].startswith("k:")), key=lambda path: (len(path), path))


def paths_of(fields: Fields, path: Path = ()) -> Iterator[Path]:
    for step, inner in fields.items():
        if step == _SELF or not inner:
            yield (*path, step)
        else:
            yield from paths_of(inner, (*path, step))


def merge_applied(live: Any, applied: Any, shape: Shape) -> Any:
    """Return the live value with the applied one merged into it."""
    if shape.is_atomic or not isinstance(live, type(applied)):
        return applied
    if isinstance(applied, dict):
        both = {**live, **{name: value for name, value in applied.items() if name not in live}}
        return {
            name: merge_applied(live[name], applied[name], shape.child(name))
            if name in live and name in applied
            else value
            for name, value in both.items()
        }
    if isinstance(applied, list) and (shape.keys or shape.is_set):
        live_items, applied_items = dict(_keyed_items(live, shape)), dict(_keyed_items(applied, shape))
        return [
            merge_applied(live_items[step], applied_items[step], shape.item())
            if step in live_items and step in applied_items
            else (applied_items if step in applied_items else live_items)[step]
            for step in _interleave(list(live_items), list(applied_items))
        ]
    return applied


def _interleave(live: list[str], applied: list[str]) -> list[str]:
    """Order items as structured-merge-diff does: as applied, with the others where they were among those."""
    shared = [step for step in applied if step in live]
    order: list[str] = []
    left, right = 0, 0
    while left < len(live) or right < len(applied):
        if left < len(live):
            step = live[left]
            if step in order:
                left += 1
                continue
            if right < len(applied) and step != applied[right] and step in shared and step != shared[0]:
                left += 1  # it comes later, with another applied item
                continue
            if step not in applied:
                order.append(step)
                left += 1
                continue
        order.append(applied[right])
        shared = [step for step in shared if step != applied[right]]
        right += 1
    return order


def remove_field(document: Any, path: Path, shape: Shape) -> Any:
    """Return the document without the field of this path. An item is removed as a whole with its "."."""
    step, rest = path[0], path[1:]
    if isinstance(document, dict):
        name = step.removeprefix("f:")
        if name not in document:
            return document
        if not rest:
            return {key: value for key, value in document.items() if key != name}
        return {**document, name: remove_field(document[name], rest, shape.child(name))}
    if isinstance(document, list):
        items = list(_keyed_items(document, shape))
        if not rest or rest == (_SELF,):
            return [item for item_step, item in items if item_step != step]
        return [remove_field(item, rest, shape.item()) if item_step == step else item for item_step, item in items]
    return document


def format_path(path: Path) -> str:
    """Format a path as in the message of a conflict: `.spec.containers[name="main"].image`."""
    text = ""
    for step in path:
        if step.startswith("f:"):
            text += f".{step[2:]}"
        elif step.startswith("k:"):
            keys = msgspec.json.decode(step[2:])
            text += f"[{','.join(f'{name}={_encode(value).decode()}' for name, value in keys.items())}]"
        elif step.startswith("v:"):
            text += f"[={step[2:]}]"
    return text


def _all_paths_of(value: Any, shape: Shape, path: Path) -> Iterator[Path]:
    """Yield all paths that are added or removed with a value: maps and items are fields themselves then."""
    if not shape.is_atomic and isinstance(value, dict) and value:
        if path[-1].startswith("k:") or shape.is_map:
            yield (*path, _SELF)
        for name, child in value.items():
            yield from _all_paths_of(child, shape.child(name), (*path, f"f:{name}"))
        return
    if path[-1].startswith("k:"):
        yield (*path, _SELF)
    yield from leaf_paths_of(value, shape, path)


def _children_of(value: Any, shape: Shape) -> Iterator[tuple[str, Any, Shape]]:
    """Yield step, value and shape of each field or item right below a value; none where it is one field by itself."""
    if shape.is_atomic:
        return
    if isinstance(value, dict):
        for name, child in value.items():
            yield f"f:{name}", child, shape.child(name)
    elif isinstance(value, list) and (shape.keys or shape.is_set):
        for step, item in _keyed_items(value, shape):
            yield step, item, shape.item()


def _keyed_items(items: list[Any], shape: Shape) -> Iterator[tuple[str, Any]]:
    for item in items:
        if shape.is_set or not isinstance(item, dict):
            yield f"v:{_encode(item).decode()}", item
        elif len(shape.keys) == 1 and isinstance(text := item.get(shape.keys[0]), str):
            yield _key_step(shape.keys[0], text), item
        else:
            yield f"k:{_encode(_keys_of(item, shape)).decode()}", item


@lru_cache(8192)
def _key_step(key: str, text: str) -> str:
    """Return the step to an item with one key, as nearly all have."""
    return f"k:{_encode({key: text}).decode()}"


def _keys_of(item: Document, shape: Shape) -> Document:
    values = {key: item.get(key, shape.default_of(key)) for key in shape.keys}
    return {key: value for key, value in values.items() if value is not None}
