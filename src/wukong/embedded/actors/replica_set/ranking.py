"""Which pods of a ReplicaSet go first when there are too many: kube-controller-manager's ActivePodsWithRanks.

Kept by crews.py, asked by replica_set.py. The criteria, first to go first:

    without a node · Pending, Unknown, Running · not ready · lower pod-deletion-cost · more related pods on its node ·
    ready more recently (by powers of two) · more restarts · newer (by powers of two) · uid

Times are compared only where they differ, and differing ones of about the same age by uid: a comparison that can
contradict itself, of which sorting makes whatever it may. Here pods alike in all of it go in the order of their uids,
and several such groups are merged by uid. Two pods are always in Kubernetes' order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from heapq import merge
from itertools import islice
from math import log2
from operator import attrgetter
from typing import NamedTuple

from wukong.api.resources import Key
from wukong.embedded.actors.pods import is_ready, ready_since
from wukong.embedded.store.documents import parse_time, value_at
from wukong.embedded.world.objects import Pod

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}
Worth = tuple[bool, int, bool, int]  # has a node, phase, is ready, deletion cost


class Rank(NamedTuple):
    """What of a pod decides when it goes, but for how crowded its node is."""

    key: Key
    pod: Pod
    worth: Worth
    since: float  # ready; 0 where it is not, or does not say
    restarts: int
    created: float

    @property
    def uid(self) -> str:
        return self.pod.metadata.uid


class Ranks:
    """The active pods of one ReplicaSet by worth and node. What changed is looked at when somebody has to go."""

    def __init__(self) -> None:
        self._changed: dict[Key, Pod | None] = {}  # since the last time
        self._ranks: dict[Key, Rank] = {}
        self._shelves: dict[Worth, dict[str, dict[Key, Rank]]] = {}  # by worth and node

    def put(self, key: Key, pod: Pod | None) -> None:
        """None: it is not there, or no longer active."""
        self._changed[key] = pod

    def leaving(self, count: int, related: Sequence[Mapping[str, int]], now: float) -> list[Pod]:
        """The first `count` to go. `related` says of each ReplicaSet of the same owner how many are on which node."""
        self._catch_up()
        return [rank.pod for rank in islice(self._in_order(count, related, now), count)]

    def _in_order(self, count: int, related: Sequence[Mapping[str, int]], now: float) -> Iterator[Rank]:
        for worth in sorted(self._shelves):
            shelf = self._shelves[worth]
            by_crowd: dict[int, list[str]] = {}
            for node in shelf:
                by_crowd.setdefault(sum(there.get(node, 0) for there in related), []).append(node)
            for crowd in sorted(by_crowd, reverse=True):
                found = [rank for node in by_crowd[crowd] for rank in shelf[node].values()]
                yield from _by_times(found, now)

    def _catch_up(self) -> None:
        for key, pod in self._changed.items():
            before = self._ranks.pop(key, None)
            if before is not None:
                self._take(before)
            if pod is not None:
                rank = self._ranks[key] = rank_of(key, pod)
                self._shelves.setdefault(rank.worth, {}).setdefault(pod.spec.node_name, {})[key] = rank
        self._changed.clear()

    def _take(self, rank: Rank) -> None:
        shelf = self._shelves[rank.worth]
        there = shelf[rank.pod.spec.node_name]
        del there[rank.key]
        if not there:
            del shelf[rank.pod.spec.node_name]
        if not shelf:
            del self._shelves[rank.worth]


def rank_of(key: Key, pod: Pod) -> Rank:
    ready = is_ready(pod)
    worth = (bool(pod.spec.node_name), _PHASES.get(pod.status.phase, 0), ready, deletion_cost(pod))
    created = parse_time(pod.metadata.creation_timestamp) if pod.metadata.creation_timestamp else 0.0
    return Rank(key, pod, worth, ready_since(pod) if ready else 0.0, _restarts(pod), created)


def deletion_cost(pod: Pod) -> int:
    """What cannot be read counts as nothing said. Kubernetes takes no sign `+` and no leading zeros."""
    text = pod.metadata.annotations.get(DELETION_COST, "0")
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()) or (digits[0] == "0" and text != "0"):
        return 0
    return int(text) if -(2**31) <= int(text) < 2**31 else 0


def _by_times(ranks: list[Rank], now: float) -> Iterator[Rank]:
    """Pods of the same worth and crowd. Of times about as long ago uid decides, lest the newest always went."""
    if len(ranks) == 1:
        yield ranks[0]
        return
    by_time: dict[float, list[Rank]] = {}
    for rank in ranks:
        by_time.setdefault(rank.since, []).append(rank)
    groups: dict[int, list[list[Rank]]] = {}
    for since, group in by_time.items():
        groups.setdefault(_magnitude(since, now), []).append(group)
    for magnitude in sorted(groups):
        yield from merge(*(_by_birth(group, now) for group in groups[magnitude]), key=attrgetter("uid"))


def _by_birth(ranks: list[Rank], now: float) -> Iterator[Rank]:
    """Pods that became ready at the same time."""
    by_time: dict[tuple[int, float], list[Rank]] = {}
    for rank in ranks:
        by_time.setdefault((-rank.restarts, rank.created), []).append(rank)
    groups: dict[tuple[int, int], list[list[Rank]]] = {}
    for (restarts, created), group in by_time.items():
        groups.setdefault((restarts, _magnitude(created, now)), []).append(sorted(group, key=attrgetter("uid")))
    for place in sorted(groups):
        yield from merge(*groups[place], key=attrgetter("uid"))


def _magnitude(at: float, now: float) -> int:
    """How long ago, as a power of two; what is not known comes first."""
    if not at:
        return -2
    nanoseconds = (now - at) * 1e9
    return int(log2(nanoseconds)) if nanoseconds > 0 else -1


def _restarts(pod: Pod) -> int:
    statuses = value_at(pod.document, "status.containerStatuses") or ()
    return max((each.get("restartCount", 0) for each in statuses), default=0)
