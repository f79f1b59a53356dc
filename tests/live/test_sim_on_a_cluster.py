"""`wukong sim run --kubeconfig`: a scenario on a real control plane, and nothing of it is left behind."""

from __future__ import annotations

import asyncio
import secrets
from typing import Any

import pytest

from testbed.pytest_plugin import Bed
from wukong.api.kinds import DEPLOYMENTS, KINDS, NAMESPACES, NODES
from wukong.api.resources import Key, Resource
from wukong.app.sim_live import Options, play_live
from wukong.cluster.credentials import load
from wukong.cluster.kube import Kube
from wukong.embedded.scenario import Scenario, read_scenario
from wukong.embedded.scenario.format.fields import TimelineEntry
from wukong.errors import InputError
from wukong.ports import PatchBody

SECONDS = 60.0
SCENARIO = """
nodes: [{{namePrefix: {own}-, count: 2, labels: {{own: {own}}}}}]
manifests:
  - apiVersion: apps/v1
    kind: Deployment
    metadata: {{name: web, namespace: {own}}}
    spec:
      replicas: 2
      progressDeadlineSeconds: 600
      selector: {{matchLabels: {{app: web}}}}
      template:
        metadata: {{labels: {{app: web}}}}
        spec:
          nodeSelector: {{own: {own}}}
          containers: [{{name: web, image: "web:1", resources: {{requests: {{cpu: {cpu}}}}}}}]
timeline:
  - {{at: 3s, drain: {own}-1}}
until: 1m
"""


def a_scenario(cpu: str = "1") -> tuple[str, Scenario]:
    own = f"sim-{secrets.token_hex(4)}"
    return own, read_scenario(SCENARIO.format(own=own, cpu=cpu))


def uncordoned(node: str) -> tuple[Resource, Key, PatchBody]:
    return NODES, Key("", node), PatchBody("merge", {"spec": {"unschedulable": None}})


async def left(cluster: Kube, own: str) -> list[str]:
    found: list[str] = []
    for kind in ("Node", "Namespace", "Deployment", "Pod"):
        documents: list[Any] = (await cluster.list(KINDS.resource_named(kind), dict)).items
        keys = [Key(it["metadata"].get("namespace", ""), it["metadata"]["name"]) for it in documents]
        names = [str(key) for key in keys]
        found += [f"{kind} {name}" for name in names if own in name]
    return found


async def test_what_exists_already_is_refused_and_nothing_is_changed(bed: Bed, namespace: str) -> None:
    own, scenario = a_scenario()
    document = scenario.manifests[0]
    document["metadata"]["namespace"] = namespace
    async with Kube(load(str(bed.kubeconfig))) as cluster:
        await cluster.create(DEPLOYMENTS, document, namespace)
        before = await cluster.list(NODES, dict)
        with pytest.raises(InputError, match=f"Deployment {namespace}/web exists already"):
            await play_live(cluster, scenario, Options(create_nodes=True), print)
        with pytest.raises(InputError, match=f"the cluster has no node {own}-1, {own}-2"):
            await play_live(cluster, scenario, Options(), print)
        after = await cluster.list(NODES, dict)
        assert {it["metadata"]["name"] for it in before.items} == {it["metadata"]["name"] for it in after.items}


async def test_an_interrupted_run_leaves_nothing(bed: Bed) -> None:
    own, scenario = a_scenario()
    async with Kube(load(str(bed.kubeconfig))) as cluster, bed.client() as client:
        playing = asyncio.create_task(play_live(cluster, scenario, Options(create_nodes=True), print))
        path = DEPLOYMENTS.path(own, "web")
        await client.wait_until(path, lambda it: (it.get("status") or {}).get("replicas") == 2, SECONDS)
        playing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await playing
        assert await left(cluster, own) == []


async def test_what_the_api_server_refuses_is_said_and_the_rest_taken_back(bed: Bed) -> None:
    own, scenario = a_scenario()
    scenario.manifests[0]["spec"]["selector"]["matchLabels"]["app"] = "another"
    async with Kube(load(str(bed.kubeconfig))) as cluster:
        with pytest.raises(InputError, match="web: the API server refuses it"):
            await play_live(cluster, scenario, Options(create_nodes=True), print)
        assert await left(cluster, own) == []


async def test_a_run_may_leave_what_it_made_and_another_leaves_the_nodes_as_they_were(bed: Bed) -> None:
    own, scenario = a_scenario()
    told: list[str] = []
    async with Kube(load(str(bed.kubeconfig))) as cluster:
        story = await play_live(cluster, scenario, Options(create_nodes=True, keep=True), told.append)
        fate = story.workloads[f"{own}/web"]
        assert story.settled, story.stuck
        assert (fate.replicas, fate.available, fate.max_pods, fate.per_node) == (2, 2, 2, {f"{own}-2": 2})
        assert (story.nodes.start, story.nodes.end) == (2, 2)
        assert f"Deployment {own}/web" in told[0]
        assert f"Node {own}-1" in told[0]
        await cluster.patch(*uncordoned(f"{own}-1"))

        other, again = a_scenario()
        again.nodes = scenario.nodes
        again.manifests[0]["spec"]["template"]["spec"]["nodeSelector"] = {"own": own}
        again.timeline[0].drain = f"{own}-2"
        story = await play_live(cluster, again, Options(), told.append)
        assert story.workloads[f"{other}/web"].per_node == {f"{own}-1": 2}
        assert await left(cluster, other) == []
        nodes = [(await cluster.get(NODES, Key("", f"{own}-{n}"), dict)) for n in (1, 2)]
        assert [node["spec"].get("unschedulable") for node in nodes] == [None, None]
        assert f"Deployment {own}/web" in await left(cluster, own)
        await cluster.delete(NAMESPACES, Key("", own))
        for number in (1, 2):
            await cluster.delete(NODES, Key("", f"{own}-{number}"))


async def test_a_node_of_the_timeline_comes_when_its_time_has_come(bed: Bed) -> None:
    own, scenario = a_scenario(cpu="3")
    capacity = {"cpu": "4", "memory": "16Gi", "pods": "110"}
    meta = {"name": f"{own}-late", "labels": {"own": own, "kubernetes.io/hostname": f"{own}-late"}}
    status = {"capacity": capacity, "allocatable": capacity}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": meta, "status": status}
    scenario.timeline.append(TimelineEntry(at="5s", apply=node))
    async with Kube(load(str(bed.kubeconfig))) as cluster:
        story = await play_live(cluster, scenario, Options(create_nodes=True), print)
        assert story.settled, story.stuck
        assert story.workloads[f"{own}/web"].per_node == {f"{own}-2": 1, f"{own}-late": 1}
        assert (story.nodes.start, story.nodes.end) == (2, 3)
        assert await left(cluster, own) == []
