"""Wukong against cluster-capacity, the Go simulator: the same nodes, the same pods, the same minutes on one machine.

`python -m bench --versus` runs it. Both read the nodes from a real API server. Starting and reading is not counted on
either side: of cluster-capacity it is taken away by the difference of a short and a long run.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from bench import placing
from bench.workloads import WORKLOADS, make_nodes
from testbed import build, nodes, programs
from testbed.client import Client
from testbed.control_plane import ControlPlane
from testbed.errors import TestbedError
from wukong.api.decode import decode_objects
from wukong.api.objects import Objects
from wukong.engine import Snapshot

SIZES = (1_000, 5_000)
COMPARED = ("plain", "hostname anti-affinity")
# Pods of the two runs. Longer ones would flatter us: the more pods with rules there are, the slower it gets.
SHORT, LONG = 100, 1_100
TRIES = 3  # the quickest counts
MODULE = "sigs.k8s.io/cluster-capacity v0.30.0"
FLAGS = {"apiserver": ["--disable-admission-plugins=TaintNodesByCondition"]}  # new nodes are usable at once
POD_DEFAULTS = {"restartPolicy": "Always", "dnsPolicy": "ClusterFirst"}
CONTAINER_DEFAULTS = {
    "imagePullPolicy": "IfNotPresent",
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
}

Say = Callable[[str], None]


class Simulator(msgspec.Struct, frozen=True):
    """cluster-capacity, and the cluster it reads."""

    program: Path
    kubeconfig: Path

    def seconds(self, manifest: Path, count: int) -> float:
        """How long it takes to start, read the cluster and place so many pods."""
        argv = [str(self.program), f"--kubeconfig={self.kubeconfig}", f"--podspec={manifest}", f"--max-limit={count}"]
        began = time.perf_counter()
        done = subprocess.run([*argv, "--output=json"], check=True, capture_output=True, text=True)
        took = time.perf_counter() - began
        placed = placed_of(done.stdout)
        if placed != count:
            raise TestbedError(
                f"cluster-capacity placed {placed} of {count} pods:\n{done.stdout[-500:]}{done.stderr[-500:]}"
            )
        return took

    def rate(self, manifest: Path, most: int) -> float:
        """Pods a second, once it is under way."""
        counts = (SHORT, min(LONG, most))
        short, long = (min(self.seconds(manifest, count) for _ in range(TRIES)) for count in counts)
        return (counts[1] - counts[0]) / (long - short)


def main(say: Say) -> None:
    go_program = build.GoProgram(
        folder=Path(__file__).parent / "capacity",
        program="cluster-capacity",
        name="cluster-capacity",
        title=MODULE,
        minutes=4,
    )
    program = build.built(say, go_program)
    print("pods/s on the same nodes, empty at first. Wukong scores every node for every pod;")
    print(
        f"{MODULE} samples them as kube-scheduler does, from its {SHORT}th pod to its {LONG:,}th or the last that fits"
    )
    print(f"{'':34}{'Wukong':>12}{'Go':>10}{'ratio':>10}")
    with tempfile.TemporaryDirectory() as folder:
        plane = ControlPlane(Path(folder, "control-plane"), programs.find(say), extra_flags=FLAGS)
        with plane:
            for name in ("scheduler", "controller-manager"):  # they would only take time from those compared
                plane.end(name)
            have = 0
            for size in SIZES:
                say(f"creating {size - have:,} nodes")
                asyncio.run(add_nodes(plane.kubeconfig, make_nodes(size)[have:]))
                have = size
                base = asyncio.run(read_snapshot(plane.kubeconfig))
                for workload in COMPARED:
                    say(f"{workload}, {size:,} nodes")
                    compare(Simulator(program, plane.kubeconfig), base, workload, Path(folder, "pod.json"))


def compare(simulator: Simulator, base: Snapshot, workload: str, manifest: Path) -> None:
    size = len(base.rows)
    manifest.write_bytes(msgspec.json.encode(full_manifest(workload)))
    go = simulator.rate(manifest, most=size)  # one to a node at most
    ours = placing.measure(base, workload, 0)[0].per_second
    print(f"{workload:24}{size:>6,} nodes{ours:12,.0f}{go:10,.0f}{ours / go:10,.0f}", flush=True)


def full_manifest(workload: str) -> dict[str, Any]:
    """The pod that Wukong places, with the defaults that cluster-capacity wants written out."""
    (pod,) = WORKLOADS[workload]()
    manifest: dict[str, Any] = json.loads(msgspec.json.encode(pod))
    spec = manifest["spec"]
    spec["containers"] = [{**CONTAINER_DEFAULTS, **container} for container in spec["containers"]]
    return {**manifest, "apiVersion": "v1", "spec": {**POD_DEFAULTS, **spec}}


def placed_of(output: str) -> int:
    try:
        placed: int = json.loads(output)["status"]["replicas"]
    except (ValueError, KeyError):  # it says on stdout what is wrong, and ends with 0
        return 0
    return placed


async def add_nodes(kubeconfig: Path, made: list[Any]) -> None:
    async with Client.of(kubeconfig) as client:
        await nodes.create(client, made)


async def read_snapshot(kubeconfig: Path) -> Snapshot:
    objects = Objects()
    async with Client.of(kubeconfig) as client:
        for found in decode_objects(await client.send("GET", "/api/v1/nodes")):
            objects.add(found)
    assert not any(node.spec.taints for node in objects.nodes), "the admission plugin that taints new nodes is off"
    return Snapshot.of(objects)


def say_aside(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
