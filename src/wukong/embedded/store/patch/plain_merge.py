"""Merge and strategic merge patches in one pass: merged, brought into normal form, copied, and compared.

For the plain patches that controllers send by the thousand, onto documents that are in normal form already. What comes
out is what merge_patch.py or strategic_merge.py and then normalize.py make of them (tests/embedded hold it to that),
and it shares with the stored document, as the very objects, all that did not change. Called by patch.py; pure.
"""

from __future__ import annotations

from typing import Any

from wukong.api.field_types import Type
from wukong.embedded.store.documents import has_same_items, is_same_json
from wukong.embedded.store.normalize import MAPS, OPAQUE, ZERO_IS_ABSENT, normalize_map
from wukong.embedded.store.patch.strategic_merge import merge_field, sort_items, type_within
from wukong.ports import Document

_AMBIGUOUS = frozenset({"readOnly"})  # keeps its zero in some structs and not in others


class NotPlainError(Exception):
    """The patch has directives or values that only the general way knows."""


def merge_plain(document: Document, patch: Any, type_: Type | None, *, is_strategic: bool) -> Document:
    """Return the patched document, of this type, or itself if nothing changes. Keeps no part of `patch`.

    Raises NotPlainError, and Invalid for a quantity that cannot be read.
    """
    if patch.__class__ is not dict:
        raise NotPlainError
    return _PlainMerge(is_strategic).merge_map(document, patch, type_)


class _PlainMerge:
    def __init__(self, is_strategic: bool) -> None:
        self.is_strategic = is_strategic

    def merge_map(self, before: Document, patch: Document, type_: Type | None) -> Document:
        result: Document | None = None
        is_strategic = self.is_strategic
        for name, value in patch.items():
            if is_strategic and name[:1] == "$":
                raise NotPlainError
            old, class_ = before.get(name), value.__class__
            if class_ is str:
                if value == old:
                    continue
                if not value:  # some fields keep it
                    raise NotPlainError
                new = value
            elif value is None:
                new = None
            elif class_ is dict:
                new = self._merge_field(old, value, name, type_)
            elif class_ is list:
                new = self._merge_list(old, value, name, type_)
            elif class_ is int or class_ is bool or class_ is float:
                if old.__class__ is class_ and old == value:
                    continue
                if not value and name in _AMBIGUOUS:
                    raise NotPlainError
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

    def _merge_field(self, old: Any, value: Document, name: str, type_: Type | None) -> Document | None:
        if name in MAPS:
            return self._merge_entries(old, value, name)
        if name in OPAQUE:
            raise NotPlainError
        return self.merge_map(old, value, type_within(type_, name)) if old.__class__ is dict else self._build_map(value)

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

    def _merge_list(self, old: Any, value: list[Any], name: str, type_: Type | None) -> list[Any] | None:
        if old.__class__ is list and self.is_strategic:
            field = merge_field(type_, name)
            if field is not None and field.merge_key is not None:
                merged = self._merge_items(old, value, field.merge_key, field.type.inner)
                return old if has_same_items(old, merged) else merged
        built = self._build_list(name, value)
        return old if is_same_json(old, built) else built

    def _merge_items(self, old: list[Any], value: list[Any], key: str, item_type: Type | None) -> list[Any]:
        remaining = _items_by_key(old, key)
        keys = _items_by_key(value, key)
        changed: dict[str, Document] = {}
        for text, item in keys.items():
            existing = remaining.pop(text, None)
            changed[text] = self._build_map(item) if existing is None else self.merge_map(existing, item, item_type)
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
            class_ = entry.__class__
            if class_ is str:
                if not entry:
                    raise NotPlainError
                result[name] = entry
            elif entry is None:
                continue
            elif class_ is dict:
                new = self._merge_field(None, entry, name, None)
                if new is not None:
                    result[name] = new
            elif class_ is list:
                result[name] = self._build_list(name, entry)
            elif class_ is int or class_ is bool or class_ is float:
                if not entry and name in _AMBIGUOUS:
                    raise NotPlainError
                if entry or name not in ZERO_IS_ABSENT:
                    result[name] = entry
            else:
                raise NotPlainError
        return result

    def _build_list(self, name: str, values: list[Any]) -> list[Any]:
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
        if not items:  # a list may be wrong where it stands, empty or not
            raise NotPlainError
        return items


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
