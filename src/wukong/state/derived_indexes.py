"""What somebody derives from the mirror, kept current by every change, so that a decision costs what changed.

    counts = state.index_of(Counts)     made of all objects when first asked for, then handed each change

A derived index belongs to one State. A fork makes its own when it is asked for one, and a list taken in again is a
series of changes like any other: at any time it is what it would be, made anew. tests/state holds every index to that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Protocol, TypeVar

from wukong.api.meta import Object
from wukong.api.resources import Key


class DerivedIndex(Protocol):
    """Made without arguments. `kinds` are the groups and kinds whose changes it is handed."""

    kinds: ClassVar[frozenset[str]]

    def note(self, group_kind: str, key: Key, old: Object | None, new: Object | None) -> None:
        """An object came (no `old`), changed, or went (no `new`)."""
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

    def note(self, group_kind: str, key: Key, old: Object | None, new: Object | None) -> None:
        for index in self._by_kind.get(group_kind, ()):
            index.note(group_kind, key, old, new)
