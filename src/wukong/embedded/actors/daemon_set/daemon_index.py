"""The pods of each DaemonSet by node, and how the nodes stand, kept as they change: no sync walks all of them.

A derived index of the mirror (state/derived_indexes.py), read by controller.py. Pods are sorted by node with every
change; nodes of which something changed are reviewed (node_review.py) when the DaemonSet is synced next.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from wukong.api.kinds import DAEMON_SETS, NODES, PODS
from wukong.api.meta import Object, controller_of
from wukong.api.resources import Key, refers_to
from wukong.embedded.actors import pods
from wukong.embedded.actors.daemon_set.eligibility import assess_node
from wukong.embedded.actors.daemon_set.node_review import NodeMark, NodeReview, Terms
from wukong.embedded.actors.daemon_set.pods import node_of
from wukong.embedded.actors.daemon_set.strategy import limits_of
from wukong.embedded.actors.marks import Marks
from wukong.embedded.store.documents import parse_time
from wukong.embedded.world.objects import DaemonSet, Node, Pod
from wukong.engine.copy_on_write import CopyOnWriteEntries
from wukong.state import State


class _Version(NamedTuple):
    """What the marks of all nodes depend on."""

    generation: int
    terms: Terms


class Daemons:
    """The pods of one DaemonSet."""

    def __init__(self) -> None:
        self.marks: Marks[str, NodeMark] = Marks()
        self.pod_count = 0
        self._by_node: dict[str, tuple[Pod, ...]] = {}  # oldest first; without those that are finished and terminating
        self._ready_times: Tally[float] = Tally()  # when pods became ready → how many, of whatever state
        self._changed: set[str] = set()  # nodes that something happened to since they were marked
        self._version: _Version | None = None

    def fork(self) -> Daemons:
        copy = Daemons()
        copy.marks, copy.pod_count, copy._version = self.marks.fork(), self.pod_count, self._version
        copy._by_node, copy._ready_times = dict(self._by_node), self._ready_times.copy()
        copy._changed = set(self._changed)
        return copy

    def update_marks(self, daemon_set: DaemonSet, revision: str, state: State, now: float) -> None:
        """Review the nodes of which something changed, or all of them if the DaemonSet did."""
        terms = Terms(revision, daemon_set.spec.min_ready_seconds, limits_of(daemon_set, 1).surge > 0)
        version = _Version(daemon_set.metadata.generation, terms)
        if version != self._version:
            self._version, self.marks = version, Marks()
            self._changed = {*self._by_node, *(key.name for key in state.of(Node))}
        for name in sorted({*self._changed, *self.marks.names(NodeMark.MATURING)}):
            self.marks.put(name, self.review(name, daemon_set, state, now).find_marks())
        self._changed.clear()

    def review(self, name: str, daemon_set: DaemonSet, state: State, now: float) -> NodeReview:
        assert self._version is not None, "marks are updated first"
        node = state.get(Node, Key("", name))
        eligibility = assess_node(node, daemon_set) if node is not None else None
        return NodeReview(self._version.terms, eligibility, self.on_node(name), now)

    def on_node(self, name: str) -> Sequence[Pod]:
        return self._by_node.get(name, ())

    def seconds_to_next_available(self, min_ready_seconds: int, now: float) -> float | None:
        """Seconds until the next of them becomes available by waiting alone. None if none will."""
        return pods.seconds_until_available(self._ready_times, min_ready_seconds, now)

    def add(self, pod: Pod) -> None:
        self._count(pod, 1)
        name = node_of(pod)
        self._changed.add(name)
        if not (pod.is_finished and pod.is_terminating):
            self._by_node[name] = tuple(sorted((*self.on_node(name), pod), key=_oldest_first))

    def remove(self, pod: Pod) -> None:
        self._count(pod, -1)
        name = node_of(pod)
        self._changed.add(name)
        remaining = tuple(other for other in self.on_node(name) if other is not pod)
        if remaining:
            self._by_node[name] = remaining
        else:
            self._by_node.pop(name, None)

    def note_node(self, name: str) -> None:
        """A node came or went, or its labels or taints changed."""
        self._changed.add(name)

    def _count(self, pod: Pod, change: int) -> None:
        self.pod_count += change
        if pods.is_ready(pod):
            since = pods.ready_since(pod)
            self._ready_times[since] += change
            if not self._ready_times[since]:
                del self._ready_times[since]


class DaemonIndex:
    kinds: ClassVar[frozenset[str]] = frozenset({PODS.group_kind, NODES.group_kind, DAEMON_SETS.group_kind})
    pod_controller: ClassVar[str] = DAEMON_SETS.kind

    def __init__(self) -> None:
        self._daemons: CopyOnWriteEntries[str, Daemons] = CopyOnWriteEntries()  # uid of a DaemonSet → its pods

    def of(self, daemon_set: DaemonSet) -> Daemons:
        """The pods of a DaemonSet, for its next sync."""
        return self._own(daemon_set.metadata.uid)

    def note(self, group_kind: str, key: Key, old: Object | None, new: Object | None) -> None:
        if group_kind == NODES.group_kind:
            if not _is_node_alike(old, new):
                for uid in self._daemons:
                    self._daemons.own(uid).note_node(key.name)
        elif group_kind == PODS.group_kind:
            if isinstance(old, Pod) and (uid := _daemon_set_uid_of(old)):
                self._own(uid).remove(old)
                self._forget_if_empty(uid)
            if isinstance(new, Pod) and (uid := _daemon_set_uid_of(new)):
                self._own(uid).add(new)
        elif new is None and old is not None:
            self._forget_if_empty(old.metadata.uid)

    def fork(self) -> DaemonIndex:
        copy = DaemonIndex()
        copy._daemons = self._daemons.fork()
        return copy

    def _own(self, uid: str) -> Daemons:
        if uid not in self._daemons:
            self._daemons[uid] = Daemons()
        return self._daemons.own(uid)

    def _forget_if_empty(self, uid: str) -> None:
        """Without pods nothing is lost: they are all reviewed when the DaemonSet is asked about again."""
        daemons = self._daemons.get(uid)
        if daemons is not None and not daemons.pod_count:
            del self._daemons[uid]


def _is_node_alike(old: Object | None, new: Object | None) -> bool:
    """Whether a node changed in nothing that decides who may run on it."""
    if not isinstance(old, Node) or not isinstance(new, Node):
        return False
    return old.metadata.labels == new.metadata.labels and old.spec.taints == new.spec.taints


def _daemon_set_uid_of(pod: Pod) -> str:
    owner = controller_of(pod.metadata)
    return owner.uid if owner is not None and refers_to(owner, DAEMON_SETS) else ""


def _oldest_first(pod: Pod) -> tuple[bool, float, str]:
    created = pod.metadata.creation_timestamp
    return not pod.spec.node_name, parse_time(created) if created else 0.0, pod.metadata.name
