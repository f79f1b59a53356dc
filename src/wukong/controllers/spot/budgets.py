"""What the budgets over pods allow now, less what was taken from them since. Pure.

Used by evictions.py, for one decision. A budget that has not been counted since it was changed allows nothing, and
under two budgets each eviction fails: as in the API server.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

from wukong.api.apps import PodDisruptionBudget
from wukong.api.core import Pod
from wukong.api.kinds import POD_DISRUPTION_BUDGETS
from wukong.api.meta import Object
from wukong.api.resources import Key, key_of
from wukong.controllers.spot.pending_evictions import PendingEvictions
from wukong.semantics.selectors import Selector, compile_selector, selects
from wukong.state import State


class Allowance(NamedTuple):
    """Whether a pod may be evicted as far as budgets are concerned; if not, why."""

    is_granted: bool
    budget: PodDisruptionBudget | None = None  # the one that covers it
    reason: str = ""


class Allowances:
    def __init__(self, state: State, pending: PendingEvictions) -> None:
        self._state, self._pending = state, pending
        self._left: dict[Key, int] = {}

    def take(self, pod: Pod) -> Allowance:
        """Take one from the budget over a pod, if it has one left."""
        covering = find_budgets(pod, self._state)
        if not covering:
            return Allowance(is_granted=True)
        if len(covering) > 1:
            names = " and ".join(budget.metadata.name for budget in covering)
            return Allowance(is_granted=False, reason=f"two PodDisruptionBudgets cover it: {names}")
        (budget,) = covering
        left = self.count_left(budget, pod)
        if left < 1:
            return Allowance(is_granted=False, budget=budget, reason=self._describe(budget))
        self._left[key_of(budget)] = left - 1
        return Allowance(is_granted=True, budget=budget)

    def count_left(self, budget: PodDisruptionBudget, pod: Pod) -> int:
        """How many of its pods may go; an eviction of this very pod that does not show yet is not counted."""
        key = key_of(budget)
        if budget.status.observed_generation < budget.metadata.generation:
            return 0
        if key not in self._left:
            taken = self._pending.count(key, besides=(pod.metadata.uid,))
            self._left[key] = budget.status.disruptions_allowed - taken
        return self._left[key]

    def _describe(self, budget: PodDisruptionBudget) -> str:
        return f"PodDisruptionBudget {budget.metadata.name} allows no disruption{self._name_users(budget)}"

    def _name_users(self, budget: PodDisruptionBudget) -> str:
        """Which of its pods use it up: those that are not ready, or on their way out."""
        away = sorted(pod.metadata.name for pod in self._list_covered(budget) if not _is_healthy(pod))
        if not away:
            return ""
        more = f" and {len(away) - 3} more" if len(away) > 3 else ""
        return f", for {', '.join(away[:3])}{more} {'is' if len(away) == 1 else 'are'} not ready"

    def _list_covered(self, budget: PodDisruptionBudget) -> list[Pod]:
        selector, namespace = compile_selector(budget.spec.selector), budget.metadata.namespace
        pods = (pod for key, pod in self._state.of(Pod).items() if key.namespace == namespace)
        return [
            pod
            for pod in pods
            if isinstance(pod, Pod) and not pod.is_finished and selects(selector, pod.metadata.labels)
        ]


class CompiledBudgets:
    """A derived index: the budgets of each namespace, with their selectors compiled."""

    kinds: ClassVar[frozenset[str]] = frozenset((POD_DISRUPTION_BUDGETS.group_kind,))

    def __init__(self) -> None:
        self.by_namespace: dict[str, dict[str, tuple[PodDisruptionBudget, Selector | None]]] = {}

    def note(self, group_kind: str, key: Key, old: Object | None, new: Object | None) -> None:
        budgets = self.by_namespace.setdefault(key.namespace, {})
        if isinstance(new, PodDisruptionBudget):
            budgets[key.name] = (new, compile_selector(new.spec.selector))
        else:
            budgets.pop(key.name, None)

    def fork(self) -> CompiledBudgets:
        copy = CompiledBudgets()
        copy.by_namespace = {namespace: dict(budgets) for namespace, budgets in self.by_namespace.items()}
        return copy


def find_budgets(pod: Pod, state: State) -> list[PodDisruptionBudget]:
    """Those over this pod, by name."""
    budgets = state.index_of(CompiledBudgets).by_namespace.get(pod.metadata.namespace, {})
    return [budget for _, (budget, selector) in sorted(budgets.items()) if selects(selector, pod.metadata.labels)]


def _is_healthy(pod: Pod) -> bool:
    ready = any(condition.type == "Ready" and condition.status == "True" for condition in pod.status.conditions)
    return ready and not pod.is_terminating
