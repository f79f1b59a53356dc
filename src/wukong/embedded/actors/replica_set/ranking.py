"""Which pods of a ReplicaSet are deleted first when there are too many: kube-controller-manager's ActivePodsWithRanks.

Kept by owned_pods.py, read by replica_set/controller.py. The criteria, first to go first:

    without a node · Pending, Unknown, Running · not ready · lower pod-deletion-cost · more related pods on its node ·
    ready more recently (by powers of two) · more restarts · newer (by powers of two) · uid

Times are compared only where they differ, and differing ones of about the same age by uid: a comparison that can
contradict itself, so that the result depends on the sorting algorithm. Here pods alike in all of it go in the order of
their uids, and several such groups are merged by uid. Two pods are always in Kubernetes' order.
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
from wukong.semantics.label_syntax import parse_integer

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}
Criteria = tuple[bool, int, bool, int]  # has a node, phase, is ready, deletion cost


class RankedPod(NamedTuple):
    """All that decides when a pod goes, but for the number of related pods on its node."""

    key: Key
    pod: Pod
    criteria: Criteria
    ready_since: float  # 0 where it is not ready, or its status does not say
    restarts: int
    created: float

    @property
    def uid(self) -> str:
        return self.pod.metadata.uid


class DeletionRanking:
    """The active pods of one ReplicaSet by criteria and node. Changes are taken in when pods are to be chosen."""

    def __init__(self) -> None:
        self._changed: dict[Key, Pod | None] = {}  # since the last time
        self._ranked: dict[Key, RankedPod] = {}
        self._by_criteria: dict[Criteria, dict[str, dict[Key, RankedPod]]] = {}  # then by node

    def fork(self) -> DeletionRanking:
        copy = DeletionRanking()
        copy._changed, copy._ranked = dict(self._changed), dict(self._ranked)
        copy._by_criteria = {
            criteria: {node: dict(pods) for node, pods in by_node.items()}
            for criteria, by_node in self._by_criteria.items()
        }
        return copy

    def put(self, key: Key, pod: Pod | None) -> None:
        """None: it is not there, or no longer active."""
        self._changed[key] = pod

    def choose_pods(self, count: int, related: Sequence[Mapping[str, int]], now: float) -> list[Pod]:
        """The first `count` pods to delete.

        `related` has, for each ReplicaSet of the same owner, how many of its pods are on which node.
        """
        self._apply_changes()
        return [ranked.pod for ranked in islice(self._iterate(related, now), count)]

    def _iterate(self, related: Sequence[Mapping[str, int]], now: float) -> Iterator[RankedPod]:
        for criteria in sorted(self._by_criteria):
            by_node = self._by_criteria[criteria]
            by_related_count: dict[int, list[str]] = {}
            for node in by_node:
                by_related_count.setdefault(sum(counts.get(node, 0) for counts in related), []).append(node)
            for related_count in sorted(by_related_count, reverse=True):
                group = [ranked for node in by_related_count[related_count] for ranked in by_node[node].values()]
                yield from _order_by_readiness(group, now)

    def _apply_changes(self) -> None:
        for key, pod in self._changed.items():
            before = self._ranked.pop(key, None)
            if before is not None:
                self._remove(before)
            if pod is not None:
                ranked = self._ranked[key] = _rank(key, pod)
                self._by_criteria.setdefault(ranked.criteria, {}).setdefault(pod.spec.node_name, {})[key] = ranked
        self._changed.clear()

    def _remove(self, ranked: RankedPod) -> None:
        by_node = self._by_criteria[ranked.criteria]
        on_node = by_node[ranked.pod.spec.node_name]
        del on_node[ranked.key]
        if not on_node:
            del by_node[ranked.pod.spec.node_name]
        if not by_node:
            del self._by_criteria[ranked.criteria]


def _rank(key: Key, pod: Pod) -> RankedPod:
    ready = is_ready(pod)
    criteria = (bool(pod.spec.node_name), _PHASES.get(pod.status.phase, 0), ready, deletion_cost_of(pod))
    created = parse_time(pod.metadata.creation_timestamp) if pod.metadata.creation_timestamp else 0.0
    return RankedPod(key, pod, criteria, ready_since(pod) if ready else 0.0, _count_restarts(pod), created)


def deletion_cost_of(pod: Pod) -> int:
    """The cost in the pod's annotation; 0 if it cannot be read. Kubernetes takes no sign `+` and no leading zeros."""
    text = pod.metadata.annotations.get(DELETION_COST, "0")
    digits = text.removeprefix("-")
    if text.startswith("+") or (digits.startswith("0") and text != "0"):
        return 0
    cost = parse_integer(text)
    return cost if cost is not None and -(2**31) <= cost < 2**31 else 0


def _order_by_readiness(pods: list[RankedPod], now: float) -> Iterator[RankedPod]:
    """Pods alike in what comes before. Of about the same age uid decides, lest the newest would always go."""
    if len(pods) == 1:
        yield pods[0]
        return
    by_time: dict[float, list[RankedPod]] = {}
    for pod in pods:
        by_time.setdefault(pod.ready_since, []).append(pod)
    groups: dict[int, list[list[RankedPod]]] = {}
    for since, group in by_time.items():
        groups.setdefault(_age_magnitude(since, now), []).append(group)
    for magnitude in sorted(groups):
        yield from merge(*(_order_by_creation(group, now) for group in groups[magnitude]), key=attrgetter("uid"))


def _order_by_creation(pods: list[RankedPod], now: float) -> Iterator[RankedPod]:
    """Pods that became ready at the same time: by restarts, then by creation."""
    by_time: dict[tuple[int, float], list[RankedPod]] = {}
    for pod in pods:
        by_time.setdefault((-pod.restarts, pod.created), []).append(pod)
    groups: dict[tuple[int, int], list[list[RankedPod]]] = {}
    for (restarts, created), group in by_time.items():
        groups.setdefault((restarts, _age_magnitude(created, now)), []).append(sorted(group, key=attrgetter("uid")))
    for place in sorted(groups):
        yield from merge(*groups[place], key=attrgetter("uid"))


def _age_magnitude(at: float, now: float) -> int:
    """How long ago, as a power of two. An unknown time comes first."""
    if not at:
        return -2
    nanoseconds = (now - at) * 1e9
    return int(log2(nanoseconds)) if nanoseconds > 0 else -1


def _count_restarts(pod: Pod) -> int:
    statuses = value_at(pod.document, "status.containerStatuses") or ()
    return max((status.get("restartCount", 0) for status in statuses), default=0)
