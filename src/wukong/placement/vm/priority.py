"""The PriorityClasses of Wukongs: one per value and preemption policy, shared by all who ask for the same. Pure.

value and preemptionPolicy of a class are immutable, and while a class is away pods that name it are refused: a class of
its own for every Wukong would have to be replaced when its priority changes. So a change is another name.
"""

from __future__ import annotations

from wukong.api.placement import SchedulingPolicy
from wukong.ports import Document

MANAGED_BY = "app.kubernetes.io/managed-by"
MANAGER = "wukong"
NEVER = "Never"


def priority_class_name_of(policy: SchedulingPolicy | None) -> str:
    """`wukong-100`, `wukong-100-never`, `wukong-minus-5`; "" where nothing is asked that needs a class."""
    if policy is None or (policy.priority is None and policy.preemption_policy != NEVER):
        return ""
    return name_priority_class("wukong", policy.priority or 0, policy.preemption_policy)


def build_priority_class(policy: SchedulingPolicy) -> Document:
    """The class that priority_class_name_of names; ask it first."""
    name = priority_class_name_of(policy)
    assert name, "nothing is asked that needs a class"
    description = "Shared by the Wukongs that ask for this priority; removed when none does."
    return build_class_document(name, policy.priority or 0, policy.preemption_policy, description)


def name_priority_class(prefix: str, value: int, preemption_policy: str) -> str:
    """`placement-100`, `placement-100-never`, `placement-minus-5`"""
    number = str(value) if value >= 0 else f"minus-{-value}"
    return f"{prefix}-{number}-never" if preemption_policy == NEVER else f"{prefix}-{number}"


def build_class_document(name: str, value: int, preemption_policy: str, description: str) -> Document:
    """A PriorityClass of ours, ready to be created."""
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name, "labels": {MANAGED_BY: MANAGER}},
        "value": value,
        "preemptionPolicy": preemption_policy or "PreemptLowerPriority",
        "globalDefault": False,
        "description": description,
    }
