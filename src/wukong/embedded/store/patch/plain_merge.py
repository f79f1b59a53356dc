"""Merge and strategic merge patches in one pass: merged, brought into normal form, copied, and compared.

For the plain patches that controllers send by the thousand, onto documents that are in normal form already. What comes
out is what merge_patch.py or strategic_merge.py and then normalize.py make of them (tests/embedded hold it to that),
and it shares with the stored document, as the very objects, all that did not change. Called by patch.py; pure.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wukong.embedded.store.documents import has_same_items, is_same_json
from wukong.embedded.store.normalize import EMPTY_LIST_STAYS, MAPS, OPAQUE, ZERO_IS_ABSENT, normalize_map
from wukong.embedded.store.patch.strategic_merge import sort_items
from wukong.ports import Document

MergeKeyOf = Callable[[str, str], str | None]  # the names of a parent and of its list → merge key; None: replaced


class NotPlainError(Exception):
    """The patch has directives or values that only the general way knows."""


def merge_plain(document: Document, patch: Any, merge_key_of: MergeKeyOf | None) -> Document:
    """Return the patched document, or `document` itself if nothing changes. Keeps no part of `patch`.

    `merge_key_of` is for strategic patches. Raises NotPlainError, and Invalid for a quantity that cannot be read.
    """
    if patch.__class__ is not dict:
        raise NotPlainError
    return _PlainMerge(merge_key_of).merge_map(document, patch, "")


class _PlainMerge:
    def __init__(self, merge_key_of: MergeKeyOf | None) -> None:
        self.merge_key_of = merge_key_of
        self.is_strategic = merge_key_of is not None

    def merge_map(self, before: Document, patch: Document, field: str) -> Document:
        """`field` is the name of the field that holds the map."""
        result: Document | None = None
        is_strategic = self.is_strategic
        for name, value in patch.items():
            if is_strategic and name[:1] == "$":
                raise NotPlainError
            old, type_ = before.get(name), value.__class__
            if type_ is str:
                if value == old:
                    continue
                new = value or None
            elif value is None:
                new = None
            elif type_ is dict:
                new = self._merge_field(old, value, name)
            elif type_ is list:
                new = self._merge_list(old, value, field, name)
            elif type_ is int or type_ is bool or type_ is float:
                if old.__class__ is type_ and old == value:
                    continue
                new = value if value or name not in ZERO_IS_ABSENT else None
            else:
                raise NotPlainError
            if new is old:
                continue
            if result is None:
                result = dict(before)
            if new is None:
                del result[name]
            else:
                result[name] = new
        return before if result is None else result

    def _merge_field(self, old: Any, value: Document, name: str) -> Document | None:
        if name in MAPS:
            return self._merge_entries(old, value, name)
        if name in OPAQUE:
            raise NotPlainError
        return self.merge_map(old, value, name) if old.__class__ is dict else self._build_map(value)

    def _merge_entries(self, old: Any, value: Document, name: str) -> Document | None:
        """Merge a map by any name, such as labels. One without entries is left out."""
        merged: Document = dict(old) if old.__class__ is dict else {}
        for key, entry in value.items():
            if entry.__class__ not in (str, int, float, bool, None.__class__) or (self.is_strategic and key[:1] == "$"):
                raise NotPlainError
            if entry is None:
                merged.pop(key, None)
            else:
                merged[key] = entry
        normalized = normalize_map(name, merged) or None
        return old if is_same_json(old, normalized) else normalized

    def _merge_list(self, old: Any, value: list[Any], field: str, name: str) -> list[Any] | None:
        if old.__class__ is list and self.merge_key_of is not None:
            key = self.merge_key_of(field, name)
            if key is not None:
                merged = self._merge_items(old, value, key, name)
                return old if has_same_items(old, merged) else merged
        built = self._build_list(name, value)
        return old if is_same_json(old, built) else built

    def _merge_items(self, old: list[Any], value: list[Any], key: str, name: str) -> list[Any]:
        remaining = _items_by_key(old, key)
        keys = _items_by_key(value, key)
        changed: dict[str, Document] = {}
        for text, item in keys.items():
            existing = remaining.pop(text, None)
            changed[text] = self._build_map(item) if existing is None else self.merge_map(existing, item, name)
        if not remaining:  # all are the patch's, and in its order
            return list(changed.values())
        merged = [changed.pop(item[key], item) for item in old]
        return sort_items([*merged, *changed.values()], value, old, key)

    def _build_map(self, value: Document) -> Document:
        """Return a new map in normal form."""
        result: Document = {}
        for name, entry in value.items():
            if self.is_strategic and name[:1] == "$":
                raise NotPlainError
            type_ = entry.__class__
            if type_ is str:
                if entry:
                    result[name] = entry
            elif entry is None:
                continue
            elif type_ is dict:
                new = self._merge_field(None, entry, name)
                if new is not None:
                    result[name] = new
            elif type_ is list:
                items = self._build_list(name, entry)
                if items is not None:
                    result[name] = items
            elif type_ is int or type_ is bool or type_ is float:
                if entry or name not in ZERO_IS_ABSENT:
                    result[name] = entry
            else:
                raise NotPlainError
        return result

    def _build_list(self, name: str, values: list[Any]) -> list[Any] | None:
        if name in OPAQUE:
            raise NotPlainError
        items = []
        for item in values:
            type_ = item.__class__
            if type_ is dict:
                items.append(self._build_map(item))
            elif type_ is str or type_ is int or type_ is bool or type_ is float:
                items.append(item)
            else:
                raise NotPlainError
        return items if items or name in EMPTY_LIST_STAYS else None


def _items_by_key(items: list[Any], key: str) -> dict[str, Document]:
    """Return the items by their merge key. Raises NotPlainError where two have the same, or one has none."""
    by_key: dict[str, Document] = {}
    for item in items:
        text = item.get(key) if item.__class__ is dict else None
        if text.__class__ is not str:
            raise NotPlainError
        by_key[text] = item
    if len(by_key) != len(items):
        raise NotPlainError
    return by_key
