"""The fix "add one node like …" beside a real cluster: the node is really added, with the daemons that come with it.

Nodes of nine shapes with 4 cpu are commoner than the one with 4.1. A DaemonSet takes half a cpu of each; on the large
node, which is full, its pod waits. So one more large node takes a pod of 3.6 cpu and no more, and one more small node,
which has the room as long as it is bare, does not.
"""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest
import yaml

from live.test_live_verbs import run
from testbed import nodes
from testbed.client import Client, Json
from testbed.pytest_plugin import Bed, HollowNodes
from wukong.cli.verbs.explain import command as explain

SMALL, LARGE = {"cpu": "4"}, {"cpu": "4100m"}
SHAPES, OF_EACH = 9, 2
# As agents of networks have it on clouds: a new node takes nobody but daemons until they run there.
STARTING = {"key": "example.com/starting", "effect": "NoSchedule"}


@pytest.mark.slow
def test_a_node_like_the_one_named_takes_the_pod_and_a_smaller_one_with_its_daemons_does_not(
    bed: Bed, namespace: str, hollow_nodes: HollowNodes, tmp_path: Path
) -> None:
    large = asyncio.run(furnish(bed, namespace, hollow_nodes))
    fitting, oversized = a_pod("fitting", namespace, "3600m"), a_pod("oversized", namespace, "3601m")
    assert list_new_nodes(bed, fitting, tmp_path) == [f"add one node like {large}"]
    assert list_new_nodes(bed, oversized, tmp_path) == []
    asyncio.run(follow_the_fix(bed, namespace, hollow_nodes, fitting, oversized))


async def furnish(bed: Bed, namespace: str, hollow_nodes: HollowNodes) -> str:
    """Make the nodes and their daemons; gives the name of the large node."""
    (large,) = await hollow_nodes(1, capacity=LARGE, labels={"pool": "large"})
    shapes = [{"pool": f"small-{number}"} for number in range(SHAPES)]
    await asyncio.gather(*(hollow_nodes(OF_EACH, capacity=SMALL, labels=labels) for labels in shapes))
    async with bed.client() as client:
        full = a_pod("full", namespace, LARGE["cpu"])
        full["spec"]["nodeName"] = large
        await client.create(pods_of(namespace), full)
        labels = {"app": "agent"}
        daemon = {**containers("500m"), **nodes.on_reserved(namespace), "tolerations": [{"operator": "Exists"}]}
        spec = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": daemon}}
        await client.create(daemon_sets_of(namespace), {"metadata": {"name": "agent"}, "spec": spec})
        await wait_for_daemons(client, namespace, SHAPES * OF_EACH + 1)
    return large


async def follow_the_fix(bed: Bed, namespace: str, hollow_nodes: HollowNodes, fitting: Json, oversized: Json) -> None:
    path, count = pods_of(namespace), SHAPES * OF_EACH + 1
    async with bed.client() as client:
        for pod in (fitting, oversized):
            await client.create(path, pod)
            await client.wait_until(f"{path}/{pod['metadata']['name']}", lambda it: count_too_small(it) == count)
        await add_node(client, namespace, hollow_nodes, SMALL, "small-0", count + 1)
        for pod in (fitting, oversized):
            await client.wait_until(f"{path}/{pod['metadata']['name']}", lambda it: count_too_small(it) == count + 1)
        new = await add_node(client, namespace, hollow_nodes, LARGE, "large", count + 2)
        placed = await client.wait_until(f"{path}/fitting", lambda it: bool(it["spec"].get("nodeName")))
        assert placed["spec"]["nodeName"] == new
        await client.wait_until(f"{path}/oversized", lambda it: count_too_small(it) == count + 2)


async def add_node(
    client: Client, namespace: str, hollow_nodes: HollowNodes, capacity: dict[str, str], pool: str, count: int
) -> str:
    """One more node of a shape, which makes so many: first comes its daemon, then whoever waits."""
    (name,) = await hollow_nodes(1, capacity=capacity, labels={"pool": pool}, taints=[STARTING])
    await wait_for_daemons(client, namespace, count)
    await client.patch(f"/api/v1/nodes/{name}", {"spec": {"taints": nodes.reserved(namespace)["taints"]}})
    return name


def list_new_nodes(bed: Bed, pod: Json, folder: Path) -> list[str]:
    manifest = folder / f"{pod['metadata']['name']}.yaml"
    manifest.write_text(yaml.safe_dump(pod))
    answer = json.loads(run(explain, "--kubeconfig", bed.kubeconfig, "-f", manifest, "-o", "json").stdout)
    return [fix["change"] for fix in answer["fixes"] if fix["kind"] == "node"]


def a_pod(name: str, namespace: str, cpu: str) -> Json:
    metadata = {"name": name, "namespace": namespace}
    spec = {**containers(cpu), **nodes.on_reserved(namespace)}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def containers(cpu: str) -> Json:
    return {"containers": [{"name": "main", "image": "web:1", "resources": {"requests": {"cpu": cpu}}}]}


def pods_of(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/pods"


def daemon_sets_of(namespace: str) -> str:
    return f"/apis/apps/v1/namespaces/{namespace}/daemonsets"


async def wait_for_daemons(client: Client, namespace: str, count: int) -> None:
    """Until so many nodes have their daemon, and all but that of the full node run."""

    def is_complete(daemon_set: Json) -> bool:
        status = daemon_set["status"]
        return (status["currentNumberScheduled"], status.get("numberReady", 0)) == (count, count - 1)

    await client.wait_until(f"{daemon_sets_of(namespace)}/agent", is_complete)


def count_too_small(pod: Json) -> int:
    """On how many nodes kube-scheduler says that cpu is missing; the shared cluster has nodes of others, too."""
    conditions = {entry["type"]: entry for entry in pod["status"].get("conditions", ())}
    found = re.search(r"(\d+) Insufficient cpu", conditions.get("PodScheduled", {}).get("message", ""))
    return int(found[1]) if found else 0
