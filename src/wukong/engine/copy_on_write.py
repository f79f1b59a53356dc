"""Small dicts and other values kept by key, shared between an index and its forks until one side writes to them.

Which entries there are is shared, too (layered_dict.py): a fork costs what was changed since the last one. Of a dict
with more than a few names a fork keeps what it changed: a copy would write to every one of them.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Protocol, Self, TypeVar

from wukong.engine.layered_dict import LayeredDict

Key = TypeVar("Key")
Name = TypeVar("Name")
Value = TypeVar("Value")
_FEW = 8  # names of a dict that is copied


class CopyOnWriteDicts(LayeredDict[Key, MutableMapping[Name, Value]]):
    """Read it like a dict of dicts; write only through `own`. Empty entries are not kept."""

    __slots__ = ("_owned",)

    def __init__(self, entries: Mapping[Key, MutableMapping[Name, Value]] | None = None) -> None:
        super().__init__(entries or {})
        self._owned: set[Key] = set()

    def own(self, key: Key) -> MutableMapping[Name, Value]:
        """The entry at `key` for writing: made if there is none, copied if a fork may share it."""
        if key in self._owned:
            return self._own[key]
        self[key] = entry = _fork_entry(self.get(key))
        self._owned.add(key)
        return entry

    def put(self, key: Key, entry: Mapping[Name, Value]) -> None:
        """Replace the whole entry."""
        self[key] = dict(entry)
        self._owned.add(key)
        self.drop_if_empty(key)

    def drop_if_empty(self, key: Key) -> None:
        if not self[key]:
            del self[key]
            self._owned.discard(key)

    def fork(self) -> Self:
        self._owned.clear()
        return super().fork()


def _fork_entry(entry: MutableMapping[Name, Value] | None) -> MutableMapping[Name, Value]:
    if entry is None:
        return {}
    if isinstance(entry, LayeredDict):
        return entry.fork()
    return LayeredDict.over(entry) if isinstance(entry, dict) and len(entry) > _FEW else dict(entry)


class CopiedList(list[Value]):
    """A list as an entry of CopyOnWriteEntries."""

    def fork(self) -> Self:
        return type(self)(self)


class Forkable(Protocol):
    def fork(self) -> Self: ...


Entry = TypeVar("Entry", bound=Forkable)


class CopyOnWriteEntries(LayeredDict[Key, Entry]):
    """Read it like a dict; change an entry only after `own`. What is put in belongs to this side alone."""

    __slots__ = ("_owned",)

    def __init__(self) -> None:
        super().__init__()
        self._owned: set[Key] = set()  # may hold keys that are gone

    def __setitem__(self, key: Key, entry: Entry) -> None:
        super().__setitem__(key, entry)
        self._owned.add(key)

    def own(self, key: Key) -> Entry:
        """The entry at `key`, for changing: copied if a fork may share it."""
        if key in self._owned:
            return self[key]
        self[key] = entry = self[key].fork()
        return entry

    def fork(self) -> Self:
        self._owned.clear()
        return super().fork()
