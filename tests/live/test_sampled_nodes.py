"""What is said of large clusters beside a real kube-scheduler: it looks at a part of the nodes, and picks among those.

A pod of a hundred and twenty nodes prefers one of them by far. kube-scheduler goes on from where it stopped at the pod
before, and stops when it has found a hundred nodes that fit. So of six pods in a row each node is passed over by one.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from live.test_live_verbs import run
from testbed import nodes
from testbed.client import Client, Json
from testbed.control_plane import ControlPlane
from testbed.pytest_plugin import OwnControlPlane
from wukong.cli.verbs.capacity import command as capacity
from wukong.cli.verbs.explain import command as explain

NODES, PART, ROUNDS = 120, 100, 2
IN_A_ROW = NODES // (NODES - PART)
BEST, ALL_NODES = "best", "looks-at-all-nodes"
PODS = "/api/v1/namespaces/default/pods"
CONFIG = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
FLAGS = {
    "controller-manager": ["--controllers=serviceaccount-controller"],
    # It says at how many nodes it has looked. Look-alikes would be placed from a list kept of the pod before.
    "scheduler": ["--v=2", "--feature-gates=OpportunisticBatching=false"],
}
BOUND = re.compile(r'"Successfully bound pod to node" pod="default/(\S+)" .*evaluatedNodes=(\d+) feasibleNodes=(\d+)')
NOTE = (
    f"note: of {NODES} nodes kube-scheduler looks at as many as it takes to find {PART} that fit, and picks among "
    "those; here all are looked at."
)


@pytest.mark.slow
def test_kube_scheduler_looks_at_the_part_of_the_nodes_that_we_say(
    own_control_plane: OwnControlPlane, tmp_path: Path
) -> None:
    profiles = [{"schedulerName": "default-scheduler"}, {"schedulerName": ALL_NODES, "percentageOfNodesToScore": 100}]
    # One after the other: side by side, nodes further on may be looked at before all that come first.
    config = write(tmp_path / "scheduler.yaml", {**CONFIG, "parallelism": 1, "profiles": profiles})
    with own_control_plane(scheduler_config=config, extra_flags=FLAGS) as plane:
        picks = asyncio.run(place_all(plane))
        check_what_is_said(plane, tmp_path)
    in_part = [picks[f"part-{number}"] for number in range(ROUNDS * IN_A_ROW)]
    for first in range(0, len(in_part), IN_A_ROW):
        assert [name == BEST for name in in_part[first : first + IN_A_ROW]].count(False) == 1, in_part
    assert {name for pod, name in picks.items() if not pod.startswith("part-")} == {BEST}
    expected = {"only": (NODES, 1), "some": (NODES, PART - 1), "part": (PART, PART), "whole": (NODES, NODES)}
    assert read_looks(plane) == {pod: expected[pod.partition("-")[0]] for pod in picks}


async def place_all(plane: ControlPlane) -> dict[str, str]:
    """Pods one after the other, and the nodes that they get.

    The first ones fit on one node, and on fewer than it looks for: it looks at all nodes, at the last one, too.
    """
    async with Client.of(plane.kubeconfig) as client:
        await create_nodes(client)
        picks = {"only-one": await place(client, "only-one", nodeSelector={BEST: "yes"})}
        picks["some"] = await place(client, "some", nodeSelector={"some": "yes"})
        for name in (f"part-{number}" for number in range(ROUNDS * IN_A_ROW)):
            picks[name] = await place(client, name)
        for name in (f"whole-{number}" for number in range(IN_A_ROW)):
            picks[name] = await place(client, name, schedulerName=ALL_NODES)
    return picks


def check_what_is_said(plane: ControlPlane, folder: Path) -> None:
    """Each verb says it once, unless the scheduler is known to look at all; the node we name is the best of all."""
    source = ("--kubeconfig", plane.kubeconfig, "-f", write(folder / "pod.yaml", a_pod("another")))
    whole = write(folder / "all.yaml", {**CONFIG, "percentageOfNodesToScore": 100})
    for verb in (explain, capacity):
        assert run(verb, *source, "-o", "json").stderr.splitlines().count(NOTE) == 1
        assert "kube-scheduler looks at" not in run(verb, *source, "--scheduler-config", whole, "-o", "json").stderr
    assert json.loads(run(explain, *source, "-o", "json").stdout)["winner"] == BEST


async def create_nodes(client: Client) -> None:
    """The best comes last: kube-scheduler hears of nodes in order, and knows all when it knows this one."""
    some = [{"some": "yes"} if number < PART - 2 else {} for number in range(NODES - 1)]
    now = time.time()
    await nodes.create(
        client, [nodes.a_node(f"n{number}", now=now, labels=labels) for number, labels in enumerate(some)]
    )
    await nodes.create(client, [nodes.a_node(BEST, now=now, labels={BEST: "yes", "some": "yes"})])


async def place(client: Client, name: str, **spec: object) -> str:
    """Where kube-scheduler puts a pod."""
    await client.create(PODS, a_pod(name, **spec))
    placed = await client.wait_until(f"{PODS}/{name}", lambda it: bool(it["spec"].get("nodeName")))
    return str(placed["spec"]["nodeName"])


def a_pod(name: str, **spec: object) -> Json:
    requirement = {"matchExpressions": [{"key": BEST, "operator": "Exists"}]}
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "preference": requirement}]}
    full = {
        "containers": [{"name": "main", "image": "web:1", "resources": {"requests": {"cpu": "1m"}}}],
        "affinity": {"nodeAffinity": preferred},
        "tolerations": [{"key": nodes.NOT_READY, "operator": "Exists"}],  # nobody takes that from a new node here
        **spec,
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": full}


def read_looks(plane: ControlPlane) -> dict[str, tuple[int, int]]:
    """By pod, at how many nodes kube-scheduler looked, and on how many of these the pod fits."""
    lines = BOUND.finditer(plane.log("scheduler").read_text())
    return {found[1]: (int(found[2]), int(found[3])) for found in lines}


def write(path: Path, document: dict[str, Any]) -> Path:
    path.write_text(yaml.safe_dump(document))
    return path
