"""Our scheduler with its metrics: how long attempts take by what came of them, how many pods wait, and how long.

Built by the component for a real cluster. Decides nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import ClassVar

from prometheus_client import Gauge, Histogram

from wukong.actions import Outcome
from wukong.api.resources import Key
from wukong.controllers.scheduler.controller import Result, Scheduler
from wukong.ports import Clock
from wukong.runtime.metrics import Metrics
from wukong.state import State
from wukong.state.controller import PodRight

_SECONDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1)
QUEUES = ("active", "backoff", "unschedulable")


class MeasuredScheduler:
    """A controller that is the scheduler which `build` makes of a function to call with the result of each attempt."""

    pod_rights: ClassVar[frozenset[PodRight]] = Scheduler.pod_rights

    def __init__(self, build: Callable[[Callable[[Result], None]], Scheduler], metrics: Metrics, clock: Clock) -> None:
        self.scheduler = build(self._record_result)
        self.name, self.watches = self.scheduler.name, self.scheduler.watches
        self._results: list[Result] = []  # of the attempt that goes on
        self._seconds = Histogram(
            "wukong_scheduling_attempt_seconds",
            "Time to decide about one pod, by what came of it",
            ["result"],
            registry=metrics.registry,
            buckets=_SECONDS,
        )
        pending = Gauge(
            "wukong_scheduler_pending_pods", "Pods that wait for a node, by queue", ["queue"], registry=metrics.registry
        )
        for queue in QUEUES:
            pending.labels(queue).set_function(self._count_of(queue))
        oldest = Gauge(
            "wukong_scheduler_oldest_pending_seconds",
            "Age of the oldest pod that waits for a node",
            registry=metrics.registry,
        )
        oldest.set_function(lambda: self._age_of_oldest(clock.now()))

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        began = time.perf_counter()
        outcome = self.scheduler.reconcile(key, state, now)
        while self._results:
            self._seconds.labels(self._results.pop()).observe(time.perf_counter() - began)
        return outcome

    def _record_result(self, result: Result) -> None:
        self._results.append(result)

    def _count_of(self, queue: str) -> Callable[[], float]:
        return lambda: float(self.scheduler.count_pending()[queue])

    def _age_of_oldest(self, now: float) -> float:
        created_at = self.scheduler.oldest_pending_since()
        return 0.0 if created_at is None else max(0.0, now - created_at)
