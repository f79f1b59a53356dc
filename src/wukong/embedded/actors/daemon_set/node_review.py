"""What one node needs of a DaemonSet, by the pods that are there, and how the node counts for the status. Pure.

Made by daemon_index.py for nodes of which something changed, and by sync.py for those where something is to be done.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from typing import NamedTuple

from wukong.embedded.actors import pods
from wukong.embedded.actors.controller_revisions import revision_of
from wukong.embedded.actors.daemon_set.eligibility import NodeEligibility
from wukong.embedded.world.objects import Pod


class NodeMark(Enum):
    """What is true of a node. Of several pods on it the oldest counts for the status, even a terminating one."""

    DESIRED = auto()  # should have a daemon
    SCHEDULED = auto()  # should have one, and does; the next three are of such nodes
    READY = auto()
    AVAILABLE = auto()
    UPDATED = auto()
    MISSCHEDULED = auto()  # has a daemon, and should not
    LACKING = auto()  # needs another pod
    SURPLUS = auto()  # has pods that must go
    STRANDED = auto()  # is not there, and pods without a node are meant for it
    MATURING = auto()  # has a pod that becomes available by waiting
    # How it stands in an update without surge:
    UNAVAILABLE = auto()  # counts as unavailable
    OLD_UNAVAILABLE = auto()  # counts as that, too, and its old pod goes at once
    REPLACEABLE = auto()  # its old pod is available and goes when its turn comes
    # And in one with surge:
    SERVING = auto()  # its old pod, or the new one if there is no old one, is available
    SURGING = auto()  # has two pods, and the new one is not available yet
    OLD_LEAVING = auto()  # its old pod goes at once
    LEAVABLE = auto()  # should have none, and its old pod goes when enough others are available
    SURGE_AT_ONCE = auto()  # its old pod is not available: it gets a new one at once
    SURGEABLE = auto()  # gets a new pod when its turn comes


class PodPair(NamedTuple):
    """The pods of one node that are not terminating: one of the latest revision and one of an older one."""

    new: Pod | None
    old: Pod | None


class Terms(NamedTuple):
    """What a DaemonSet asks of each of its pods."""

    revision: str
    min_ready_seconds: int
    may_surge: bool


class NodeReview:
    """`on_node` are the pods that are on the node or meant for it, oldest first. There is no such node where it has no
    `eligibility`."""

    def __init__(self, terms: Terms, eligibility: NodeEligibility | None, on_node: Sequence[Pod], now: float) -> None:
        self.revision, self.min_ready_seconds, self.may_surge = terms
        self.eligibility, self.on_node, self.now = eligibility, on_node, now
        self.should_run = eligibility is not None and eligibility.should_run
        self.staying = [pod for pod in on_node if not pod.is_terminating]
        self.running = [pod for pod in self.staying if not pod.is_finished]

    # ---- maintenance

    def lacks_pod(self) -> bool:
        return self.should_run and (not self.on_node or (self.may_surge and not self.running))

    def find_surplus(self) -> list[Pod]:
        """The pods that must go from here."""
        if self.eligibility is None:
            return [pod for pod in self.staying if not pod.spec.node_name]
        if not self.eligibility.may_stay:
            return self.staying
        finished = [pod for pod in self.staying if pod.is_finished]
        return [*finished, *(self._find_surplus_of_surge() if self.may_surge else self.running[1:])]

    def _find_surplus_of_surge(self) -> list[Pod]:
        """With surge, two pods may be on a node while the old one is ready and the new one not yet available."""
        new = [pod for pod in self.running if revision_of(pod) == self.revision]
        old = [pod for pod in self.running if revision_of(pod) != self.revision]
        surplus = [*new[1:], *old[1:]]
        if new and old and (not pods.is_ready(old[0]) or self._is_available(new[0])):
            surplus.append(old[0])
        return surplus

    def find_pair(self) -> PodPair | None:
        """The pair of the node; None where there are two of the same revision: those are cleaned up first."""
        new = [pod for pod in self.staying if revision_of(pod) == self.revision]
        old = [pod for pod in self.staying if revision_of(pod) != self.revision]
        if len(new) > 1 or len(old) > 1:
            return None
        return PodPair(new[0] if new else None, old[0] if old else None)

    # ---- marks

    def find_marks(self) -> set[NodeMark]:
        if not self.on_node and self.eligibility is None:
            return set()
        marks = self._find_status_marks()
        if self.lacks_pod():
            marks.add(NodeMark.LACKING)
        if self.find_surplus():
            marks.add(NodeMark.STRANDED if self.eligibility is None else NodeMark.SURPLUS)
        if any(pods.is_maturing(pod, self.min_ready_seconds, self.now) for pod in self.on_node):
            marks.add(NodeMark.MATURING)
        if self.on_node or self.should_run:
            pair = self.find_pair()
            marks |= self._mark_without_surge(pair) | self._mark_with_surge(pair)
        return marks

    def _find_status_marks(self) -> set[NodeMark]:
        if not self.should_run:
            return {NodeMark.MISSCHEDULED} if self.on_node and self.eligibility is not None else set()
        return self.find_marks_of_desired()

    def find_marks_of_desired(self) -> set[NodeMark]:
        """How the node counts for the status where a daemon should run on it."""
        if not self.on_node:
            return {NodeMark.DESIRED}
        oldest = self.on_node[0]
        claims = {
            NodeMark.READY: pods.is_ready(oldest),
            NodeMark.AVAILABLE: self._is_available(oldest),
            NodeMark.UPDATED: revision_of(oldest) == self.revision,
        }
        return {NodeMark.DESIRED, NodeMark.SCHEDULED, *(mark for mark, is_true in claims.items() if is_true)}

    def _mark_without_surge(self, pair: PodPair | None) -> set[NodeMark]:
        """How the node stands in an update without surge. One whose new pod is available needs nothing more."""
        if pair is None or (pair.old is None) == (pair.new is None):
            return {NodeMark.UNAVAILABLE}
        if pair.new is not None:
            return set() if self._is_available(pair.new) else {NodeMark.UNAVAILABLE}
        assert pair.old is not None
        return {NodeMark.REPLACEABLE if self._is_available(pair.old) else NodeMark.OLD_UNAVAILABLE}

    def _mark_with_surge(self, pair: PodPair | None) -> set[NodeMark]:
        """The same for an update with surge."""
        if pair is None:
            return {NodeMark.SURGING}
        counted = pair.old or pair.new
        marks = {NodeMark.SERVING} if counted is not None and self._is_available(counted) else set()
        if pair.old is None:
            return marks
        if pair.new is not None:
            return marks | {NodeMark.OLD_LEAVING if self._is_available(pair.new) else NodeMark.SURGING}
        if self._is_available(pair.old):
            return marks | {NodeMark.SURGEABLE if self.should_run else NodeMark.LEAVABLE}
        return marks | {NodeMark.SURGE_AT_ONCE if self.should_run else NodeMark.OLD_LEAVING}

    def _is_available(self, pod: Pod) -> bool:
        return pods.is_available(pod, self.min_ready_seconds, self.now)
