"""Whose eviction would break a PodDisruptionBudget, when several pods are to be evicted at once.

Called by preemption.py only; evictions through the API have their own rules.
"""

from __future__ import annotations

from wukong.api.apps import PodDisruptionBudget
from wukong.api.core import Pod
from wukong.rules.selectors import requirements, selects


def split_by_budget(
    pods: list[Pod], budgets: list[PodDisruptionBudget], *, stop_at_first: bool = False
) -> tuple[list[Pod], list[Pod]]:
    """Pods whose eviction breaks a budget, and the others, both in the given order. Each pod uses up what is left.

    `stop_at_first`: a pod is charged to its budgets only up to the first one it breaks.
    """
    left = [budget.status.disruptions_allowed for budget in budgets]
    breaking: list[Pod] = []
    sparing: list[Pod] = []
    for pod in pods:
        is_broken = False
        for index, budget in enumerate(budgets):
            if covers(budget, pod) and not (is_broken and stop_at_first):
                left[index] -= 1
                is_broken = is_broken or left[index] < 0
        (breaking if is_broken else sparing).append(pod)
    return breaking, sparing


def covers(budget: PodDisruptionBudget, pod: Pod) -> bool:
    """Empty selectors cover nobody here, pods without labels are not covered, and pods already let go are free."""
    conditions = requirements(budget.spec.selector)
    if not conditions or not pod.metadata.labels or budget.metadata.namespace != pod.metadata.namespace:
        return False
    return selects(conditions, pod.metadata.labels) and pod.metadata.name not in budget.status.disrupted_pods
