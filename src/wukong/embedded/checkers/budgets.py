"""No eviction takes a budget below what it asks for: counted here from the pods there are, not from its status.

A budget is kept by a controller that counts late: pods may become unready, be deleted or be asked for between its last
count and an eviction, in any cluster. So an eviction is right if enough healthy pods are left without it, either now or
by what that controller saw when it decided on the status that it wrote last; those that were evicted at a charge since
never count. One that is unready, or is being deleted already, leaves without a charge, so the controller's count holds
as it was. Pods that have not started, and unready ones under AlwaysAllow, count for no budget; two budgets on one pod
the server refuses.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import ceil
from typing import NamedTuple

from wukong.actions import Action, Patch
from wukong.api.apps import PodDisruptionBudget
from wukong.api.core import Pod
from wukong.api.kinds import POD_DISRUPTION_BUDGETS, PODS
from wukong.api.meta import Object, OwnerReference, controller_of
from wukong.api.resources import Key
from wukong.embedded.checkers.acting_controller import acting_controller
from wukong.embedded.checkers.covered_pods import CoveredPods, CoveredPodsIndex, Reference
from wukong.embedded.checkers.findings import Findings
from wukong.embedded.checkers.pods import EVICTED, is_disrupted, is_ready, replicas_of
from wukong.embedded.checkers.uid_sets import UidSet
from wukong.embedded.store.documents import parse_time
from wukong.embedded.world.process import Process
from wukong.engine.layered_dict import LayeredDict
from wukong.rules.selectors import Requirements, requirements, selects
from wukong.runtime.dispatch import Item
from wukong.state import Change, State
from wukong.state.controller import PodRight

EVICTING = frozenset((PodRight.EVICT, PodRight.EVICT_FROM_WHOLE))
_EXPECTED_TO_GO_SECONDS = 120.0  # an evicted pod that is still there then counts again (DeletionTimeout)


class BudgetCount(NamedTuple):
    """The uids of the healthy pods, and how many the budget asks for."""

    healthy: UidSet
    desired: int

    def without(self, uids: Collection[str]) -> BudgetCount:
        return self._replace(healthy=self.healthy.without(uids))


class Budgets:
    def __init__(self, findings: Findings) -> None:
        self.findings, self.world = findings, findings.world
        self._selectors: LayeredDict[Key, Requirements] = LayeredDict()
        self._last_counts: LayeredDict[Key, BudgetCount] = LayeredDict()  # when its controller last wrote
        # By what the controller of a process saw when it decided on a status that it has not written yet.
        self._decided_counts: dict[tuple[Process, Key], BudgetCount] = {}
        self._evicted: set[str] = set()
        self._evicted_since: dict[
            Key, set[str]
        ] = {}  # budget → those evicted at a charge since its controller last wrote
        for key, budget in self.world.state.of(PodDisruptionBudget).items():
            if isinstance(budget, PodDisruptionBudget):
                self._selectors[key] = requirements(budget.spec.selector)

    def fork(self, findings: Findings) -> Budgets:
        copy = Budgets.__new__(Budgets)
        copy.findings, copy.world = findings, findings.world
        copy._selectors, copy._last_counts = self._selectors.fork(), self._last_counts.fork()
        copies = dict(zip(self.world.processes, copy.world.processes, strict=True))
        copy._decided_counts = {(copies[process], key): count for (process, key), count in self._decided_counts.items()}
        copy._evicted = set(self._evicted)
        copy._evicted_since = {key: set(uids) for key, uids in self._evicted_since.items()}
        return copy

    def observe(self, change: Change) -> None:
        if change.group_kind == POD_DISRUPTION_BUDGETS.group_kind:
            self._observe_budget(change)
        elif self._selectors and change.group_kind == PODS.group_kind:
            self._observe_pod(change)

    def observe_decision(self, process: Process, _: Item, actions: Sequence[Action]) -> None:
        """Count what a controller sees that is going to write a budget's status; it writes some milliseconds later."""
        for action in actions:
            if isinstance(action, Patch) and action.resource == POD_DISRUPTION_BUDGETS:
                budget = process.state.get(PodDisruptionBudget, action.key)
                if budget is not None:
                    count = _count_undisrupted(process.state, budget, process.now)
                    self._decided_counts[process, action.key] = count

    def _observe_pod(self, change: Change) -> None:
        old, new = change.old, change.new
        if isinstance(old, Pod) and new is None:
            self._evicted.discard(old.metadata.uid)  # no longer healthy anyway
        if not isinstance(old, Pod) or not isinstance(new, Pod) or old.status is new.status:
            return
        if is_disrupted(new, EVICTED) and not is_disrupted(old, EVICTED):
            self._check(change.key, old)
            self._evicted.add(new.metadata.uid)
            is_charged = is_ready(old) and not old.is_terminating
            for evicted in self._evicted_since.values() if is_charged else ():
                evicted.add(new.metadata.uid)

    def _observe_budget(self, change: Change) -> None:
        if not isinstance(change.new, PodDisruptionBudget):
            self._selectors.pop(change.key, None)
            self._last_counts.pop(change.key, None)
            self._evicted_since.pop(change.key, None)
            return
        self._selectors[change.key] = requirements(change.new.spec.selector)
        actor = acting_controller(self.world)
        # An eviction charges the budget without counting anything. Any other controller that writes the status counted.
        is_counted = _status_of(change.new) != _status_of(change.old)
        if is_counted and actor is not None and not actor.pod_rights & EVICTING:
            mirror = actor.process.state
            budget = mirror.get(PodDisruptionBudget, change.key) or change.new
            decided = self._decided_counts.pop((actor.process, change.key), None)
            self._last_counts[change.key] = decided or _count_undisrupted(mirror, budget, actor.process.now)
            self._evicted_since[change.key] = set()

    def _check(self, key: Key, pod: Pod) -> None:
        if pod.is_terminating or pod.is_finished or pod.status.phase in ("", "Pending"):
            return
        covering = [budget for budget, selector in self._selectors.items() if _covers(budget, selector, key, pod)]
        if len(covering) != 1:
            return
        budget = self.world.state.get(PodDisruptionBudget, covering[0])
        if budget is None or (not is_ready(pod) and _always_allows(budget)):
            return
        now, before = count_budget(self.world.state, budget), self._last_counts.get(covering[0])
        leaving = {pod.metadata.uid} if is_ready(pod) else set()  # an unready pod was not counted as healthy
        left = len(now.healthy.without(self._evicted | leaving))
        # A second leader behind the times counts whom another has seen leave: evictions go by what was written last.
        since = self._evicted_since.get(covering[0], set())
        if left >= now.desired or (before and len(before.healthy.without(since | leaving)) >= before.desired):
            return
        text = f"evicted although budget {budget.key} asks for {now.desired} healthy pods and only {left} are left"
        self.findings.report(f"pod {key}", text)


def _count_undisrupted(mirror: State, budget: PodDisruptionBudget, now: float) -> BudgetCount:
    """Count a budget's pods as its controller does: without those that are evicted and not yet seen to go."""
    return count_budget(mirror, budget).without(_disrupted_uids(mirror, budget, now))


def _disrupted_uids(mirror: State, budget: PodDisruptionBudget, now: float) -> frozenset[str]:
    """The pods that the budget's status names as evicted lately: its controller does not count them."""
    times = budget.status.disrupted_pods.items()
    names = [name for name, at in times if at and parse_time(at) + _EXPECTED_TO_GO_SECONDS > now]
    keys = (Key(budget.metadata.namespace, name) for name in names)
    return frozenset(pod.metadata.uid for key in keys if (pod := mirror.get(Pod, key)) is not None)


def count_budget(state: State, budget: PodDisruptionBudget) -> BudgetCount:
    """Count a budget's pods as a mirror shows them."""
    covered = state.index_of(CoveredPodsIndex).of(budget, state)
    return BudgetCount(covered.healthy, _count_desired(state, budget, covered))


def _count_desired(state: State, budget: PodDisruptionBudget, covered: CoveredPods) -> int:
    spec, namespace = budget.spec, budget.metadata.namespace
    if spec.max_unavailable is None and not isinstance(spec.min_available, str):
        return spec.min_available or 0
    found = (_workload_of(state, namespace, reference) for reference in covered.controllers)
    workloads = {workload.metadata.uid: workload for workload in found if workload is not None}
    expected = sum(_count_replicas(workload) for workload in workloads.values())
    if spec.max_unavailable is not None:
        return max(0, expected - _scale_value(spec.max_unavailable, expected))
    return _scale_value(spec.min_available or 0, expected)


def _scale_value(value: int | str, total: int) -> int:
    """A number, or a percentage of the total, rounded up."""
    return value if isinstance(value, int) else ceil(int(value.removesuffix("%")) * total / 100)


def _workload_of(state: State, namespace: str, controller: Reference) -> Object | None:
    """The workload whose size counts: of a ReplicaSet its Deployment. None if it, or what controls it, is gone."""
    kind, api_version, name, uid = controller
    reference: OwnerReference | None = OwnerReference(name=name, kind=kind, api_version=api_version, uid=uid)
    workload: Object | None = None
    while reference is not None:
        workload = state.owner(namespace, reference)
        reference = controller_of(workload.metadata) if workload is not None else None
    return workload


def _count_replicas(workload: Object) -> int:
    replicas = replicas_of(workload)
    return 1 if replicas is None else replicas


def _covers(budget: Key, selector: Requirements, key: Key, pod: Pod) -> bool:
    return budget.namespace == key.namespace and selects(selector, pod.metadata.labels)


def _always_allows(budget: PodDisruptionBudget) -> bool:
    document = getattr(budget, "document", {})
    return bool((document.get("spec") or {}).get("unhealthyPodEvictionPolicy") == "AlwaysAllow")


def _status_of(budget: Object | None) -> object:
    return getattr(budget, "document", {}).get("status")
