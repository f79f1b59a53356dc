"""The controller of the PriorityClasses that Wukongs ask for. ../priority_classes.py says when they come and go.

A class counts as used while a Wukong asks for it, and while a VirtualMachine or an instance names it: a migration makes
another pod of an instance, long after its Wukong has asked for something else.
"""

from __future__ import annotations

from typing import Any, ClassVar

from wukong.api.core import PriorityClass
from wukong.api.kinds import PRIORITY_CLASSES, VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES, WUKONGS
from wukong.api.kubevirt import VirtualMachine, VirtualMachineInstance
from wukong.api.meta import Object
from wukong.api.resources import Key
from wukong.api.vm import Wukong
from wukong.controllers.priority_classes import ClassUserIndex, SharedPriorityClasses, classes_of
from wukong.controllers.vm.priority_limits import PriorityLimits, find_priority_problems, policy_of
from wukong.placement.vm import build_priority_class, priority_class_name_of
from wukong.ports import Document
from wukong.state import State
from wukong.state.controller import Watch

UNUSED = "vm.novasphere.dev/unused-since"  # an annotation: the mark
_PREFIX = "wukong-"


class ClassUsers(ClassUserIndex):
    kinds: ClassVar[frozenset[str]] = frozenset(
        resource.group_kind for resource in (WUKONGS, VIRTUAL_MACHINES, VIRTUAL_MACHINE_INSTANCES)
    )
    asking: ClassVar[frozenset[str]] = frozenset((WUKONGS.group_kind,))

    @staticmethod
    def class_named_by(subject: Object) -> str:
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


class PriorityClasses(SharedPriorityClasses):
    name = "vm-priority"
    prefix, unused, users = _PREFIX, UNUSED, ClassUsers
    watches = (
        Watch(PRIORITY_CLASSES),
        Watch(WUKONGS, classes_of(ClassUsers)),
        Watch(VIRTUAL_MACHINES, classes_of(ClassUsers), optional=True),
        Watch(VIRTUAL_MACHINE_INSTANCES, classes_of(ClassUsers), optional=True),
    )

    def __init__(self, limits: PriorityLimits | None = None) -> None:
        self.limits = limits or PriorityLimits()

    def build_class(self, name: str, state: State) -> Document | None:
        for key in state.index_of(ClassUsers).list_asking(name):
            wukong = state.get(Wukong, key)
            if wukong is not None and not find_priority_problems(wukong, self.limits):
                policy = policy_of(wukong)
                assert policy is not None
                return build_priority_class(policy)
        return None


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
