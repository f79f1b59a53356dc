"""Small dicts and other values kept by key, shared between an index and its forks until one side writes to them."""

from __future__ import annotations

from typing import Protocol, Self, TypeVar

Key = TypeVar("Key")
Name = TypeVar("Name")
Value = TypeVar("Value")


class CopyOnWriteDicts(dict[Key, dict[Name, Value]]):
    """Read it like a dict of dicts; write only through `own`. Empty entries are not kept."""

    def __init__(self, entries: dict[Key, dict[Name, Value]] | None = None) -> None:
        super().__init__(entries or {})
        self._owned: set[Key] = set()

    def own(self, key: Key) -> dict[Name, Value]:
        """The entry at `key` for writing: made if there is none, copied if a fork may share it."""
        if key not in self._owned:
            self[key] = dict(self.get(key, ()))
            self._owned.add(key)
        return self[key]

    def put(self, key: Key, entry: dict[Name, Value]) -> None:
        """Replace the whole entry."""
        self[key] = dict(entry)
        self._owned.add(key)
        self.drop_if_empty(key)

    def drop_if_empty(self, key: Key) -> None:
        if not self[key]:
            del self[key]
            self._owned.discard(key)

    def fork(self) -> CopyOnWriteDicts[Key, Name, Value]:
        self._owned.clear()
        return CopyOnWriteDicts(self)


class Forkable(Protocol):
    def fork(self) -> Self: ...


Entry = TypeVar("Entry", bound=Forkable)


class CopyOnWriteEntries(dict[Key, Entry]):
    """Read it like a dict; change an entry only after `own`. What is put in belongs to this side alone."""

    def __init__(self, entries: dict[Key, Entry] | None = None) -> None:
        super().__init__(entries or {})
        self._shared: set[Key] = set(self)

    def own(self, key: Key) -> Entry:
        """The entry at `key`, for changing: copied if a fork may share it."""
        if key in self._shared:
            self._shared.discard(key)
            self[key] = self[key].fork()
        return self[key]

    def fork(self) -> CopyOnWriteEntries[Key, Entry]:
        self._shared = set(self)
        return CopyOnWriteEntries(self)
