"""What somebody derives from the mirror, kept current by every change, so that a decision costs what changed.

    counts = state.index_of(Counts)     made of all objects when first asked for, then handed each change

A derived index belongs to one State; a fork of the State has forks of its indexes. A list taken in again is a series of
changes like any other: at any time an index is what it would be, made anew. tests/state holds every index to that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Protocol, Self, TypeVar

from wukong.api.meta import Object
from wukong.api.resources import Key


class DerivedIndex(Protocol):
    """Made without arguments. `kinds` are the groups and kinds whose changes it is handed."""

    kinds: ClassVar[frozenset[str]]

    def note(self, group_kind: str, key: Key, old: Object | None, new: Object | None) -> None:
        """An object came (no `old`), changed, or went (no `new`)."""
        ...

    def fork(self) -> Self:
        """An independent copy, which shares what neither side has changed since."""
        ...


I = TypeVar("I", bound=DerivedIndex)  # noqa: E741


class DerivedIndexes:
    def __init__(self) -> None:
        self._by_class: dict[type[DerivedIndex], DerivedIndex] = {}
        self._by_kind: dict[str, list[DerivedIndex]] = {}

    def get(self, make: type[I], objects: Mapping[str, Mapping[Key, Object]]) -> I:
        index = self._by_class.get(make)
        if index is None:
            index = self._by_class[make] = make()
            for group_kind in sorted(make.kinds):
                self._by_kind.setdefault(group_kind, []).append(index)
                for key, subject in objects.get(group_kind, {}).items():
                    index.note(group_kind, key, None, subject)
        assert isinstance(index, make)
        return index

    def fork(self) -> DerivedIndexes:
        copy = DerivedIndexes()
        forks = {id(index): index.fork() for index in self._by_class.values()}
        copy._by_class = {make: forks[id(index)] for make, index in self._by_class.items()}
        copy._by_kind = {kind: [forks[id(index)] for index in indexes] for kind, indexes in self._by_kind.items()}
        return copy

    def note(self, group_kind: str, key: Key, old: Object | None, new: Object | None) -> None:
        for index in self._by_kind.get(group_kind, ()):
            index.note(group_kind, key, old, new)
