"""How moving pods off leaving nodes goes, for Prometheus: a controller that hears every change and decides nothing.

Built by the component on a real cluster. Counts what it sees happen, not what was there when it began; every instance
does, the leader and those who wait.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from prometheus_client import Counter, Gauge, Histogram

from wukong.actions import DONE, Outcome
from wukong.api.core import Node, Pod
from wukong.api.kinds import MOVES, NODES, PODS
from wukong.api.resources import Key
from wukong.api.spot import Move
from wukong.controllers.spot.evictions import BLOCKS, SpotEvictions, must_leave
from wukong.controllers.spot.marks import is_marked
from wukong.controllers.spot.moves import moves_of_pod
from wukong.controllers.spot.notices import read_notice
from wukong.controllers.spot.owners import find_owner_of_move, is_ready, read_owner_pods
from wukong.controllers.spot.records import LeavingNodes, read_record
from wukong.controllers.spot.ways import OUR_WAYS, way_of
from wukong.ports import Clock
from wukong.runtime.metrics import Metrics
from wukong.state import Change, State
from wukong.state.controller import Watch

_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class Shortage(NamedTuple):
    """How many replicas a workload with a Move is short of, and since when."""

    missing: int
    since: float


class SpotMeter:
    name = "spot-meter"

    def __init__(self, metrics: Metrics, clock: Clock, evictions: SpotEvictions) -> None:
        self.watches = (
            Watch(NODES, self._observe_node, is_secondary=True),
            Watch(PODS, self._observe_pod, is_secondary=True),
            Watch(MOVES, self._observe_move, is_secondary=True),
        )
        self._clock = clock
        self._noticed: dict[Key, float] = {}  # nodes with a notice that is not written down yet, and since when
        self._shortages: dict[Key, Shortage] = {}  # by Move
        registry = metrics.registry
        self._notices = Counter(
            "wukong_spot_notices_total", "Nodes found to be leaving, by course", ["course"], registry=registry
        )
        self._cordon_seconds = Histogram(
            "wukong_spot_cordon_seconds",
            "Time from a notice that was seen until the node was closed",
            registry=registry,
            buckets=_SECONDS,
        )
        self._moves = Counter("wukong_spot_moves_total", "Pods that left in time, by way", ["way"], registry=registry)
        for way in OUR_WAYS:
            self._moves.labels(way)
        self._unavailable = Counter(
            "wukong_spot_unavailable_seconds_total",
            "Replica-seconds that workloads with a Move were short of",
            registry=registry,
        )
        self._lost = Counter("wukong_spot_lost_pods_total", "Pods that went with their node", registry=registry)
        blocked = Gauge(
            "wukong_spot_blocked_pods", "Pods that wait on leaving nodes, by what for", ["by"], registry=registry
        )
        for block in BLOCKS:
            blocked.labels(block).set_function(_count_of(evictions, block))

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        return DONE

    def _observe_node(self, change: Change, state: State) -> Iterable[Key]:
        old = read_record(change.old) if isinstance(change.old, Node) else None
        new = read_record(change.new) if isinstance(change.new, Node) else None
        if isinstance(change.new, Node) and new is None and read_notice(change.new) is not None:
            self._noticed.setdefault(change.key, self._clock.now())
        elif (since := self._noticed.pop(change.key, None)) is not None and new is not None:
            self._cordon_seconds.observe(max(0.0, self._clock.now() - since))
        if new is not None and change.old is not None and (old is None or old.course != new.course):
            self._notices.labels(new.course.value).inc()
        if change.new is None and old is not None:
            self._lost.inc(sum(must_leave(pod) for pod in state.pods_on(change.key.name)))
        return ()

    def _observe_pod(self, change: Change, state: State) -> Iterable[Key]:
        old, new = change.old, change.new
        for key in moves_of_pod(change, state):
            self._count_shortage(key, state)
        if (
            isinstance(old, Pod)
            and not old.is_terminating
            and old.spec.node_name in state.index_of(LeavingNodes).records
        ):
            last = new if isinstance(new, Pod) else old
            way = way_of(last)
            if way in OUR_WAYS and is_marked(last) and (new is None or last.is_terminating):
                self._moves.labels(way).inc()
        return ()

    def _observe_move(self, change: Change, state: State) -> Iterable[Key]:
        self._count_shortage(change.key, state)
        return ()

    def _count_shortage(self, key: Key, state: State) -> None:
        now, before = self._clock.now(), self._shortages.pop(key, None)
        if before is not None:
            self._unavailable.inc(before.missing * max(0.0, now - before.since))
        move, owner = state.get(Move, key), find_owner_of_move(key, state)
        if move is not None and owner is not None:
            pods = read_owner_pods(owner, state)
            ready = sum(is_ready(pod) for pod in (*pods.leaving, *pods.staying))
            self._shortages[key] = Shortage(max(0, move.spec.original - ready), now)


def _count_of(evictions: SpotEvictions, block: str) -> Callable[[], float]:
    return lambda: float(evictions.count_blocked()[block])
