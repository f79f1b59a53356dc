"""What somebody keeps count of, told every change of a mirror, so that a decision costs what changed, not all there is.

    counts = state.derived(Counts)     made of all objects when first asked for, then told each change

A follower belongs to one State. A fork makes its own when it is asked for one, and a list taken in again is a series of
changes like any other: at any time it is what it would be, made anew. tests/state holds every follower to that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Protocol, TypeVar

from wukong.api.meta import Object
from wukong.api.resources import Key


class DerivedIndex(Protocol):
    """Made without arguments. `kinds` are those it is told of."""

    kinds: ClassVar[frozenset[str]]

    def note(self, kind: str, key: Key, old: Object | None, new: Object | None) -> None:
        """An object came (no `old`), changed, or went (no `new`)."""
        ...


F = TypeVar("F", bound=DerivedIndex)


class DerivedIndexes:
    def __init__(self) -> None:
        self._made: dict[type[DerivedIndex], DerivedIndex] = {}
        self._by_kind: dict[str, list[DerivedIndex]] = {}

    def get(self, make: type[F], objects: Mapping[str, Mapping[Key, Object]]) -> F:
        found = self._made.get(make)
        if found is None:
            found = self._made[make] = make()
            for kind in sorted(make.kinds):
                self._by_kind.setdefault(kind, []).append(found)
                for key, each in objects.get(kind, {}).items():
                    found.note(kind, key, None, each)
        assert isinstance(found, make)
        return found

    def note(self, kind: str, key: Key, old: Object | None, new: Object | None) -> None:
        for follower in self._by_kind.get(kind, ()):
            follower.note(kind, key, old, new)
