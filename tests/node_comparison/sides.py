"""A case on both sides: how many nodes there are, and how many pods wait, when nothing more happens."""

from __future__ import annotations

import asyncio
import time
from typing import NamedTuple

from node_comparison.random_case import MOST_NODES, Case
from testbed.behaviour import HOLLOW
from testbed.client import ApiError, Client, Json
from testbed.karpenter.installation import NODE_CLAIMS, NODE_CLASS, NODE_POOLS
from wukong.api.core import Quantities
from wukong.api.node_groups import NodeGroup, NodeTemplate
from wukong.app.embedded import play_scenario
from wukong.embedded.scenario import Scenario
from wukong.embedded.scenario.format.fields import ScaleTarget, TimelineEntry

CASE = "compare.novasphere.dev/case"
LONGEST_SECONDS = 150.0  # Karpenter's batches end after one second, at the latest after ten
ROUND = 200  # seconds of virtual time for each step: nodes boot in ten, and none goes before ten minutes


class Ending(NamedTuple):
    nodes: int
    waiting: int  # pods


class Endings(NamedTuple):
    first: Ending
    grown: Ending


async def play_real(client: Client, case: Case) -> tuple[Endings, dict[str, str]]:
    """Also gives what pods can have of a node."""
    await client.create("/api/v1/namespaces", {"metadata": {"name": case.name}})
    await client.wait_until(f"/api/v1/namespaces/{case.name}/serviceaccounts/default", lambda account: True)
    await client.create(NODE_POOLS, build_pool(case))
    path = f"/apis/apps/v1/namespaces/{case.name}/deployments"
    for deployment in case.deployments:
        await client.create(path, move(deployment, case))
    sizes = {deployment["metadata"]["name"]: deployment["spec"]["replicas"] for deployment in case.deployments}
    first = await _wait_for_rest(client, case, sum(sizes.values()))
    nodes = (await client.get(f"/api/v1/nodes?labelSelector={CASE}={case.name}"))["items"]
    amounts: dict[str, str] = nodes[0]["status"]["allocatable"] if nodes else {}
    await client.patch(f"{path}/{case.grows}", {"spec": {"replicas": case.replicas}})
    grown = await _wait_for_rest(client, case, sum({**sizes, case.grows: case.replicas}.values()))
    return Endings(first, grown), amounts


def build_pool(case: Case) -> Json:
    wanted = {
        "node.kubernetes.io/instance-type": case.instance_type,
        "karpenter.sh/capacity-type": "on-demand",
        "topology.kubernetes.io/zone": "test-zone-a",
    }
    requirements = [{"key": key, "operator": "In", "values": [value]} for key, value in wanted.items()]
    taints = [{"key": CASE, "value": case.name, "effect": "NoSchedule"}]
    template = {
        "metadata": {"labels": {CASE: case.name, HOLLOW: "true"}},
        "spec": {"requirements": requirements, "taints": taints, "nodeClassRef": NODE_CLASS, "expireAfter": "Never"},
    }
    disruption = {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "Never"}
    limits = {"cpu": MOST_NODES * case.cpus}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": case.name},
        "spec": {"template": template, "disruption": disruption, "limits": limits},
    }


def move(deployment: Json, case: Case) -> Json:
    """The Deployment with pods that go to the nodes of the case alone."""
    template = deployment["spec"]["template"]
    toleration = {"key": CASE, "operator": "Equal", "value": case.name, "effect": "NoSchedule"}
    spec = {**template["spec"], "nodeSelector": {CASE: case.name}, "tolerations": [toleration]}
    return {**deployment, "spec": {**deployment["spec"], "template": {**template, "spec": spec}}}


async def _wait_for_rest(client: Client, case: Case, wanted: int) -> Ending:
    """How it ends: all pods that are wanted have a node. There are nodes for all of them, but it may take too long."""
    end = time.monotonic() + LONGEST_SECONDS
    while True:
        pods = (await client.get(f"/api/v1/namespaces/{case.name}/pods"))["items"]
        claims = await _list_claims(client, case)
        waiting = sum(not pod["spec"].get("nodeName") for pod in pods)
        if (len(pods) == wanted and not waiting and claims) or time.monotonic() >= end:
            return Ending(len(claims), waiting)
        await asyncio.sleep(0.5)


async def _list_claims(client: Client, case: Case) -> list[Json]:
    """Of a kind that was installed just now the API server says 429 for a moment: as long as that, there are none."""
    try:
        listed = await client.get(f"{NODE_CLAIMS}?labelSelector=karpenter.sh/nodepool={case.name}")
    except ApiError as error:
        if error.status != 429:
            raise
        return []
    items: list[Json] = listed["items"]
    return items


def play_embedded(case: Case, amounts: dict[str, str], seed: int = 0) -> Endings:
    """`amounts` are what pods can have of a node."""
    capacity: Quantities = {"cpu": case.cpus, "memory": f"{4 * case.cpus}Gi"}
    group = NodeGroup(
        name="group",
        max=MOST_NODES,
        boot_seconds=10,
        template=NodeTemplate(capacity=capacity, allocatable=dict(amounts)),
    )
    scale = ScaleTarget(kind="Deployment", name=case.grows, replicas=case.replicas)
    endings = []
    for timeline, until in (([], ROUND), ([TimelineEntry(at=f"{ROUND}s", scale=scale)], 2 * ROUND)):
        scenario = Scenario(node_groups=[group], manifests=case.deployments, timeline=timeline, until=f"{until}s")
        story = play_scenario(scenario, seed)
        wanted = sum(summary.replicas for summary in story.workloads.values())
        placed = sum(count for summary in story.workloads.values() for count in summary.per_node.values())
        endings.append(Ending(story.nodes.max, wanted - placed))
    return Endings(*endings)
