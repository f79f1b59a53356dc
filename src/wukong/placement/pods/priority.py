"""The PriorityClasses that policies ask for: one per value and preemption policy, shared by all that say it. Pure.

A policy gives a value, or names a class that somebody made. Of `critical` alone the value is CRITICAL_PRIORITY.
"""

from __future__ import annotations

from wukong.api.placement import GROUP, PlacementPolicySpec
from wukong.api.policy_parts import Priority
from wukong.placement.vm.priority import build_class_document, name_priority_class
from wukong.ports import Document

CRITICAL_PRIORITY = 1000  # at and above it pods are critical
PREFIX = "placement"
UNUSED = f"{GROUP}/unused-since"  # an annotation of a class of ours that nobody uses: it will be deleted


def policy_class_name_of(spec: PlacementPolicySpec) -> str:
    """The class that pods of a policy get: `placement-1000`, or the one it names; "" where it says nothing of it."""
    priority = _priority_of(spec)
    if priority is None:
        return ""
    return priority.class_name or name_priority_class(PREFIX, priority.value or 0, priority.preemption_policy)


def build_policy_class(spec: PlacementPolicySpec) -> Document | None:
    """The class that a policy needs and that is ours to make; None where it names one, or none."""
    priority = _priority_of(spec)
    if priority is None or priority.class_name:
        return None
    description = "Shared by the placement policies that ask for this priority."
    return build_class_document(
        policy_class_name_of(spec), priority.value or 0, priority.preemption_policy, description
    )


def _priority_of(spec: PlacementPolicySpec) -> Priority | None:
    if spec.priority is None and spec.critical:
        return Priority(value=CRITICAL_PRIORITY)
    return spec.priority
