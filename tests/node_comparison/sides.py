"""A case on both sides: how many nodes there are, and how many pods wait, when nothing more happens."""

from __future__ import annotations

import asyncio
import time
from typing import NamedTuple

import msgspec

from node_comparison.random_case import MOST_NODES, Case, name_type
from testbed.behaviour import HOLLOW
from testbed.client import ApiError, Client, Json
from testbed.karpenter.installation import NODE_CLAIMS, NODE_CLASS, NODE_POOLS
from wukong.app.embedded import play_scenario
from wukong.embedded.scenario import Scenario
from wukong.embedded.scenario.format.fields import ScaleTarget, TimelineEntry
from wukong.placement.node_groups.file import read_node_groups

CASE = "compare.novasphere.dev/case"
TYPE = "node.kubernetes.io/instance-type"
LONGEST_SECONDS = 150.0  # Karpenter's batches end after one second, at the latest after ten
ROUND = 200  # seconds of virtual time for each step: nodes boot in five, and none goes before ten minutes
BOOT_SECONDS = 5
KEPT_MILLI, KEPT_MIB = 100, 10  # of cpu and memory: what the kwok provider keeps of every instance for the system


class Ending(NamedTuple):
    nodes: int
    waiting: int  # pods


class Endings(NamedTuple):
    first: Ending
    grown: Ending


async def play_real(client: Client, case: Case) -> Endings:
    await client.create("/api/v1/namespaces", {"metadata": {"name": case.name}})
    await client.wait_until(f"/api/v1/namespaces/{case.name}/serviceaccounts/default", lambda account: True)
    await client.create(NODE_POOLS, build_pool(case))
    path = f"/apis/apps/v1/namespaces/{case.name}/deployments"
    for deployment in case.deployments:
        await client.create(path, move(deployment, case))
    sizes = {deployment["metadata"]["name"]: deployment["spec"]["replicas"] for deployment in case.deployments}
    first = await wait_for_rest(client, case, sum(sizes.values()))
    await client.patch(f"{path}/{case.grows}", {"spec": {"replicas": case.replicas}})
    grown = await wait_for_rest(client, case, sum({**sizes, case.grows: case.replicas}.values()))
    return Endings(first, grown)


def build_pool(case: Case) -> Json:
    wanted = {
        TYPE: [name_type(cpus) for cpus in case.sizes],
        "karpenter.sh/capacity-type": ["on-demand"],
        "topology.kubernetes.io/zone": ["test-zone-a"],
    }
    requirements = [{"key": key, "operator": "In", "values": values} for key, values in wanted.items()]
    taints = [{"key": CASE, "value": case.name, "effect": "NoSchedule"}]
    template = {
        "metadata": {"labels": {CASE: case.name, HOLLOW: "true"}},
        "spec": {"requirements": requirements, "taints": taints, "nodeClassRef": NODE_CLASS, "expireAfter": "Never"},
    }
    disruption = {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "Never"}
    limits = {"cpu": MOST_NODES * max(case.sizes)}
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


async def wait_for_rest(client: Client, case: Case, wanted: int) -> Ending:
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


def play_embedded(case: Case, seed: int = 0) -> Endings:
    """With the groups that are read from the same NodePool."""
    documents = [build_pool(case), *(_build_claim(cpus) for cpus in case.sizes)]
    groups = [
        msgspec.structs.replace(group, boot_seconds=BOOT_SECONDS)
        for group in read_node_groups(msgspec.json.encode({"kind": "List", "items": documents})).groups
    ]
    manifests = [move(deployment, case) for deployment in case.deployments]
    scale = ScaleTarget(kind="Deployment", name=case.grows, replicas=case.replicas)
    endings = []
    for timeline, until in (([], ROUND), ([TimelineEntry(at=f"{ROUND}s", scale=scale)], 2 * ROUND)):
        scenario = Scenario(node_groups=groups, manifests=manifests, timeline=timeline, until=f"{until}s")
        story = play_scenario(scenario, seed)
        wanted = sum(summary.replicas for summary in story.workloads.values())
        placed = sum(count for summary in story.workloads.values() for count in summary.per_node.values())
        endings.append(Ending(story.nodes.max, wanted - placed))
    return Endings(*endings)


def _build_claim(cpus: int) -> Json:
    """A NodeClaim that says what an instance of this size is like."""
    capacity = {"cpu": str(cpus), "memory": f"{4 * cpus}Gi", "pods": str(16 * cpus)}
    kept = {"cpu": f"{cpus * 1000 - KEPT_MILLI}m", "memory": f"{4 * cpus * 1024 - KEPT_MIB}Mi"}
    return {
        "kind": "NodeClaim",
        "metadata": {"name": name_type(cpus), "labels": {TYPE: name_type(cpus)}},
        "status": {"capacity": capacity, "allocatable": {**capacity, **kept}},
    }
