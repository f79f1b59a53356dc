"""Small dicts kept by key, shared between a snapshot and its forks until one side writes to them."""

from __future__ import annotations

from typing import TypeVar

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
