"""One measurement of the embedded cluster in a process of its own, so that its memory is its own; prints JSON.

python -m bench.embedded.measure rollout NODES PODS alike|spread
python -m bench.embedded.measure churn NODES PODS VIRTUAL_SECONDS
python -m bench.embedded.measure growth budget|daemons|stateful PODS
"""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from bench.building import peak_megabytes
from bench.embedded.clusters import ANNOTATIONS, PER_DEPLOYMENT, Cluster
from bench.embedded.growth import build_cluster, change_pods
from bench.embedded.shares import Shares
from wukong.api.core import Pod
from wukong.api.kinds import PODS
from wukong.embedded.store.documents import encode_document

Figures = dict[str, object]
DECODED = 20_000  # documents


def main() -> None:
    verb, *numbers = sys.argv[1:]
    if verb == "rollout":
        figures = rollout(int(numbers[0]), int(numbers[1]), numbers[2])
    elif verb == "growth":
        figures = growth(numbers[0], int(numbers[1]))
    else:
        figures = churn(*map(int, numbers))
    print(json.dumps(figures))


def rollout(nodes: int, pods: int, timing: str) -> Figures:
    """A Deployment comes, then gets another image; each until every pod is of the latest version and available.

    Pods that start alike become ready together, and are counted together; spread, each at a moment of its own.
    """
    before = memory_megabytes()
    cluster = Cluster(nodes)
    with Shares() as shares:
        placing = _stage(cluster, lambda: cluster.add("web", pods, ANNOTATIONS[timing]))
        placed = memory_megabytes()
        rolling = _stage(cluster, lambda: cluster.roll("web", "registry.example.com/web:1"))
    assert cluster.available() == pods, cluster.recorder.workloads  # otherwise something else was measured
    assert not cluster.checkers.finish(is_at_rest=True)
    summary = cluster.recorder.workloads["default/web"]
    return {
        "placing": placing,
        "rolling": rolling,
        "min_available": summary.min_available,
        "max_pods": summary.max_pods,
        "shares": shares.found,
        "decode_us": decoding_microseconds(cluster),
        "placed_mb": placed - before,
        "peak_mb": peak_megabytes(),
    }


def churn(nodes: int, pods: int, seconds: int) -> Figures:
    cluster = Cluster(nodes)
    names = [f"web-{number}" for number in range(pods // PER_DEPLOYMENT)]
    for name in names:
        cluster.add(name, PER_DEPLOYMENT, ANNOTATIONS["spread"])
    cluster.world.run()
    weights = [memory_megabytes()]
    figures: list[Figures] = []
    with Shares() as shares:
        for _ in range(4):
            figures.append(_stage(cluster, lambda: cluster.churn(names, seconds / 4), is_final=False))
            weights.append(memory_megabytes())
    return {
        "quarters": figures,
        "shares": shares.found,
        "decode_us": decoding_microseconds(cluster),
        "quarters_mb": weights,
        "peak_mb": peak_megabytes(),
    }


def growth(kind: str, size: int) -> Figures:
    """What a change of one pod costs among so many that are counted together."""
    cluster = build_cluster(kind, size)
    gc.collect()
    gc.freeze()  # else one collection of all that was built would be taken for the cost of a few changes
    with Shares() as shares:
        figures = _stage(cluster, lambda: change_pods(cluster))
    return {"changing": figures, "shares": shares.found, "decode_us": decoding_microseconds(cluster)}


def _stage(cluster: Cluster, act: Callable[[], None], *, is_final: bool = True) -> Figures:
    writes, virtual, began, worked = cluster.writes, cluster.virtual_seconds, time.perf_counter(), time.process_time()
    act()
    if is_final:
        cluster.world.run()
    return {
        "seconds": time.perf_counter() - began,
        "cpu_seconds": time.process_time() - worked,
        "writes": cluster.writes - writes,
        "virtual_seconds": cluster.virtual_seconds - virtual,
    }


def decoding_microseconds(cluster: Cluster) -> float:
    """What msgspec needs to read one of these pods from JSON: something to hold a write against, from the same run."""
    documents = cluster.world.server.list(PODS).items
    texts = [encode_document(each) for each in documents[:1000]]
    decode = msgspec.json.Decoder(Pod).decode
    began = time.perf_counter()
    for number in range(DECODED):
        decode(texts[number % len(texts)])
    return (time.perf_counter() - began) / DECODED * 1e6


def memory_megabytes() -> float:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) / 1024


if __name__ == "__main__":
    main()
