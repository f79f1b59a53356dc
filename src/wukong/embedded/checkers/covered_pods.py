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
Labels = frozenset[tuple[str, str]]
_MOST_REMEMBERED = 4096  # namespaces and labels


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
        self._covering: dict[tuple[str, Labels], list[Key]] = {}  # namespace and labels of a pod → those that cover it

    def of(self, budget: PodDisruptionBudget, state: State) -> CoveredPods:
        """The pods of this budget in the mirror that this is an index of."""
        key, selector = key_of(budget), requirements(budget.spec.selector)
        covered = self._covered.get(key)
        if covered is None or covered.selector != selector:
            covered = self._covered[key] = CoveredPods(selector)
            self._budgets.own(key.namespace)[key] = None
            self._covering.clear()
            for pod_key in state.pods.list_matching(budget.metadata.namespace, budget.spec.selector):
                covered.put(pod_key, _describe(state.get(Pod, pod_key)))
        return covered

    def note(self, group_kind: str, key: Key, old: Object | None, new: Object | None) -> None:
        if group_kind == POD_DISRUPTION_BUDGETS.group_kind:
            if new is None and self._covered.pop(key, None) is not None:
                del self._budgets.own(key.namespace)[key]
                self._budgets.drop_if_empty(key.namespace)
                self._covering.clear()
            return
        if key.namespace not in self._budgets:
            return
        is_labelled_alike = old is not None and new is not None and _has_same_labels(old, new)
        if is_labelled_alike and _counts_alike(old, new):
            return
        covering = self._find_covering(new)
        pod = _describe(new) if covering else None
        for budget in covering:
            if self._covered[budget].pods.get(key) != pod:
                self._covered.own(budget).put(key, pod)
        if not is_labelled_alike:
            for budget in self._find_covering(old):
                if budget not in covering and key in self._covered[budget].pods:
                    self._covered.own(budget).put(key, None)

    def _find_covering(self, pod: Object | None) -> list[Key]:
        """The budgets that select a pod. The answer for the same labels is remembered."""
        if pod is None:
            return []
        namespace, labels = pod.metadata.namespace, pod.metadata.labels
        place = (namespace, frozenset(labels.items()))
        covering = self._covering.get(place)
        if covering is None:
            if len(self._covering) >= _MOST_REMEMBERED:
                self._covering.clear()
            budgets = self._budgets.get(namespace, ())
            covering = [budget for budget in budgets if selects(self._covered[budget].selector, labels)]
            self._covering[place] = covering
        return covering

    def fork(self) -> CoveredPodsIndex:
        copy = CoveredPodsIndex()
        copy._covered, copy._budgets = self._covered.fork(), self._budgets.fork()
        copy._covering = dict(self._covering)
        return copy


def _has_same_labels(old: Object, new: Object) -> bool:
    labels = old.metadata.labels
    return labels is new.metadata.labels or labels == new.metadata.labels


def _counts_alike(old: Object | None, new: Object | None) -> bool:
    """Whether two versions of a pod are the same to a budget that covers both: most changes are."""
    return (
        isinstance(old, Pod)
        and isinstance(new, Pod)
        and old.metadata.uid == new.metadata.uid
        and old.metadata.owner_references is new.metadata.owner_references
        and old.is_terminating == new.is_terminating
        and old.is_finished == new.is_finished
        and (old.status is new.status or is_ready(old) == is_ready(new))
    )


def _describe(pod: Object | None) -> CoveredPod | None:
    if not isinstance(pod, Pod) or pod.is_finished:
        return None
    reference = controller_of(pod.metadata)
    controller = None
    if reference is not None:
        controller = (reference.kind, reference.api_version, reference.name, reference.uid)
    return CoveredPod(pod.metadata.uid, is_ready(pod) and not pod.is_terminating, controller)
