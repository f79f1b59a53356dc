"""Who may ask for which priority. Pure; used by the controllers of Wukongs and of PriorityClasses."""

from __future__ import annotations

import msgspec

from wukong.api.placement import SchedulingPolicy
from wukong.api.vm import Wukong

_PATH = "$.spec.scheduling.schedulingPolicy.priority"


class PriorityLimits(msgspec.Struct, frozen=True):
    """Far below the 2,000,000,000 of system classes, and above what people number workloads by."""

    highest: int = 1_000_000
    namespaces: tuple[str, ...] = ()  # those that may ask for more than 0; () for all


def policy_of(wukong: Wukong) -> SchedulingPolicy | None:
    scheduling = wukong.spec.scheduling
    return scheduling.scheduling_policy if scheduling is not None else None


def find_priority_problems(wukong: Wukong, limits: PriorityLimits) -> list[str]:
    """Why this Wukong may not have the priority that it asks for."""
    policy = policy_of(wukong)
    priority = policy.priority if policy is not None else None
    if priority is None or priority <= 0:
        return []
    if priority > limits.highest:
        return [
            f"{_PATH}: expected at most {limits.highest} here, got {priority}. Lower it, or have the operator of the "
            "component vm raise --max-priority."
        ]
    namespace = wukong.metadata.namespace
    if limits.namespaces and namespace not in limits.namespaces:
        return [
            f"{_PATH}: expected at most 0 in namespace {namespace}, got {priority}: only "
            f"{', '.join(limits.namespaces)} may ask for more (--priority-namespaces)."
        ]
    return []
