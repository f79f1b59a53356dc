"""The pods of each controller, counted as they come, change and go: a ReplicaSet's status without a walk over its pods.

A derived index of the mirror (state/derived_indexes.py), read by replica_set/controller.py and adoption.py.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Hashable, Iterable, Mapping
from itertools import takewhile
from typing import ClassVar, NamedTuple, TypeVar

from wukong.api.core import Pod as AnyPod
from wukong.api.kinds import PODS
from wukong.api.meta import LabelSelector, Object, controller_of
from wukong.api.resources import Key
from wukong.embedded.actors.pods import condition, ready_since, seconds_until_available
from wukong.embedded.actors.replica_set.ranking import DeletionRanking
from wukong.embedded.world.objects import Pod
from wukong.engine.copy_on_write import CopyOnWriteEntries
from wukong.semantics.selectors import compile_selector, selects
from wukong.state.indexes import LabelClass, label_class

Entry = TypeVar("Entry", bound=Hashable)


class CountedPod(NamedTuple):
    """What is counted of a pod."""

    is_active: bool
    is_terminating: bool  # and not finished
    ready_since: float | None  # None: not ready; 0: its status does not say
    node: str
    labels: LabelClass


class OwnedPods:
    """The pods of one controller. All counts but `terminating` are of active ones."""

    def __init__(self) -> None:
        self.pods: dict[Key, CountedPod] = {}
        self.active = self.terminating = self.ready = 0
        self.ready_times: Tally[float] = Tally()  # when they became ready → how many
        self.nodes: Tally[str] = Tally()  # "" for those that wait for one
        self.labels: Tally[LabelClass] = Tally()
        self._unselected = UnselectedLabels()
        self.ranking = DeletionRanking()
        self._arrivals: dict[Key, int] = {}  # the number with which each came, in that order

    def fork(self) -> OwnedPods:
        copy = OwnedPods()
        copy.pods, copy.ranking = dict(self.pods), self.ranking.fork()
        copy.active, copy.terminating, copy.ready = self.active, self.terminating, self.ready
        copy.ready_times, copy.nodes, copy.labels = self.ready_times.copy(), self.nodes.copy(), self.labels.copy()
        copy._arrivals = dict(self._arrivals)
        copy._unselected = self._unselected.fork()
        return copy

    def find_unselected(self, selector: LabelSelector | None) -> list[Key]:
        """The active ones that a selector does not select. Sorted. Labels that several have are looked at once."""
        self._unselected.use(selector, self.labels)
        if not self._unselected.labels:
            return []
        return sorted(key for key, pod in self.pods.items() if pod.is_active and pod.labels in self._unselected.labels)

    def list_arrived_since(self, number: int) -> list[Key]:
        """Those that have come after the one with this number, and are still there. Sorted."""
        since = takewhile(lambda arrival: arrival[1] > number, reversed(self._arrivals.items()))
        return sorted(key for key, _ in since)

    def count_labelled(self, labels: Mapping[str, str]) -> int:
        """How many have all of these labels."""
        wanted = labels.items()
        return sum(count for pod_labels, count in self.labels.items() if wanted <= dict(pod_labels).items())

    def count_available(self, min_ready_seconds: int, now: float) -> int:
        if min_ready_seconds == 0:
            return self.ready
        return sum(count for since, count in self.ready_times.items() if since > 0 and since + min_ready_seconds <= now)

    def seconds_to_next_available(self, min_ready_seconds: int, now: float) -> float | None:
        """Seconds until the next of them becomes available by waiting alone. None if none will."""
        return seconds_until_available(self.ready_times, min_ready_seconds, now)

    def put(self, key: Key, pod: Pod, number: int, *, has_same_labels: bool = False) -> None:
        """A pod came, with this number, or changed. `has_same_labels`: it was put with the same labels before."""
        before = self.pods.get(key)
        after = _summarize(pod, before if has_same_labels else None)
        self.ranking.put(key, pod if after.is_active else None)
        if after == before:
            return
        if before is not None:
            self._count(before, -1)
        else:
            self._arrivals[key] = number
        self._count(after, 1)
        self.pods[key] = after

    def remove(self, key: Key) -> None:
        self._count(self.pods.pop(key), -1)
        del self._arrivals[key]
        self.ranking.put(key, None)

    def _count(self, pod: CountedPod, change: int) -> None:
        self.terminating += change * pod.is_terminating
        if not pod.is_active:
            return
        self.active += change
        _add(self.nodes, pod.node, change)
        self._unselected.note(pod.labels, _add(self.labels, pod.labels, change))
        if pod.ready_since is not None:
            self.ready += change
            _add(self.ready_times, pod.ready_since, change)


class UnselectedLabels:
    """The labels among those of an owner's pods that its selector does not select. Selectors hardly ever change."""

    def __init__(self) -> None:
        self.labels: set[LabelClass] = set()
        self._selector: tuple[LabelSelector | None] | None = None  # in a tuple, for None is one, too

    def use(self, selector: LabelSelector | None, all_labels: Iterable[LabelClass]) -> None:
        """Go by this selector from now on."""
        if self._selector is None or self._selector[0] != selector:
            self._selector = (selector,)
            self.labels = {labels for labels in all_labels if not selects_labels(selector, dict(labels))}

    def note(self, labels: LabelClass, count: int) -> None:
        """So many pods have these labels now."""
        if not count:
            self.labels.discard(labels)
        elif count == 1 and self._selector is not None and not selects_labels(self._selector[0], dict(labels)):
            self.labels.add(labels)

    def fork(self) -> UnselectedLabels:
        copy = UnselectedLabels()
        copy.labels, copy._selector = set(self.labels), self._selector
        return copy


class OwnedPodsIndex:
    kinds: ClassVar[frozenset[str]] = frozenset({PODS.group_kind})

    def __init__(self) -> None:
        self.arrived = 0  # counts the pods that have come so far, of all controllers
        self._by_controller: CopyOnWriteEntries[str, OwnedPods] = CopyOnWriteEntries()  # by its uid

    def of(self, controller: Object) -> OwnedPods:
        return self._by_controller.get(controller.metadata.uid) or OwnedPods()

    def note(self, group_kind: str, key: Key, old: Object | None, new: Object | None) -> None:
        after = _controller_uid_of(new)
        is_owned_alike = (
            old is not None and new is not None and old.metadata.owner_references is new.metadata.owner_references
        )
        before = after if is_owned_alike else _controller_uid_of(old)
        if before and before != after:
            owned = self._by_controller.own(before)
            owned.remove(key)
            if not owned.pods:
                del self._by_controller[before]
        if after and isinstance(new, Pod):
            if after not in self._by_controller:
                self._by_controller[after] = OwnedPods()
            has_same_labels = old is not None and old.metadata.labels is new.metadata.labels
            self.arrived += before != after
            self._by_controller.own(after).put(key, new, self.arrived, has_same_labels=has_same_labels)

    def fork(self) -> OwnedPodsIndex:
        copy = OwnedPodsIndex()
        copy.arrived, copy._by_controller = self.arrived, self._by_controller.fork()
        return copy


def selects_labels(selector: LabelSelector | None, labels: dict[str, str]) -> bool:
    if selector is not None and not selector.match_expressions:  # nearly always
        return selector.match_labels.items() <= labels.items()
    return selects(compile_selector(selector), labels)


def _summarize(pod: Pod, labelled_alike: CountedPod | None) -> CountedPod:
    is_ending, is_finished, ready = pod.is_terminating, pod.is_finished, condition(pod, "Ready")
    return CountedPod(
        not is_finished and not is_ending,
        is_ending and not is_finished,
        ready_since(pod) if ready is not None and ready.status == "True" else None,
        pod.spec.node_name,
        labelled_alike.labels if labelled_alike is not None else label_class(pod),
    )


def _controller_uid_of(subject: Object | None) -> str:
    owner = controller_of(subject.metadata) if isinstance(subject, AnyPod) else None
    return owner.uid if owner is not None else ""


def _add(tally: Tally[Entry], entry: Entry, change: int) -> int:
    """Change a count, and return it. An entry whose count is 0 is removed."""
    tally[entry] += change
    count = tally[entry]
    if not count:
        del tally[entry]
    return count
