"""Wukong's mirror beside the official Python client on one real API server: time to synced, memory, watch, bind, evict.

`python -m bench --mirror` runs it. Each figure is from a fresh process, the two sides in turn in the same minutes. The
official client is installed into an environment of its own in the user's cache, once.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from testbed import nodes, programs
from testbed.build import cache_folder
from testbed.client import Client, Json
from testbed.control_plane import ControlPlane

CLIENT = "kubernetes==35.0.0"
NODES, PODS = 5_000, 20_000
CHANGES = 10_000  # watch events
ACTS = 2_000  # binds, and evictions
TRIES = 2  # the quickest counts
AT_ONCE = 32
FLAGS = {"apiserver": ["--disable-admission-plugins=TaintNodesByCondition"]}  # new nodes are usable at once
POD_PATH = "/api/v1/namespaces/default/pods"

Say = Callable[[str], None]
Figures = dict[str, float]


class Side(msgspec.Struct, frozen=True):
    """One of the two programs compared."""

    name: str
    argv: list[str]
    kubeconfig: Path

    def run(self, verb: str, *rest: str) -> Figures:
        argv = [*self.argv, verb, str(self.kubeconfig), *rest]
        done = subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True)
        return _figures(done.stdout)

    def quickest(self, verb: str) -> Figures:
        return min((self.run(verb) for _ in range(TRIES)), key=lambda figures: figures["seconds"])

    def watch(self, change: Callable[[], None]) -> Figures:
        """It lists, then we change things, then it catches up."""
        argv = [*self.argv, "watch", str(self.kubeconfig), str(CHANGES)]
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout
            assert process.stdout.readline() == "listed\n"
            change()
            out, _ = process.communicate("go\n")
        return _figures(out)


def main(say: Say) -> None:
    python = official_client(say)
    with tempfile.TemporaryDirectory() as folder:
        plane = ControlPlane(Path(folder, "control-plane"), programs.find(say), extra_flags=FLAGS)
        with plane:
            for name in ("scheduler", "controller-manager"):  # they would take time, and pods from nodes without leases
                plane.end(name)
            ours = Side("Wukong", [sys.executable, "-m", "bench.mirror_ours"], plane.kubeconfig)
            script = Path(__file__).with_name("mirror_theirs.py")
            theirs = Side(CLIENT, [str(python), str(script)], plane.kubeconfig)
            say(f"creating {NODES:,} nodes and {PODS:,} pods")
            asyncio.run(furnish(plane.kubeconfig))
            print(f"{'':52}{'Wukong':>12}{CLIENT:>22}{'ratio':>8}")
            compare_lists(ours, theirs)
            compare_watches(ours, theirs, say)
            compare_acts(ours, theirs, say)


def compare_lists(ours: Side, theirs: Side) -> None:
    mine, other, paged = ours.quickest("list"), theirs.quickest("list"), theirs.quickest("list-in-pages")
    assert mine["objects"] == other["objects"] == paged["objects"] == NODES + PODS
    what = f"{NODES:,} nodes and {PODS:,} pods"
    for of, found in (("one list per kind", other), ("pages of 500", paged)):
        row(f"{what}, {of}: s", mine["seconds"], found["seconds"], found["seconds"] / mine["seconds"])
        row("  memory above what starting takes: MB", mine["mb"], found["mb"], found["mb"] / mine["mb"])
        row("  peak memory: MB", mine["peak_mb"], found["peak_mb"], found["peak_mb"] / mine["peak_mb"])
    print(f"Wukong builds the snapshot it decides on in {mine['snapshot_seconds']:.2f} s more", flush=True)


def compare_watches(ours: Side, theirs: Side, say: Say) -> None:
    rates = []
    for number, side in enumerate((ours, theirs)):
        say(f"changing {CHANGES:,} pods for {side.name}")
        found = side.watch(partial(asyncio.run, relabel(side.kubeconfig, str(number))))
        rates.append((CHANGES / found["seconds"], CHANGES / found["cpu_seconds"]))
    (mine, mine_cpu), (other, other_cpu) = rates
    row("watch events/s into the mirror", mine, other, mine / other)
    row("  per second of its own processor time", mine_cpu, other_cpu, mine_cpu / other_cpu)


def compare_acts(ours: Side, theirs: Side, say: Say) -> None:
    names = {side.name: [f"act-{number}-{i}" for i in range(ACTS)] for number, side in enumerate((ours, theirs))}
    say(f"creating {2 * ACTS:,} pods to bind and evict")
    asyncio.run(add_pods(ours.kubeconfig, ((name, "") for found in names.values() for name in found)))
    for verb in ("bind", "evict"):
        mine, other = (ACTS / side.run(verb, "node-0", *names[side.name])["seconds"] for side in (ours, theirs))
        row(f"{verb}/s, 16 at a time", mine, other, mine / other)


def row(what: str, mine: float, other: float, ratio: float) -> None:
    digits = 1 if max(mine, other) < 1_000 else 0
    print(f"{what:52}{mine:12,.{digits}f}{other:22,.{digits}f}{ratio:8.1f}", flush=True)


def official_client(say: Say) -> Path:
    """The interpreter that has it."""
    folder = cache_folder().parent / "bench" / CLIENT.replace("==", "-")
    python, finished = folder / "bin" / "python", folder / "finished"
    if not finished.exists():
        say(f"installing {CLIENT} into {folder}")
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", CLIENT], check=True)
        finished.touch()
    return python


# The cluster ------------------------------------------------------------------------------------------------------


async def furnish(kubeconfig: Path) -> None:
    async with Client.of(kubeconfig) as client:
        await nodes.create(client, nodes.spread_nodes(NODES, time.time()))
    await add_pods(kubeconfig, ((f"pod-{i}", f"node-{i % NODES}") for i in range(PODS)))


async def add_pods(kubeconfig: Path, wanted: Iterable[tuple[str, str]]) -> None:
    """Pods by name and node, "" for none."""
    async with Client.of(kubeconfig) as client:
        await _many(wanted, lambda it: client.create(POD_PATH, a_pod(*it)))


async def relabel(kubeconfig: Path, value: str) -> None:
    async with Client.of(kubeconfig) as client:
        body = {"metadata": {"labels": {"turn": value}}}
        await _many(range(CHANGES), lambda i: client.patch(f"{POD_PATH}/pod-{i}", body))


async def _many(wanted: Iterable[Any], do: Callable[[Any], Any]) -> None:
    left = iter(wanted)

    async def work() -> None:
        for it in left:
            await do(it)

    await asyncio.gather(*(work() for _ in range(AT_ONCE)))


def a_pod(name: str, node: str) -> Json:
    requests = {"cpu": "100m", "memory": "128Mi"}
    main = {
        "name": "main",
        "image": "registry.example.com/shop/web:1.2.3",
        "env": [{"name": f"SETTING_{i}", "value": f"value {i}"} for i in range(5)],
        "ports": [{"containerPort": 8080, "name": "http"}],
        "resources": {"requests": requests, "limits": requests},
        "readinessProbe": {"httpGet": {"path": "/healthz", "port": "http"}, "periodSeconds": 5},
    }
    labels = {"app": name.rsplit("-", 1)[0], "team": "shop", "version": "1.2.3"}
    spec: Json = {"containers": [main]} | ({"nodeName": node} if node else {})
    return {"metadata": {"name": name, "labels": labels}, "spec": spec}


def _figures(output: str) -> Figures:
    found: Figures = json.loads(output.splitlines()[-1])
    return found
