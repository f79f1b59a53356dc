"""What further plays of a change cost once a snapshot is at rest, in a process of its own; prints JSON.

python -m bench.forecast.measure SNAPSHOT
"""

from __future__ import annotations

import gc
import json
import os
import statistics
import sys
import time
from collections import Counter as Tally
from collections.abc import Callable
from multiprocessing import active_children
from pathlib import Path

from bench.forecast.snapshots import image_change
from wukong.app.many_seeds import play_seeds
from wukong.app.snapshots import Baseline, load, make_baseline
from wukong.cluster import pause_garbage_collector
from wukong.cluster.snapshot_documents import read_documents
from wukong.embedded.scenario import Scenario

PLAYS = 5
FORKS, PROCESSES = 16, 2


def main() -> None:
    print(json.dumps(measure(sys.argv[1])))


def measure(path: str) -> dict[str, object]:
    began = time.perf_counter()
    with pause_garbage_collector():
        start = load(read_documents(path, Tally()).items)
        baseline = make_baseline(start, a_change())
    prepared = time.perf_counter() - began
    del start
    gc.collect()
    gc.freeze()
    alone = megabytes(os.getpid())
    story = baseline.play(a_change(), lines=leave_out)
    assert story.settled, story.stuck
    assert not story.findings, story.findings
    return {
        "prepared": prepared,
        "fork": median(baseline.fork),
        "play": median(lambda: baseline.play(a_change(), lines=leave_out)),
        "play_cpu": median(lambda: baseline.play(a_change(), lines=leave_out), time.process_time),
        "writes": story.writes,
        "mb": alone,
        "forks_mb": measure_forks(baseline),
    }


def a_change() -> Scenario:
    return Scenario(manifests=[image_change()])


def leave_out(_: str) -> None: ...


def median(act: Callable[[], object], now: Callable[[], float] = time.perf_counter) -> float:
    times = []
    for _ in range(PLAYS):
        began = now()
        act()
        times.append(now() - began)
    return statistics.median(times)


def measure_forks(baseline: Baseline) -> float:
    """The memory of all processes that have played the forks among them, as `wukong plan` lets them: this one, and
    others that share with it."""

    def play(seed: int) -> None:
        baseline.play(a_change(), seed, lines=leave_out)

    total = 0.0
    for count, _ in enumerate(play_seeds(play, range(FORKS), PROCESSES), 1):
        if count == FORKS:  # the others are still there, and at rest
            total = sum(megabytes(process.pid or 0) for process in active_children()) + megabytes(os.getpid())
    return total


def megabytes(pid: int) -> float:
    """Its share of memory: what it shares with others is divided among them."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


if __name__ == "__main__":
    main()
