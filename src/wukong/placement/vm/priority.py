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
    value = policy.priority or 0
    number = str(value) if value >= 0 else f"minus-{-value}"
    return f"wukong-{number}-never" if policy.preemption_policy == NEVER else f"wukong-{number}"


def build_priority_class(policy: SchedulingPolicy) -> Document:
    """The class that priority_class_name_of names; ask it first."""
    name = priority_class_name_of(policy)
    assert name, "nothing is asked that needs a class"
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name, "labels": {MANAGED_BY: MANAGER}},
        "value": policy.priority or 0,
        "preemptionPolicy": policy.preemption_policy or "PreemptLowerPriority",
        "globalDefault": False,
        "description": "Shared by the Wukongs that ask for this priority; removed when none does.",
    }
