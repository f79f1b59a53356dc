"""`make bench ARGS=--plan`: what `wukong plan` takes, as a user sees it, on snapshots of growing clusters.

The change is another image for a Deployment of 100 replicas, played with 16 seeds on all cores; loading is included.
Each is a process of its own, with its modules compiled before. Memory is what it and its workers have together at the
worst, shared pages divided among those who share them, looked at twice a second.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from bench.forecast.compare import SIZES
from bench.forecast.measure import megabytes
from bench.forecast.snapshots import image_change, write

SEEDS = 16
HEAD = f"{'nodes':>6}{'pods':>9}{'plan':>9}{'processor':>12}{'memory':>11}"
PAUSE_SECONDS = 0.5
Say = Callable[[str], None]


class Run(NamedTuple):
    seconds: float
    processor_seconds: float
    megabytes: float


def main(say: Say) -> None:
    print(f"{SEEDS} seeds on {os.cpu_count()} cores")
    print(HEAD)
    with tempfile.TemporaryDirectory(prefix="wukong-bench-") as folder:
        change = Path(folder, "change.json")
        change.write_bytes(msgspec.json.encode(image_change()))
        for nodes, pods in SIZES:
            say(f"{nodes:,} nodes, {pods:,} pods")
            snapshot = Path(folder, f"{nodes}.json")
            write(nodes, pods, snapshot)
            run = time_plan(snapshot, change, Path(folder, "compiled"))
            figures = f"{run.seconds:7.1f} s{run.processor_seconds:10.1f} s{run.megabytes:8,.0f} MB"
            print(f"{nodes:6,}{pods:9,}{figures}", flush=True)
            snapshot.unlink()


def time_plan(snapshot: Path, change: Path, compiled: Path) -> Run:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = str(compiled)
    program = [sys.executable, "-m", "wukong", "plan"]
    subprocess.run([*program, "--help"], check=True, stdout=subprocess.DEVNULL, env=environment)
    command = [*program, "-s", str(snapshot), "-f", str(change), "--seeds", str(SEEDS), "-o", "json"]
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    with tempfile.TemporaryFile() as answer:
        process = subprocess.Popen(command, stdout=answer, stderr=subprocess.DEVNULL, env=environment)
        most = 0.0
        while True:
            with suppress(subprocess.TimeoutExpired):
                process.wait(PAUSE_SECONDS)
                break
            most = max(most, sum(map(_megabytes_of, [process.pid, *_children_of(process.pid)])))
        seconds = time.perf_counter() - began
        answer.seek(0)
        verdict = json.loads(answer.read())["verdict"]
    assert verdict["isSafe"], verdict
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Run(seconds, processor, most)


def _children_of(pid: int) -> list[int]:
    with suppress(OSError):
        return [int(text) for text in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()]
    return []


def _megabytes_of(pid: int) -> float:
    """0 for a process that has ended meanwhile."""
    with suppress(OSError, StopIteration):
        return megabytes(pid)
    return 0.0
