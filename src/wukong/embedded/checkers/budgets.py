"""No eviction takes a budget below what it asks for: counted here from the pods there are, not from its status.

A budget is kept by a controller that counts late: pods may fall ill, be deleted or be asked for between its last count
and an eviction, in any cluster. So an eviction is right if enough healthy pods are left without it, either now or by
what that controller could see when it wrote the budget's status last; those evicted since never count. Pods that have
not started, and unready ones under AlwaysAllow, are nobody's to keep; two budgets on one pod the server refuses.
"""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

from wukong.api.apps import PodDisruptionBudget
from wukong.api.core import Pod
from wukong.api.kinds import POD_DISRUPTION_BUDGETS, PODS
from wukong.api.meta import Object, controller_of
from wukong.api.resources import Key
from wukong.embedded.checkers.findings import Findings
from wukong.rules.selectors import Requirements, requirements, selects
from wukong.state import Change, State

CONTROLLER = "disruption"
EVICTED = "EvictionByEvictionAPI"


class Count(NamedTuple):
    """What a budget asks for, and the uids of the pods that are well."""

    healthy: frozenset[str]
    desired: int


class Budgets:
    def __init__(self, desk: Findings) -> None:
        self.desk, self.world = desk, desk.world
        self._selectors: dict[Key, Requirements] = {}
        self._counted: dict[Key, Count] = {}  # by what its controller saw when it last wrote
        self._evicted: set[str] = set()

    def hear(self, change: Change) -> None:
        if change.group_kind == POD_DISRUPTION_BUDGETS.group_kind:
            self._budget(change)
        elif self._selectors and change.group_kind == PODS.group_kind:
            self._pod(change)

    def _pod(self, change: Change) -> None:
        old, new = change.old, change.new
        if isinstance(old, Pod) and isinstance(new, Pod) and _is_evicted(new) and not _is_evicted(old):
            self._check(change.key, old)
            self._evicted.add(new.metadata.uid)

    def _budget(self, change: Change) -> None:
        if not isinstance(change.new, PodDisruptionBudget):
            self._selectors.pop(change.key, None)
            self._counted.pop(change.key, None)
            return
        self._selectors[change.key] = requirements(change.new.spec.selector)
        process = self.world.acting
        if process is not None and process.acting is not None and process.acting.controller == CONTROLLER:
            seen = process.state.get(PodDisruptionBudget, change.key) or change.new
            self._counted[change.key] = count(process.state, seen)

    def _check(self, key: Key, pod: Pod) -> None:
        if pod.is_terminating or pod.is_finished or pod.status.phase in ("", "Pending"):
            return
        covering = [it for it, selector in self._selectors.items() if _covers(it, selector, key, pod)]
        if len(covering) != 1:
            return
        budget = self.world.state.get(PodDisruptionBudget, covering[0])
        if budget is None or (not _is_ready(pod) and _always_allows(budget)):
            return
        now, before = count(self.world.state, budget), self._counted.get(covering[0])
        leaving = {pod.metadata.uid} if _is_ready(pod) else set()  # who is not well takes nobody away who is
        left = len(now.healthy - self._evicted - leaving)
        if left >= now.desired or (before and len(before.healthy - self._evicted - leaving) >= before.desired):
            return
        told = f"evicted although budget {budget.key} asks for {now.desired} healthy pods and only {left} are left"
        self.desk.note(f"pod {key}", told)


def count(state: State, budget: PodDisruptionBudget) -> Count:
    """A budget in the eyes of a mirror."""
    keys = state.pods.matching(budget.metadata.namespace, budget.spec.selector)
    pods = [pod for key in keys if (pod := state.get(Pod, key)) is not None and not pod.is_finished]
    healthy = frozenset(pod.metadata.uid for pod in pods if _is_ready(pod) and not pod.is_terminating)
    return Count(healthy, _desired(state, budget, pods))


def _desired(state: State, budget: PodDisruptionBudget, pods: list[Pod]) -> int:
    spec = budget.spec
    if spec.max_unavailable is None and not isinstance(spec.min_available, str):
        return spec.min_available or 0
    expected = sum({owner.metadata.uid: _replicas(owner) for pod in pods if (owner := _top(state, pod))}.values())
    if spec.max_unavailable is not None:
        return max(0, expected - _part(spec.max_unavailable, expected))
    return _part(spec.min_available or 0, expected)


def _part(value: int | str, of: int) -> int:
    return value if isinstance(value, int) else ceil(int(value.removesuffix("%")) * of / 100)


def _top(state: State, pod: Pod) -> Object | None:
    """The workload whose size counts: of a ReplicaSet its Deployment."""
    found: Object | None = pod
    while found is not None and (owner := controller_of(found.metadata)) is not None:
        found = state.owner(pod.metadata.namespace, owner)
    return None if found is pod else found


def _replicas(workload: Object) -> int:
    wanted = getattr(getattr(workload, "spec", None), "replicas", None)
    return 1 if wanted is None else int(wanted)


def _covers(budget: Key, selector: Requirements, key: Key, pod: Pod) -> bool:
    return budget.namespace == key.namespace and selects(selector, pod.metadata.labels)


def _is_ready(pod: Pod) -> bool:
    return any(each.type == "Ready" and each.status == "True" for each in pod.status.conditions)


def _is_evicted(pod: Pod) -> bool:
    return any(each.type == "DisruptionTarget" and each.reason == EVICTED for each in pod.status.conditions)


def _always_allows(budget: PodDisruptionBudget) -> bool:
    document = getattr(budget, "document", {})
    return bool((document.get("spec") or {}).get("unhealthyPodEvictionPolicy") == "AlwaysAllow")
