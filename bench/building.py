"""How long a snapshot of 5,000 nodes and 150,000 pods takes to build, and what it weighs, in a fresh process."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

NODES, PER_NODE = 5_000, 30


def measure() -> dict[str, float]:
    """In another process, so that its peak memory is its own."""
    done = subprocess.run([sys.executable, "-m", "bench.building"], check=True, capture_output=True, text=True)
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def peak_megabytes() -> float:
    """The most memory this process ever held. (getrusage would also count what its parent held when starting it.)"""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024


def main() -> None:
    import msgspec

    from bench.workloads import make_objects
    from wukong.api.decode import decode_objects
    from wukong.api.objects import Objects
    from wukong.engine import Snapshot

    made = make_objects(NODES, PER_NODE)
    text = msgspec.json.encode({"kind": "List", "items": [*made.nodes, *made.pods]})
    del made
    began = time.perf_counter()
    objects = Objects()
    for found in decode_objects(text):
        objects.add(found)
    decoded = time.perf_counter()
    snapshot = Snapshot.of(objects)
    built = time.perf_counter()
    fork = snapshot.fork()
    forked = time.perf_counter()
    peak = peak_megabytes()
    figures = {
        "pods": len(fork.pods),
        "text_mb": len(text) / 1e6,
        "decode_s": decoded - began,
        "build_s": built - decoded,
        "fork_ms": (forked - built) * 1000,
        "peak_mb": peak,
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
