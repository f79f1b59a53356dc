"""`make bench ARGS=--embedded`: rollouts of growing size, a cluster with churn, memory, and where the time goes; and
changes of single pods where ever more are counted together.

Each row is a process of its own (measure.py). Nothing is asserted about time: machines differ, and this one is shared.
Processor seconds are printed beside seconds, and every write beside what msgspec needs to decode one pod in the same
process.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from bench.embedded.growth import SIZES

ROLLOUTS = ((100, 500), (200, 1_000), (500, 2_500), (1_000, 5_000))  # nodes and pods
CHURN = (100, 1_000)
HOURS = 2  # virtual, of churn
HEAD = f"{'':30}{'seconds':>9}{'processor':>11}{'writes':>9}{'writes/s':>10}{'µs/write':>10}{'in decodes':>12}"

Say = Callable[[str], None]
Figures = dict[str, Any]


def main(say: Say, hours: int = HOURS) -> None:
    print(HEAD)
    for timing in ("alike", "spread"):
        for nodes, pods in ROLLOUTS:
            say(f"rollout of {pods:,} pods on {nodes:,} nodes, kubelets {timing}")
            found = run("rollout", str(nodes), str(pods), timing)
            tell_rollout(nodes, pods, timing, found)
        print(f"  where the last one's time goes: {shares(found)}\n", flush=True)
    nodes, pods = CHURN
    say(f"churn among {pods:,} pods on {nodes} nodes, {hours} virtual hours")
    tell_churn(nodes, pods, hours, run("churn", str(nodes), str(pods), str(hours * 3600)))
    print(HEAD)
    for kind, sizes in SIZES.items():
        for size in sizes:
            say(f"changes of single pods among {size:,} ({kind})")
            found = run("growth", kind, str(size))
            row(f"{kind}, {size:,} pods", found["changing"], found["decode_us"])


def run(*arguments: str) -> Figures:
    command = [sys.executable, "-m", "bench.embedded.measure", *arguments]
    found: Figures = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    return found


def tell_rollout(nodes: int, pods: int, timing: str, found: Figures) -> None:
    for stage, verb in (("placing", "placed"), ("rolling", "rolled")):
        row(f"{pods:,} pods {verb}, {timing}", found[stage], found["decode_us"])
    virtual, most, least = found["rolling"]["virtual_seconds"], found["max_pods"], found["min_available"]
    weight = f"{found['placed_mb']:.0f} MB for the placed pods, peak {found['peak_mb']:,.0f} MB"
    print(f"  {nodes:,} nodes; rolled in {virtual:.0f} virtual s, {least:,} to {most:,} pods; {weight}", flush=True)


def tell_churn(nodes: int, pods: int, hours: int, found: Figures) -> None:
    quarters = found["quarters"]
    whole = {name: sum(each[name] for each in quarters) for name in quarters[0]}
    print(HEAD)
    row(f"{nodes} nodes, {pods:,} pods, churn", whole, found["decode_us"])
    print(f"  {hours / whole['seconds']:.2f} virtual hours per second, {hours / whole['cpu_seconds']:.2f} of processor")
    weights = ", ".join(f"{weight:.0f}" for weight in found["quarters_mb"])
    print(f"  memory before and after each quarter: {weights} MB; peak {found['peak_mb']:,.0f} MB")
    print(f"  where the time goes: {shares(found)}")


def row(what: str, stage: Figures, decode_us: float) -> None:
    seconds, cpu, writes = stage["seconds"], stage["cpu_seconds"], stage["writes"]
    each = cpu / writes * 1e6
    print(
        f"{what:30}{seconds:9.1f}{cpu:11.1f}{writes:9,}{writes / seconds:10,.0f}{each:10.0f}{each / decode_us:12.1f}",
        flush=True,
    )


def shares(found: Figures) -> str:
    return ", ".join(f"{part} {share:.0%}" for part, share in found["shares"].items() if share >= 0.005)
