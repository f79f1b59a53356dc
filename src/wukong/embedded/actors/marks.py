"""Names with marks, and the names of each mark in order: what a walk over thousands would find, kept as they change.

    marks.put("n1", {READY, UPDATED})     marks.count(READY)     marks.names(UPDATED)

Used by the DaemonSet and the StatefulSet controllers, which mark nodes and ordinals by the state of their pods.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Hashable, Sequence, Set
from typing import Generic, TypeVar

Name = TypeVar("Name", str, int)
Mark = TypeVar("Mark", bound=Hashable)


class Marks(Generic[Name, Mark]):
    def __init__(self) -> None:
        self._marks: dict[Name, Set[Mark]] = {}
        self._names: dict[Mark, list[Name]] = {}

    def put(self, name: Name, marks: Set[Mark]) -> None:
        """Give a name these marks instead of those it had; without any it is forgotten."""
        before = self._marks.pop(name, frozenset())
        if marks:
            self._marks[name] = marks
        for mark in before - marks:
            names = self._names[mark]
            del names[bisect_left(names, name)]
            if not names:
                del self._names[mark]
        for mark in marks - before:
            insort(self._names.setdefault(mark, []), name)

    def count(self, mark: Mark) -> int:
        return len(self._names.get(mark, ()))

    def names(self, mark: Mark) -> Sequence[Name]:
        """Those that have this mark, in order."""
        return self._names.get(mark, ())

    def fork(self) -> Marks[Name, Mark]:
        copy: Marks[Name, Mark] = Marks()
        copy._marks = dict(self._marks)
        copy._names = {mark: list(names) for mark, names in self._names.items()}
        return copy
