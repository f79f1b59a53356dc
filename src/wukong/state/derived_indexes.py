"""What somebody derives from the mirror, kept current by every change, so that a decision costs what changed.

    counts = state.index_of(Counts)     made of all objects when first asked for, then handed each change

A derived index belongs to one State; a fork of the State has forks of its indexes. A list taken in again is a series of
changes like any other: at any time an index is what it would be, made anew. tests/state holds every index to that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar, Protocol, Self, TypeVar

from wukong.api.kinds import PODS
from wukong.api.meta import Object, controller_of
from wukong.api.resources import Key

_PODS = PODS.group_kind


class DerivedIndex(Protocol):
    """Made without arguments. `kinds` are the groups and kinds whose changes it is handed. One that counts pods of one
    kind of controllers alone has a class attribute `pod_controller`, that kind: of other pods it is handed nothing."""

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
        self.by_class: dict[type[DerivedIndex], DerivedIndex] = {}
        self._by_kind: dict[str, list[DerivedIndex]] = {}
        self._by_pod_controller: dict[str, list[DerivedIndex]] = {}  # those that count only its pods

    def make(self, make: type[DerivedIndex], objects: Mapping[str, Mapping[Key, Object]]) -> None:
        """Make the index of this class, which is in `by_class` from now on."""
        index = self.by_class[make] = make()
        self._register(index)
        for group_kind in sorted(make.kinds):
            for key, subject in objects.get(group_kind, {}).items():
                index.note(group_kind, key, None, subject)

    def _register(self, index: DerivedIndex) -> None:
        pod_controller: str = getattr(index, "pod_controller", "")
        for group_kind in sorted(index.kinds):
            if group_kind == _PODS and pod_controller:
                self._by_pod_controller.setdefault(pod_controller, []).append(index)
            else:
                self._by_kind.setdefault(group_kind, []).append(index)

    def fork(self) -> DerivedIndexes:
        copy = DerivedIndexes()
        for make, index in self.by_class.items():
            copy.by_class[make] = fork = index.fork()
            copy._register(fork)
        return copy

    def note(self, group_kind: str, key: Key, old: Object | None, new: Object | None) -> None:
        for index in self._by_kind.get(group_kind, ()):
            index.note(group_kind, key, old, new)
        if group_kind == _PODS and self._by_pod_controller:
            for kind in _controllers_of(old, new):
                for index in self._by_pod_controller.get(kind, ()):
                    index.note(group_kind, key, old, new)


def _controllers_of(old: Object | None, new: Object | None) -> Iterable[str]:
    """The kinds of the controllers of a pod as it was, and as it is: none, one or two."""
    before = controller_of(old.metadata) if old is not None else None
    after = controller_of(new.metadata) if new is not None else None
    if before is None or after is None or before.kind == after.kind:
        controller = before or after
        return (controller.kind,) if controller is not None else ()
    return before.kind, after.kind
