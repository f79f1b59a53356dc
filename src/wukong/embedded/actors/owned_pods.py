"""The pods of each controller, counted as they come, change and go: what a ReplicaSet's status says, without a walk.

A follower of the mirror (derived_indexes.py), asked by replica_set.py, and by ranking.py for the order of leaving.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Hashable, Mapping
from math import inf
from typing import ClassVar, NamedTuple, TypeVar

from wukong.api.core import Pod as AnyPod
from wukong.api.meta import Object, controller_of
from wukong.api.resources import Key
from wukong.embedded.actors.pods import is_active, is_ready, ready_since
from wukong.embedded.actors.replica_set.ranking import Ranks
from wukong.embedded.world.objects import Pod
from wukong.state.indexes import LabelClass, label_class

Entry = TypeVar("Entry", bound=Hashable)


class Member(NamedTuple):
    """What of a pod is counted."""

    is_active: bool
    is_terminating: bool  # and not finished
    ready_since: float | None  # None: not ready; 0: it does not say
    node: str
    labels: LabelClass


class OwnedPods:
    """The pods of one controller. But for `terminating`, only active ones count."""

    def __init__(self) -> None:
        self.members: dict[Key, Member] = {}
        self.active = self.terminating = self.ready = 0
        self.since: Tally[float] = Tally()  # when they became ready → how many
        self.nodes: Tally[str] = Tally()  # "" for those that wait for one
        self.labels: Tally[LabelClass] = Tally()
        self.ranks = Ranks()

    def labelled(self, labels: Mapping[str, str]) -> int:
        """How many have all of these labels."""
        wanted = labels.items()
        return sum(count for each, count in self.labels.items() if wanted <= dict(each).items())

    def available(self, min_ready_seconds: int, now: float) -> int:
        if min_ready_seconds == 0:
            return self.ready
        return sum(count for since, count in self.since.items() if since > 0 and since + min_ready_seconds <= now)

    def next_available(self, min_ready_seconds: int, now: float) -> float | None:
        """Seconds until the next of them becomes available by waiting alone."""
        if not min_ready_seconds:
            return None
        waits = (since + min_ready_seconds - now for since in self.since)
        least = min((wait for wait in waits if wait > 0), default=inf)
        return None if least == inf else least

    def put(self, key: Key, pod: Pod) -> None:
        before = self.members.get(key)
        member = _member(pod, before)
        self.ranks.put(key, pod if member.is_active else None)
        if member == before:
            return
        if before is not None:
            self._count(before, -1)
        self._count(member, 1)
        self.members[key] = member

    def remove(self, key: Key) -> None:
        self._count(self.members.pop(key), -1)
        self.ranks.put(key, None)

    def _count(self, member: Member, change: int) -> None:
        self.terminating += change * member.is_terminating
        if not member.is_active:
            return
        self.active += change
        _add(self.nodes, member.node, change)
        _add(self.labels, member.labels, change)
        if member.ready_since is not None:
            self.ready += change
            _add(self.since, member.ready_since, change)


class OwnedPodsIndex:
    kinds: ClassVar[frozenset[str]] = frozenset({"Pod"})

    def __init__(self) -> None:
        self._by_controller: dict[str, OwnedPods] = {}  # by its uid

    def of(self, controller: Object) -> OwnedPods:
        return self._by_controller.get(controller.metadata.uid) or OwnedPods()

    def note(self, kind: str, key: Key, old: Object | None, new: Object | None) -> None:
        before, after = _controller(old), _controller(new)
        if before and before != after:
            crew = self._by_controller[before]
            crew.remove(key)
            if not crew.members:
                del self._by_controller[before]
        if after and isinstance(new, Pod):
            self._by_controller.setdefault(after, OwnedPods()).put(key, new)


def _member(pod: Pod, before: Member | None) -> Member:
    labels = pod.metadata.labels
    is_alike = before is not None and dict(before.labels) == labels
    return Member(
        is_active(pod),
        pod.is_terminating and not pod.is_finished,
        ready_since(pod) if is_ready(pod) else None,
        pod.spec.node_name,
        before.labels if is_alike and before is not None else label_class(pod),
    )


def _controller(found: Object | None) -> str:
    owner = controller_of(found.metadata) if isinstance(found, AnyPod) else None
    return owner.uid if owner is not None else ""


def _add(tally: Tally[Entry], entry: Entry, change: int) -> None:
    """Nothing is kept of what there is none of any more."""
    tally[entry] += change
    if not tally[entry]:
        del tally[entry]
