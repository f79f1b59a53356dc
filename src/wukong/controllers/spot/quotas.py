"""Whether a ResourceQuota would refuse the replacements of pods. Pure.

Used by owners.py, before a workload is scaled: a surge whose pods nobody may create is none. Goes by what the quota's
status says is used, and by the pod that is to be replaced. Counted are pods, cpu and memory; quotas on anything else
refuse when they refuse.
"""

from __future__ import annotations

from collections.abc import Iterator

from wukong.api.core import Pod
from wukong.api.quantity import NANO, parse_quantity
from wukong.api.quota import ResourceQuota, ScopedSelectorRequirement
from wukong.errors import InputError
from wukong.semantics.requests import Amounts, add_amounts, parse_quantities, sum_containers
from wukong.state import State

_COMPUTE = ("cpu", "memory")


def find_quota_refusal(pod: Pod, count: int, state: State) -> str:
    """Which quota would refuse so many more pods like this one, and why; "" if none would."""
    demand = _measure(pod)
    for key, quota in sorted(state.of(ResourceQuota).items()):
        if key.namespace != pod.metadata.namespace or not isinstance(quota, ResourceQuota):
            continue
        if not _is_about(quota, pod):
            continue
        for name, hard in sorted(quota.status.hard.items()):
            used = quota.status.used.get(name, "0")
            if name in demand and _parse(used) + count * demand[name] > _parse(hard):
                return f"ResourceQuota {key.name} has no room for {count} more: {used} of {hard} {name} are used"
    return ""


def _measure(pod: Pod) -> Amounts:
    """What a quota counts of this pod, in billionths."""
    try:
        requests = sum_containers(pod.spec, lambda container, _: parse_quantities(container.resources.requests))
        limits = sum_containers(pod.spec, lambda container, _: parse_quantities(container.resources.limits))
        overhead = parse_quantities(pod.spec.overhead)
    except InputError:
        return {}
    add_amounts(requests, overhead)
    add_amounts(limits, {name: amount for name, amount in overhead.items() if name in limits})
    demand = {"pods": NANO, "count/pods": NANO}
    for name in _COMPUTE:
        if name in requests:
            demand |= {name: requests[name], f"requests.{name}": requests[name]}
        if name in limits:
            demand[f"limits.{name}"] = limits[name]
    return demand


def _parse(quantity: str | int | float) -> int:
    try:
        return parse_quantity(quantity)
    except InputError:
        return 0


def _is_about(quota: ResourceQuota, pod: Pod) -> bool:
    """Whether the quota counts a pod that a workload with replicas makes anew."""
    return all(_matches(requirement, pod) for requirement in _list_requirements(quota))


def _list_requirements(quota: ResourceQuota) -> Iterator[ScopedSelectorRequirement]:
    for scope in quota.spec.scopes:
        yield ScopedSelectorRequirement(scope_name=scope, operator="Exists")
    if quota.spec.scope_selector is not None:
        yield from quota.spec.scope_selector.match_expressions


def _matches(requirement: ScopedSelectorRequirement, pod: Pod) -> bool:
    scope = requirement.scope_name
    if scope == "PriorityClass":
        name, operator = pod.spec.priority_class_name, requirement.operator
        if operator in ("Exists", "DoesNotExist"):
            return bool(name) == (operator == "Exists")
        return (name in requirement.values) == (operator == "In")
    if scope in ("BestEffort", "NotBestEffort"):
        resources = [container.resources for container in (*pod.spec.containers, *pod.spec.init_containers)]
        is_best_effort = not any(it.requests or it.limits for it in resources)
        return is_best_effort == (scope == "BestEffort")
    return scope == "NotTerminating"  # replicas have no deadline; and scopes unknown here refuse nothing
