"""The pods that each budget covers, counted as they come, change and go: its status without a walk over its pods.

A derived index of the mirror (state/derived_indexes.py), read by controller.py. A budget's pods are counted when it is
first asked about; from then on, and until its selector changes, only what changes is counted.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import ClassVar, NamedTuple

from wukong.api.kinds import POD_DISRUPTION_BUDGETS, PODS
from wukong.api.meta import Object, OwnerReference, controller_of
from wukong.api.resources import Key, key_of
from wukong.embedded.actors import pods
from wukong.embedded.actors.disruption.budget_index import BudgetIndex, selector_of
from wukong.embedded.world.objects import Pod, PodDisruptionBudget
from wukong.engine.copy_on_write import CopyOnWriteEntries
from wukong.state import State


class Owner(NamedTuple):
    """The controller that a pod names."""

    api_version: str
    kind: str
    name: str
    uid: str

    @property
    def reference(self) -> OwnerReference:
        return OwnerReference(name=self.name, kind=self.kind, api_version=self.api_version, uid=self.uid)


class CountedPod(NamedTuple):
    """What is counted of a pod that has not finished."""

    is_healthy: bool  # ready and not terminating
    owner: Owner | None


class CoveredPods:
    """The pods of one budget, finished ones left out."""

    def __init__(self) -> None:
        self.pods: dict[Key, CountedPod] = {}
        self.healthy = 0
        self.by_owner: dict[Owner | None, KeysInOrder] = {}

    def fork(self) -> CoveredPods:
        copy = CoveredPods()
        copy.pods, copy.healthy = dict(self.pods), self.healthy
        copy.by_owner = {owner: keys.fork() for owner, keys in self.by_owner.items()}
        return copy

    def put(self, key: Key, pod: CountedPod | None) -> None:
        """Count a pod as it is now; None: it is gone, has finished, or is no longer covered."""
        before = self.pods.pop(key, None)
        if before is not None:
            self.healthy -= before.is_healthy
            if pod is None or pod.owner != before.owner:
                self.by_owner[before.owner].discard(key)
                if not len(self.by_owner[before.owner]):
                    del self.by_owner[before.owner]
        if pod is not None:
            self.pods[key] = pod
            self.healthy += pod.is_healthy
            if pod.owner not in self.by_owner:
                self.by_owner[pod.owner] = KeysInOrder()
            self.by_owner[pod.owner].add(key)


class KeysInOrder:
    """Keys of which the first is asked for."""

    def __init__(self) -> None:
        self._keys: set[Key] = set()
        self._heap: list[Key] = []  # all of them, and some that went

    def __len__(self) -> int:
        return len(self._keys)

    def add(self, key: Key) -> None:
        if key not in self._keys:
            self._keys.add(key)
            heappush(self._heap, key)

    def discard(self, key: Key) -> None:
        self._keys.discard(key)
        if len(self._heap) > 2 * len(self._keys) + 16:
            self._heap = list(self._keys)
            heapify(self._heap)

    def first(self) -> Key:
        while self._heap[0] not in self._keys:
            heappop(self._heap)
        return self._heap[0]

    def fork(self) -> KeysInOrder:
        copy = KeysInOrder()
        copy._keys, copy._heap = set(self._keys), list(self._heap)
        return copy


class CoveredPodsIndex:
    kinds: ClassVar[frozenset[str]] = frozenset({PODS.group_kind, POD_DISRUPTION_BUDGETS.group_kind})

    def __init__(self) -> None:
        self._budgets = BudgetIndex()
        self._covered: CopyOnWriteEntries[Key, CoveredPods] = CopyOnWriteEntries()  # of the budgets asked about

    def of(self, budget: PodDisruptionBudget, state: State) -> CoveredPods:
        """The pods of a budget in the mirror that this is an index of."""
        key = key_of(budget)
        covered = self._covered.get(key)
        if covered is None:
            covered = self._covered[key] = CoveredPods()
            for pod_key in state.pods.list_matching(budget.metadata.namespace, budget.spec.selector):
                covered.put(pod_key, _summarize(state.get(Pod, pod_key)))
        return covered

    def note(self, group_kind: str, key: Key, old: Object | None, new: Object | None) -> None:
        if group_kind == PODS.group_kind:
            if self._covered:
                self._note_pod(key, old, new)
            return
        self._budgets.note(group_kind, key, old, new)
        if selector_of(old) != selector_of(new):
            self._covered.pop(key, None)

    def _note_pod(self, key: Key, old: Object | None, new: Object | None) -> None:
        if isinstance(old, Pod) and isinstance(new, Pod) and old.metadata.labels == new.metadata.labels:
            if _is_counted_alike(old, new):
                return
            left, joined = list[Key](), self._budgets.of(new)
        else:
            left = self._budgets.of(old) if isinstance(old, Pod) else []
            joined = self._budgets.of(new) if isinstance(new, Pod) else []
        after = _summarize(new)
        for budget in left:
            if budget in self._covered:
                self._covered.own(budget).put(key, None)
        for budget in joined:
            if budget in self._covered:
                self._covered.own(budget).put(key, after)

    def fork(self) -> CoveredPodsIndex:
        copy = CoveredPodsIndex()
        copy._budgets, copy._covered = self._budgets.fork(), self._covered.fork()
        return copy


def _is_counted_alike(old: Pod, new: Pod) -> bool:
    """Whether a budget counts two versions of a pod that it covers alike: most changes are news of other things."""
    if old.metadata.owner_references is not new.metadata.owner_references or old.is_finished != new.is_finished:
        return False
    was_healthy = pods.is_ready(old) and not old.is_terminating
    return was_healthy == (pods.is_ready(new) and not new.is_terminating)


def _summarize(pod: Object | None) -> CountedPod | None:
    if not isinstance(pod, Pod) or pod.is_finished:
        return None
    controller = controller_of(pod.metadata)
    owner = None
    if controller is not None:
        owner = Owner(controller.api_version, controller.kind, controller.name, controller.uid)
    return CountedPod(pods.is_ready(pod) and not pod.is_terminating, owner)
