"""A budget that never allows an eviction: a drain, and every upgrade of a node, waits for ever."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import ceil

from wukong.api.apps import PodDisruptionBudget
from wukong.api.core import Pod
from wukong.api.kinds import KINDS
from wukong.api.meta import controller_of
from wukong.forecast.fields import PlanWarning
from wukong.forecast.warnings.situation import Situation, covers

CODE = "budget-never-allows"
_PERCENT = re.compile(r"(\d{1,9})%")
_SCALED_OWNERS = ("ReplicaSet", "StatefulSet")  # their pods are counted by what their workloads ask for


def find(situation: Situation) -> Iterator[PlanWarning]:
    for budget in situation.touched_budgets:
        counts = _list_counts(situation, budget)
        if counts and all(count_allowed(budget, count) == 0 for count in counts):
            yield _warn(budget, counts[0])


def _list_counts(situation: Situation, budget: PodDisruptionBudget) -> list[int]:
    """How many pods it may cover: as many as are asked for now, and as autoscalers may ask for. 0 is left out."""
    now = most = _count_unscaled_pods(situation, budget)
    for workload in situation.all_workloads:
        if workload.replicas is None or not covers(budget, workload):
            continue
        autoscaler = situation.autoscaler_of(KINDS.group_kind_of(type(workload.workload)), workload.key)
        now += workload.replicas
        most += max(workload.replicas, autoscaler.spec.max_replicas if autoscaler is not None else 0)
    return [count for count in dict.fromkeys((now, most)) if count > 0]


def _count_unscaled_pods(situation: Situation, budget: PodDisruptionBudget) -> int:
    """Pods of DaemonSets, Jobs and nobody that it covers."""
    keys = situation.state.pods.list_matching(budget.metadata.namespace, budget.spec.selector)
    pods = (situation.state.get(Pod, key) for key in keys)
    owners = [controller_of(pod.metadata) for pod in pods if pod is not None and not pod.is_finished]
    return sum(owner is None or owner.kind not in _SCALED_OWNERS for owner in owners)


def count_allowed(budget: PodDisruptionBudget, count: int) -> int | None:
    """How many of so many healthy pods may go at once; None if what the budget says cannot be read."""
    if budget.spec.max_unavailable is not None:
        return _resolve(budget.spec.max_unavailable, count)
    least = _resolve(budget.spec.min_available or 0, count)
    return None if least is None else max(0, count - least)


def _resolve(value: int | str, count: int) -> int | None:
    """A number of pods, or a percentage of them, rounded up as for every budget."""
    if isinstance(value, int):
        return value
    match = _PERCENT.fullmatch(value)
    return ceil(int(match[1]) * count / 100) if match else None


def _warn(budget: PodDisruptionBudget, count: int) -> PlanWarning:
    is_least = budget.spec.max_unavailable is None
    field = "minAvailable" if is_least else "maxUnavailable"
    value = budget.spec.min_available if is_least else budget.spec.max_unavailable
    pods = f"{count} pods" if count != 1 else "1 pod"
    fix = "Set maxUnavailable: 1"
    if count == 1:
        fix += "; with a single replica that means a short outage at every drain, so run two"
    return PlanWarning(
        code=CODE,
        subject=f"PodDisruptionBudget {budget.key}",
        path=f"$.spec.{field}",
        text=f"{field} {value} of {pods} never allows an eviction: a drain or an upgrade of a node waits for ever.",
        fix=f"{fix}.",
    )
