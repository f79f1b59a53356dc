"""`python -m node_comparison.recording FILE`: a snapshot of a test bed on which the real Karpenter has made the nodes.

Then its Deployment grows for real, and how many nodes there were before and after is printed.
tests/cli/test_plan_recorded_karpenter.py plans the same from that file.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import click

from node_comparison.random_case import Case
from node_comparison.sides import TYPE, build_pool, move, wait_for_rest
from testbed import supervisor
from testbed.client import Client
from testbed.karpenter.installation import NODE_POOLS, running
from testbed.processes import Identity
from testbed.supervisor import Order

SIZES, ZONES = (2, 4, 8), ["test-zone-a", "test-zone-b"]
REPLICAS, GROWN = 5, 12


@click.command(help=__doc__)
@click.argument("file", type=click.Path(path_type=Path))
def main(file: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="wukong-record-karpenter-") as folder:
        bed_folder = Path(folder) / "bed"
        state = supervisor.up(bed_folder, Order(nodes=0, owner=Identity.of(os.getpid())), say)
        try:
            with running(state.kubeconfig, Path(folder), say):
                click.echo(asyncio.run(record(state.kubeconfig, file)))
        finally:
            supervisor.down(bed_folder)


def say(line: str) -> None:
    click.echo(line, err=True)


async def record(kubeconfig: Path, file: Path) -> str:
    case = build_case()
    path = f"/apis/apps/v1/namespaces/{case.name}/deployments"
    async with Client.of(kubeconfig) as client:
        await client.create("/api/v1/namespaces", {"metadata": {"name": case.name}})
        await client.wait_until(f"/api/v1/namespaces/{case.name}/serviceaccounts/default", lambda account: True)
        pool = build_pool(case)
        for requirement in pool["spec"]["template"]["spec"]["requirements"]:
            if requirement["key"] == "topology.kubernetes.io/zone":
                requirement["values"] = ZONES
        await client.create(NODE_POOLS, pool)
        for deployment in case.deployments:
            await client.create(path, move(deployment, case))
        before = await wait_for_rest(client, case, REPLICAS)
        command = [sys.executable, "-m", "wukong", "snapshot", "--kubeconfig", str(kubeconfig), "-o", str(file)]
        await asyncio.to_thread(subprocess.run, command, check=True)
        await client.patch(f"{path}/{case.grows}", {"spec": {"replicas": GROWN}})
        after = await wait_for_rest(client, case, GROWN)
        nodes = (await client.get("/api/v1/nodes"))["items"]
    types = sorted(node["metadata"]["labels"][TYPE] for node in nodes)
    return f"{before.nodes} nodes before, {after.nodes} after: {', '.join(types)}"


def build_case() -> Case:
    """Pods of 1500m that are spread over two zones."""
    labels = {"app": "web"}
    spread = {
        "maxSkew": 1,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": labels},
    }
    requests = {"cpu": "1500m", "memory": "1Gi"}
    container = {"name": "main", "image": "web:1", "resources": {"requests": requests}}
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [container], "topologySpreadConstraints": [spread]},
    }
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"replicas": REPLICAS, "selector": {"matchLabels": labels}, "template": template},
    }
    return Case(seed=0, sizes=SIZES, deployments=[deployment], grows="web", replicas=GROWN)


if __name__ == "__main__":
    main()
