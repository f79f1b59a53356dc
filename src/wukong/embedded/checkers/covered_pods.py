"""The pods that each budget covers, as a mirror shows them, finished ones left out. Asked by budgets.

An index derived from the mirror: thousands of pods of one budget are not walked for each that comes, changes or goes.
It counts for itself, for checkers share no code with the controllers they judge. A budget's pods are looked for when it
is first asked about, and again when its selector has changed.
"""

from __future__ import annotations

from collections import Counter as Tally
from typing import ClassVar, NamedTuple

from wukong.api.apps import PodDisruptionBudget
from wukong.api.core import Pod
from wukong.api.kinds import POD_DISRUPTION_BUDGETS, PODS
from wukong.api.meta import Object, controller_of
from wukong.api.resources import Key, key_of
from wukong.embedded.checkers.pods import is_ready
from wukong.embedded.checkers.uid_sets import UidSet
from wukong.engine.copy_on_write import CopyOnWriteDicts, CopyOnWriteEntries
from wukong.rules.selectors import Requirements, requirements, selects
from wukong.state import State

Reference = tuple[str, str, str, str]  # kind, apiVersion, name and uid of a controller


class CoveredPod(NamedTuple):
    uid: str
    is_healthy: bool  # ready and not terminating
    controller: Reference | None


class CoveredPods:
    """The pods of one budget."""

    def __init__(self, selector: Requirements) -> None:
        self.selector = selector
        self.pods: dict[Key, CoveredPod] = {}
        self.controllers: Tally[Reference] = Tally()
        self.healthy = UidSet()

    def fork(self) -> CoveredPods:
        copy = CoveredPods(self.selector)
        copy.pods, copy.controllers = dict(self.pods), self.controllers.copy()
        copy.healthy = self.healthy
        return copy

    def put(self, key: Key, pod: CoveredPod | None) -> None:
        """None: there is no such pod among them."""
        before = self.pods.pop(key, None)
        if before is not None:
            self._count(before, -1)
            if pod is None or not pod.is_healthy or pod.uid != before.uid:
                self.healthy = self.healthy.without((before.uid,))
        if pod is not None:
            self.pods[key] = pod
            self._count(pod, 1)
            if pod.is_healthy:
                self.healthy = self.healthy.union(pod.uid)

    def _count(self, pod: CoveredPod, change: int) -> None:
        if pod.controller is not None:
            self.controllers[pod.controller] += change
            if not self.controllers[pod.controller]:
                del self.controllers[pod.controller]


class CoveredPodsIndex:
    kinds: ClassVar[frozenset[str]] = frozenset({PODS.group_kind, POD_DISRUPTION_BUDGETS.group_kind})

    def __init__(self) -> None:
        self._covered: CopyOnWriteEntries[Key, CoveredPods] = CopyOnWriteEntries()  # by budget
        self._budgets: CopyOnWriteDicts[str, Key, None] = CopyOnWriteDicts()  # by namespace, those of the above

    def of(self, budget: PodDisruptionBudget, state: State) -> CoveredPods:
        """The pods of this budget in the mirror that this is an index of."""
        key, selector = key_of(budget), requirements(budget.spec.selector)
        covered = self._covered.get(key)
        if covered is None or covered.selector != selector:
            covered = self._covered[key] = CoveredPods(selector)
            self._budgets.own(key.namespace)[key] = None
            for pod_key in state.pods.list_matching(budget.metadata.namespace, budget.spec.selector):
                covered.put(pod_key, _describe(state.get(Pod, pod_key)))
        return covered

    def note(self, group_kind: str, key: Key, old: Object | None, new: Object | None) -> None:
        if group_kind == POD_DISRUPTION_BUDGETS.group_kind:
            if new is None and self._covered.pop(key, None) is not None:
                del self._budgets.own(key.namespace)[key]
                self._budgets.drop_if_empty(key.namespace)
            return
        budgets = self._budgets.get(key.namespace)
        if not budgets:
            return
        pod, is_labelled_alike = _describe(new), old is not None and new is not None and _has_same_labels(old, new)
        if is_labelled_alike and pod == _describe(old):
            return
        for budget in budgets:
            covered = self._covered[budget]
            is_covered = new is not None and selects(covered.selector, new.metadata.labels)
            covered_pod = pod if is_covered else None
            if covered.pods.get(key) != covered_pod:
                self._covered.own(budget).put(key, covered_pod)

    def fork(self) -> CoveredPodsIndex:
        copy = CoveredPodsIndex()
        copy._covered, copy._budgets = self._covered.fork(), self._budgets.fork()
        return copy


def _has_same_labels(old: Object, new: Object) -> bool:
    return old.metadata.labels == new.metadata.labels


def _describe(pod: Object | None) -> CoveredPod | None:
    if not isinstance(pod, Pod) or pod.is_finished:
        return None
    reference = controller_of(pod.metadata)
    controller = None
    if reference is not None:
        controller = (reference.kind, reference.api_version, reference.name, reference.uid)
    return CoveredPod(pod.metadata.uid, is_ready(pod) and not pod.is_terminating, controller)
