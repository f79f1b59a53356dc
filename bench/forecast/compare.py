"""`make bench ARGS=--forecast`: what a change costs to play on snapshots of growing clusters.

The change is another image for a Deployment of 100 replicas. `wukong sim run -s` is timed as a user sees it, in a
process of its own, with its modules compiled before, as they are where it is installed; then further plays of the same
change on forks (measure.py). With `--before DIR`, a checkout of an earlier version with its `.venv`, that version's
`wukong sim run -s` is timed beside it on the same files.
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
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from bench.forecast.snapshots import image_change, write

SIZES = ((250, 5_000), (500, 10_000), (1_000, 20_000), (2_500, 50_000), (5_000, 100_000))  # nodes and pods
HEAD = (
    f"{'nodes':>6}{'pods':>9}{'file':>9}{'sim run -s':>12}{'peak':>10}{'fork':>9}{'play':>9}{'writes':>8}"
    f"{'µs/write':>10}{'16 forks':>10}"
)
Say = Callable[[str], None]


class Run(NamedTuple):
    seconds: float
    peak_mb: float


def main(say: Say, before: str | None = None) -> None:
    print(HEAD + (f"{'before':>10}{'peak':>10}" if before else ""))
    with tempfile.TemporaryDirectory(prefix="wukong-bench-") as folder:
        change = Path(folder, "change.json")
        change.write_bytes(msgspec.json.encode(image_change()))
        for nodes, pods in SIZES:
            say(f"{nodes:,} nodes, {pods:,} pods")
            snapshot = Path(folder, f"{nodes}.json")
            write(nodes, pods, snapshot)
            run = time_command([sys.executable, "-m", "wukong"], snapshot, change, Path(folder, "compiled"))
            command = [sys.executable, "-m", "bench.forecast.measure", str(snapshot)]
            figures = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
            compiled = Path(folder, "compiled-before")
            earlier = time_command([f"{before}/.venv/bin/wukong"], snapshot, change, compiled) if before else None
            print(_row(nodes, pods, snapshot, run, figures, earlier), flush=True)
            snapshot.unlink()


def _row(nodes: int, pods: int, snapshot: Path, run: Run, figures: dict[str, Any], earlier: Run | None) -> str:
    each = figures["play"] / figures["writes"] * 1e6
    text = (
        f"{nodes:6,}{pods:9,}{snapshot.stat().st_size / 1e6:6.0f} MB{run.seconds:10.1f} s{run.peak_mb:7,.0f} MB"
        f"{figures['fork'] * 1000:6.0f} ms{figures['play']:7.2f} s{figures['writes']:8,}{each:10.0f}"
        f"{figures['forks_mb']:7,.0f} MB"
    )
    return text + (f"{earlier.seconds:8.1f} s{earlier.peak_mb:7,.0f} MB" if earlier else "")


def time_command(program: list[str], snapshot: Path, change: Path, compiled: Path) -> Run:
    """Time `wukong sim run -s`; its peak memory is that of the largest process so far, and sizes only grow.

    What Python compiles of our modules is kept in the folder `compiled`, and made before by `sim run --help`.
    """
    environment = _environment(program, compiled)
    subprocess.run([*program, "sim", "run", "--help"], check=True, stdout=subprocess.DEVNULL, env=environment)
    command = [*program, "sim", "run", "-s", str(snapshot), "-f", str(change), "-o", "json"]
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment)
    answer, _ = process.communicate()
    seconds = time.perf_counter() - began
    story = json.loads(answer)
    assert story["settled"], story["stuck"]
    return Run(seconds, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)


def _environment(program: list[str], compiled: Path) -> dict[str, str]:
    """An earlier version must not import this one."""
    left_out = {"PYTHONDONTWRITEBYTECODE"} | ({"PYTHONPATH"} if program[0] != sys.executable else set())
    kept = {name: value for name, value in os.environ.items() if name not in left_out}
    return {**kept, "PYTHONPYCACHEPREFIX": str(compiled)}
