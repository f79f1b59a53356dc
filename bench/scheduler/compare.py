"""Our scheduler and the real kube-scheduler on the same 1,000 nodes, in turns: pods a second, and how long pods wait.

`python -m bench --scheduler` runs it. Both run all the time, and each is given the same bursts of pods, which name it.
Nobody runs the pods: nodes are objects without kubelets. kube-scheduler has its usual settings (it samples nodes), but
for its own limit on requests, which is lifted. Processor seconds are of the scheduler's own process. What ours placed
is checked by the plain rules afterwards: placements.py.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import NamedTuple

import yaml

from bench.scheduler.bursts import (
    WORKLOADS,
    Burst,
    build_pods,
    measure_bare_binding,
    remove_pods,
    run_burst,
)
from bench.scheduler.placements import Check, Choices, check_burst
from testbed import nodes, programs
from testbed.client import Client, Json
from testbed.control_plane import ControlPlane
from testbed.ports import free_ports

NODES, PODS, ROUNDS = 1_000, 500, 3
STOCK, OURS = "default-scheduler", "wukong-scheduler"
NAMESPACE = "default"
WARM_UP = 50  # pods, before anything is measured
# New nodes are usable at once; pods need no account, which nobody would make.
FLAGS = {"apiserver": ["--disable-admission-plugins=TaintNodesByCondition,ServiceAccount"]}
TICKS = os.sysconf("SC_CLK_TCK")

Say = Callable[[str], None]


class Result(NamedTuple):
    burst: Burst
    cpu_seconds: float


def main(say: Say) -> None:
    print(f"{PODS} pods at once, {NODES:,} nodes, median of {ROUNDS}; in turns with kube-scheduler {STOCK}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        config = folder / "scheduler.yaml"
        config.write_text(yaml.safe_dump(build_config()))
        plane = ControlPlane(folder / "plane", programs.find(say), scheduler_config=config, extra_flags=FLAGS)
        with plane:
            plane.end("controller-manager")  # it would take pods from nodes without leases
            choices = folder / "choices"
            choices.touch()
            ours = start_ours(plane.kubeconfig, folder / "ours.log", choices)
            try:
                asyncio.run(compare(plane, ours.pid, Choices(choices), say))
            finally:
                ours.send_signal(signal.SIGTERM)
                ours.wait()


def build_config() -> dict[str, object]:
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    return {**head, "clientConnection": {"qps": 100_000, "burst": 100_000}}


def start_ours(kubeconfig: Path, log: Path, choices: Path) -> subprocess.Popen[bytes]:
    (probes,) = free_ports(1)
    words = ["run", "--components", "scheduler", "--kubeconfig", str(kubeconfig), "--no-leader-election"]
    argv = [sys.executable, "-m", "bench.scheduler.ours", str(choices), *words, "--probes", f"127.0.0.1:{probes}"]
    with log.open("ab") as output:
        return subprocess.Popen(argv, stdout=output, stderr=output)


async def compare(plane: ControlPlane, our_pid: int, choices: Choices, say: Say) -> None:
    async with Client.of(plane.kubeconfig) as client:
        say(f"creating {NODES:,} nodes")
        made = [a_node(number) for number in range(NODES)]
        await nodes.create(client, made)
        names = [node["metadata"]["name"] for node in made]
        pids = {STOCK: plane.running["scheduler"].pid, OURS: our_pid}
        for scheduler in pids:
            await run_burst(client, NAMESPACE, build_pods("mixed", scheduler, WARM_UP))
            await remove_pods(client, NAMESPACE)
        say("binding without a scheduler")
        bare = await measure_bare_binding(client, NAMESPACE, build_pods("plain", "nobody", PODS), names)
        await remove_pods(client, NAMESPACE)
        print(f"the API server alone takes {bare:,.0f} bindings/s")
        print(f"{'':16}{'pods/s':>22}{'':8}{'p50 ms':>16}{'p99 ms':>18}{'cpu ms/pod':>18}")
        print(f"{'':16}{'ours':>10}{'stock':>10}{'ratio':>10}" + f"{'ours':>10}{'stock':>8}" * 3)
        check = Check()
        for workload in WORKLOADS:
            results: dict[str, list[Result]] = {STOCK: [], OURS: []}
            for turn in range(ROUNDS):
                for scheduler in (STOCK, OURS) if turn % 2 else (OURS, STOCK):
                    say(f"{workload}, {scheduler}, {turn + 1} of {ROUNDS}")
                    choices.take()
                    result, stored = await measure(client, workload, scheduler, pids[scheduler])
                    results[scheduler].append(result)
                    if scheduler == OURS:
                        check += check_burst(made, stored, choices.take())
            print_row(workload, results)
        print(
            f"ours, by the plain rules: {check.placed:,} placements, each legal when it was decided, {check.scored} of "
            f"them scored on every node; {len(check.problems)} wrong"
        )
        for problem in check.problems[:20]:
            print(f"  {problem}")


async def measure(client: Client, workload: str, scheduler: str, pid: int) -> tuple[Result, list[Json]]:
    """What a burst took, and its pods as they were placed; they are gone by then."""
    before = cpu_seconds_of(pid)
    burst = await run_burst(client, NAMESPACE, build_pods(workload, scheduler, PODS))
    result = Result(burst, cpu_seconds_of(pid) - before)
    stored = (await client.get(f"/api/v1/namespaces/{NAMESPACE}/pods"))["items"]
    await remove_pods(client, NAMESPACE)
    return result, stored


def print_row(workload: str, results: dict[str, list[Result]]) -> None:
    def middle(scheduler: str, read: Callable[[Result], float]) -> float:
        return median(map(read, results[scheduler]))

    rates = [middle(scheduler, lambda result: result.burst.per_second) for scheduler in (OURS, STOCK)]
    cells = [f"{rates[0]:10,.0f}{rates[1]:10,.0f}{rates[0] / rates[1]:10.2f}"]
    readers: list[Callable[[Result], float]] = [
        lambda result: result.burst.p50_ms,
        lambda result: result.burst.p99_ms,
        lambda result: 1000 * result.cpu_seconds / PODS,
    ]
    for read in readers:
        cells.append(f"{middle(OURS, read):10,.1f}{middle(STOCK, read):8,.1f}")
    print(f"{workload:16}" + "".join(cells), flush=True)


def a_node(number: int) -> Json:
    labels = {"topology.kubernetes.io/zone": f"zone-{number % 3}"}
    return nodes.a_node(f"node-{number:05d}", now=time.time(), labels=labels)


def cpu_seconds_of(pid: int) -> float:
    """User and system time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS
