"""How many pods a second the engine places, and whether each placement was the best one when scored from scratch."""

from __future__ import annotations

import time
from dataclasses import dataclass

from bench.workloads import WORKLOADS, in_turn, make_objects
from wukong.api.core import Pod
from wukong.engine import Scheduler, Snapshot

_LONG_ENOUGH = 1.0  # seconds a measurement lasts at least, unless the cluster is full before
_FIRST_CHUNK = 200


@dataclass(frozen=True)
class Rate:
    workload: str
    nodes: int
    per_node: int  # pods already placed on every node
    placed: int
    seconds: float

    @property
    def per_second(self) -> float:
        return self.placed / self.seconds


def measure(base: Snapshot, workload: str, per_node: int) -> tuple[Rate, list[tuple[str, Pod, str]]]:
    """Place pods for about a second on a fork of `base`; gives the rate and what went where."""
    pods = WORKLOADS[workload]()
    scheduler = Scheduler(base.fork())
    for pod in pods:
        scheduler.view_of(pod).sync()  # compiled once, before the clock runs
    history: list[tuple[str, Pod, str]] = []
    chunk, spent = _FIRST_CHUNK, 0.0
    while spent < _LONG_ENOUGH:
        began = time.perf_counter()
        placed = _place(scheduler, pods, chunk, len(history))
        spent += time.perf_counter() - began
        history += placed
        if len(placed) < chunk:
            break
        chunk = min(chunk * 4, 50_000)
    return Rate(workload, len(base.rows), per_node, len(history), spent), history


def _place(scheduler: Scheduler, pods: list[Pod], count: int, start: int) -> list[tuple[str, Pod, str]]:
    if len(pods) == 1:
        nodes = scheduler.place_many(pods[0], count, f"bench/{start}")
        return [(f"bench/{start}-{number}", pods[0], node) for number, node in enumerate(nodes)]
    placed = []
    for key, pod in in_turn(pods, count):
        node = scheduler.place(pod, f"{start}/{key}")
        if node is None:
            break
        placed.append((f"{start}/{key}", pod, node))
    return placed


def check_from_scratch(base: Snapshot, history: list[tuple[str, Pod, str]], samples: int) -> tuple[int, int]:
    """Repeat the placements; at evenly chosen ones score all nodes with nothing remembered. Gives checked and wrong."""
    snapshot = base.fork()
    every = max(1, len(history) // samples)
    checked = wrong = 0
    for number, (key, pod, node) in enumerate(history):
        if number % every == every // 2 and checked < samples:
            checked += 1
            wrong += Scheduler(snapshot.fork()).decide(pod).best[0] != node
        snapshot.assume(key, pod, node)
    return checked, wrong


def base_snapshot(nodes: int, per_node: int) -> Snapshot:
    return Snapshot.of(make_objects(nodes, per_node))
