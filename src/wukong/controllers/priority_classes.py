"""Shared PriorityClasses of ours: one for each priority that somebody asks for, there before a pod names it.

Keys are names of classes. What is unused is marked first and deleted later; whoever would use a marked class waits
until the mark is gone. So no pod is ever refused for want of a class that we have deleted:

                 somebody uses it                       unused for UNUSED_SECONDS
    absent ────────────────────────► there ──► marked ────────────────────────► deleted, at the version with the mark
                                       ▲          │
                                       └──────────┘ somebody uses it again: the mark is removed, which makes another
                                                    version, and a deletion that is on its way fails

vm/priority_classes.py and policy/priority_classes.py say who asks for a class, and who uses it without asking. Each has
a prefix of its own, and only classes with it and with our label are touched.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Self

from wukong.actions import DONE, Create, Delete, Outcome, Patch
from wukong.api.core import PriorityClass
from wukong.api.kinds import PRIORITY_CLASSES
from wukong.api.meta import Object
from wukong.api.resources import Key
from wukong.api.times import format_time, parse_time
from wukong.engine.copy_on_write import CopyOnWriteDicts
from wukong.placement.vm.priority import MANAGED_BY, MANAGER
from wukong.ports import Document, PatchBody
from wukong.state import State
from wukong.state.controller import KeysOf, each_side

UNUSED_SECONDS = 600.0


class ClassUserIndex:
    """Who uses each class: group and kind, and key. A derived index; `asking` are the kinds that have one made."""

    kinds: ClassVar[frozenset[str]]
    asking: ClassVar[frozenset[str]]

    def __init__(self) -> None:
        self._by_class: CopyOnWriteDicts[str, tuple[str, Key], None] = CopyOnWriteDicts()

    @staticmethod
    def class_named_by(subject: Object) -> str:
        """The PriorityClass of ours that an object asks for, or uses; "" if none."""
        raise NotImplementedError

    def list_asking(self, name: str) -> list[Key]:
        return sorted(key for group_kind, key in self._by_class.get(name, ()) if group_kind in self.asking)

    def is_used(self, name: str) -> bool:
        """By one that does not ask for it."""
        return any(group_kind not in self.asking for group_kind, _ in self._by_class.get(name, ()))

    def note(self, group_kind: str, key: Key, old: Object | None, new: Object | None) -> None:
        before = self.class_named_by(old) if old is not None else ""
        after = self.class_named_by(new) if new is not None else ""
        if before == after:
            return
        if before:
            self._by_class.own(before).pop((group_kind, key), None)
            self._by_class.drop_if_empty(before)
        if after:
            self._by_class.own(after)[group_kind, key] = None

    def fork(self) -> Self:
        copy = type(self)()
        copy._by_class = self._by_class.fork()
        return copy


def classes_of(index: type[ClassUserIndex]) -> KeysOf:
    """The keys of a watch: the classes that an object used and uses."""

    @each_side
    def class_of(subject: Object, state: State) -> Iterable[Key]:
        name = index.class_named_by(subject)
        return (Key("", name),) if name else ()

    return class_of


class SharedPriorityClasses:
    """What both controllers do. They say `prefix`, `unused` (the annotation that is the mark) and `users`."""

    prefix: ClassVar[str]
    unused: ClassVar[str]
    users: ClassVar[type[ClassUserIndex]]

    def build_class(self, name: str, state: State) -> Document | None:
        """The class of this name as somebody who may ask for it does; None if nobody does."""
        raise NotImplementedError

    def is_used(self, name: str, state: State) -> bool:
        """Whether somebody needs the class who need not ask for it."""
        return state.index_of(self.users).is_used(name)

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        priority_class = state.get(PriorityClass, key)
        wanted = self.build_class(key.name, state)
        if priority_class is None:
            return DONE if wanted is None else Outcome((Create(PRIORITY_CLASSES, wanted),))
        meta = priority_class.metadata
        if meta.labels.get(MANAGED_BY) != MANAGER or not key.name.startswith(self.prefix):
            return DONE
        is_used = wanted is not None or self.is_used(key.name, state)
        marked_at = meta.annotations.get(self.unused)
        if is_used:
            return DONE if marked_at is None else Outcome((self._mark(priority_class, None),))
        if marked_at is None:
            return Outcome((self._mark(priority_class, format_time(now)),), requeue_after=UNUSED_SECONDS)
        left = (parse_time(marked_at) or 0.0) + UNUSED_SECONDS - now
        if left > 0:
            return Outcome(requeue_after=left)
        return Outcome((Delete(PRIORITY_CLASSES, key, uid=meta.uid, resource_version=meta.resource_version),))

    def _mark(self, priority_class: PriorityClass, since: str | None) -> Patch:
        """Set or remove the mark, at the version that was read."""
        meta = priority_class.metadata
        body = {"metadata": {"resourceVersion": meta.resource_version, "annotations": {self.unused: since}}}
        return Patch(PRIORITY_CLASSES, Key("", meta.name), PatchBody("merge", body))
