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
from multiprocessing import get_context
from pathlib import Path

from bench.forecast.snapshots import image_change
from wukong.app.snapshots import Baseline, load, make_baseline
from wukong.cluster import pause_garbage_collector
from wukong.cluster.snapshot_documents import read_documents
from wukong.embedded.scenario import Scenario

PLAYS = 5
FORKS, WORKERS = 16, 2


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
        "writes": story.writes,
        "mb": alone,
        "forks_mb": measure_forks(baseline),
    }


def a_change() -> Scenario:
    return Scenario(manifests=[image_change()])


def leave_out(_: str) -> None: ...


def median(act: Callable[[], object]) -> float:
    times = []
    for _ in range(PLAYS):
        began = time.perf_counter()
        act()
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def measure_forks(baseline: Baseline) -> float:
    """The memory of this process and of workers that share with it, each of which has played its forks."""
    context = get_context("fork")
    done, stop = context.Semaphore(0), context.Event()

    def work(first: int) -> None:
        for seed in range(first, FORKS, WORKERS):
            baseline.play(a_change(), seed, lines=leave_out)
        done.release()
        stop.wait()

    workers = [context.Process(target=work, args=(first,)) for first in range(WORKERS)]
    for worker in workers:
        worker.start()
    for _ in workers:
        done.acquire()
    total = sum(megabytes(worker.pid or 0) for worker in workers) + megabytes(os.getpid())
    stop.set()
    for worker in workers:
        worker.join()
    return total


def megabytes(pid: int) -> float:
    """Its share of memory: what it shares with others is divided among them."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


if __name__ == "__main__":
    main()
