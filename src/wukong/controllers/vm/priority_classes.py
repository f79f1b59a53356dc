"""The controller of PriorityClasses: one for each priority that a Wukong asks for, there before a pod names it.

Keys are names of classes. What is unused is marked first and deleted later; whoever would use a marked class waits
until the mark is gone. So no pod is ever refused for want of a class that we have deleted:

                 somebody uses it                       unused for UNUSED_SECONDS
    absent ────────────────────────► there ──► marked ────────────────────────► deleted, at the version with the mark
                                       ▲          │
                                       └──────────┘ somebody uses it again: the mark is removed, which makes another
                                                    version, and a deletion that is on its way fails

A class counts as used while a Wukong asks for it, and while a VirtualMachine or an instance names it: a migration makes
another pod of an instance, long after its Wukong has asked for something else. Only classes with our label are touched.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from wukong.actions import DONE, Create, Delete, Outcome, Patch
from wukong.api.core import PriorityClass
from wukong.api.kinds import PRIORITY_CLASSES, VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES, WUKONGS
from wukong.api.kubevirt import VirtualMachine, VirtualMachineInstance
from wukong.api.meta import Object
from wukong.api.placement import SchedulingPolicy
from wukong.api.resources import Key
from wukong.api.times import format_time, parse_time
from wukong.api.vm import Wukong
from wukong.controllers.vm.priority_limits import PriorityLimits, find_priority_problems, policy_of
from wukong.engine.copy_on_write import CopyOnWriteDicts
from wukong.placement.vm import build_priority_class, priority_class_name_of
from wukong.placement.vm.priority import MANAGED_BY, MANAGER
from wukong.ports import PatchBody
from wukong.state import State
from wukong.state.controller import Watch, each_side

UNUSED = "vm.novasphere.dev/unused-since"  # an annotation: the mark
UNUSED_SECONDS = 600.0
_PREFIX = "wukong-"


def class_named_by(subject: Object) -> str:
    """The PriorityClass of ours that an object asks for; "" if none."""
    if isinstance(subject, Wukong):
        return priority_class_name_of(policy_of(subject))
    if isinstance(subject, VirtualMachine):
        name = _dig(subject.spec, "template", "spec", "priorityClassName")
    elif isinstance(subject, VirtualMachineInstance):
        name = subject.spec.get("priorityClassName")
    else:
        return ""
    return name if isinstance(name, str) and name.startswith(_PREFIX) else ""


def _dig(document: Any, *names: str) -> Any:
    for name in names:
        document = document.get(name) if isinstance(document, dict) else None
    return document


class ClassUsers:
    """Who asks for each class: group and kind, and key."""

    kinds: ClassVar[frozenset[str]] = frozenset(
        resource.group_kind for resource in (WUKONGS, VIRTUAL_MACHINES, VIRTUAL_MACHINE_INSTANCES)
    )

    def __init__(self) -> None:
        self._by_class: CopyOnWriteDicts[str, tuple[str, Key], None] = CopyOnWriteDicts()

    def list_wukongs(self, name: str) -> list[Key]:
        return sorted(key for group_kind, key in self._by_class.get(name, ()) if group_kind == WUKONGS.group_kind)

    def is_named_by_vms(self, name: str) -> bool:
        return any(group_kind != WUKONGS.group_kind for group_kind, _ in self._by_class.get(name, ()))

    def note(self, group_kind: str, key: Key, old: Object | None, new: Object | None) -> None:
        before = class_named_by(old) if old is not None else ""
        after = class_named_by(new) if new is not None else ""
        if before == after:
            return
        if before:
            self._by_class.own(before).pop((group_kind, key), None)
            self._by_class.drop_if_empty(before)
        if after:
            self._by_class.own(after)[group_kind, key] = None

    def fork(self) -> ClassUsers:
        copy = ClassUsers()
        copy._by_class = self._by_class.fork()
        return copy


@each_side
def class_of(subject: Object, state: State) -> Iterable[Key]:
    name = class_named_by(subject)
    return (Key("", name),) if name else ()


class PriorityClasses:
    name = "vm-priority"
    watches = (
        Watch(PRIORITY_CLASSES),
        Watch(WUKONGS, class_of),
        Watch(VIRTUAL_MACHINES, class_of, optional=True),
        Watch(VIRTUAL_MACHINE_INSTANCES, class_of, optional=True),
    )

    def __init__(self, limits: PriorityLimits | None = None) -> None:
        self.limits = limits or PriorityLimits()

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        priority_class = state.get(PriorityClass, key)
        policy = self._find_policy(key.name, state)
        if priority_class is None:
            return DONE if policy is None else Outcome((Create(PRIORITY_CLASSES, build_priority_class(policy)),))
        if priority_class.metadata.labels.get(MANAGED_BY) != MANAGER or not key.name.startswith(_PREFIX):
            return DONE
        is_used = policy is not None or state.index_of(ClassUsers).is_named_by_vms(key.name)
        marked_at = priority_class.metadata.annotations.get(UNUSED)
        if is_used:
            return DONE if marked_at is None else Outcome((_mark(priority_class, None),))
        if marked_at is None:
            return Outcome((_mark(priority_class, format_time(now)),), requeue_after=UNUSED_SECONDS)
        left = (parse_time(marked_at) or 0.0) + UNUSED_SECONDS - now
        if left > 0:
            return Outcome(requeue_after=left)
        meta = priority_class.metadata
        return Outcome((Delete(PRIORITY_CLASSES, key, uid=meta.uid, resource_version=meta.resource_version),))

    def _find_policy(self, name: str, state: State) -> SchedulingPolicy | None:
        """What a Wukong asks for that may ask for this class."""
        for key in state.index_of(ClassUsers).list_wukongs(name):
            wukong = state.get(Wukong, key)
            if wukong is not None and not find_priority_problems(wukong, self.limits):
                return policy_of(wukong)
        return None


def _mark(priority_class: PriorityClass, since: str | None) -> Patch:
    """Set or remove the mark, at the version that was read."""
    meta = priority_class.metadata
    body = {"metadata": {"resourceVersion": meta.resource_version, "annotations": {UNUSED: since}}}
    return Patch(PRIORITY_CLASSES, Key("", meta.name), PatchBody("merge", body))


def find_class_obstacle(wukong: Wukong, state: State) -> tuple[str, str] | None:
    """Why the PriorityClass of a Wukong cannot be named yet, as reason and message; None if it can."""
    policy = policy_of(wukong)
    name = priority_class_name_of(policy)
    if not name or policy is None:
        return None
    priority_class = state.get(PriorityClass, Key("", name))
    if priority_class is None or UNUSED in priority_class.metadata.annotations:
        return "WaitingForPriorityClass", f"PriorityClass {name} is not there yet."
    wanted = build_priority_class(policy)
    found = (priority_class.value, priority_class.preemption_policy or "PreemptLowerPriority")
    if found != (wanted["value"], wanted["preemptionPolicy"]):
        return "PriorityClassTaken", (
            f"PriorityClass {name} is somebody else's: it has value {found[0]} and {found[1]}, not {wanted['value']} "
            f"and {wanted['preemptionPolicy']}. Delete it, and it is created as it should be."
        )
    return None
