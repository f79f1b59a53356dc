"""`wukong sim run --live`: a scenario on a real control plane, and nothing of it is left behind."""

from __future__ import annotations

import asyncio
import secrets
from typing import Any

import msgspec
import pytest

from conformance_helpers import until, until_gone
from testbed import nodes
from testbed.pytest_plugin import Bed, HollowNodes
from wukong.api.kinds import (
    DEPLOYMENTS,
    KINDS,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    POD_DISRUPTION_BUDGETS,
    PODS,
)
from wukong.api.resources import Key, Resource
from wukong.app.sim_live import Options, play_live
from wukong.cluster.credentials import load
from wukong.cluster.kube import Kube
from wukong.embedded.scenario import Scenario, read_scenario
from wukong.embedded.scenario.format.fields import TimelineEntry
from wukong.errors import InputError
from wukong.ports import Document, PatchBody, Selection

pytestmark = pytest.mark.slow(waits=10)
SECONDS = 120.0
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
        with pytest.raises(InputError, match=f"Deployment {namespace}/web exists already"):
            await play_live(cluster, scenario, Options(create_nodes=True), print)
        with pytest.raises(InputError, match=f"the cluster has no node {own}-1, {own}-2"):
            await play_live(cluster, scenario, Options(), print)
        names = [it["metadata"]["name"] for it in (await cluster.list(NODES, dict)).items]
        assert [name for name in names if name.startswith(own)] == []  # those of other tests come and go meanwhile


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


@pytest.mark.slow(waits=20)
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
        found = [(await cluster.get(NODES, Key("", f"{own}-{n}"), dict)) for n in (1, 2)]
        assert [node["spec"].get("unschedulable") for node in found] == [None, None]
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


# ---- beside others


async def is_cordoned(cluster: Kube, node: str) -> bool:
    return bool((await cluster.get(NODES, Key("", node), dict))["spec"].get("unschedulable"))


async def cordon(cluster: Kube, node: str, is_cordoned: bool = True) -> None:
    body = {"spec": {"unschedulable": is_cordoned or None}}
    await cluster.patch(NODES, Key("", node), PatchBody("merge", body, manager="kubectl-cordon"))


def a_workload(namespace: str, kind: str = "Deployment", **spec: Any) -> Document:
    container = {"name": "web", "image": "web:1", "resources": {"requests": {"cpu": "100m"}}}
    template: Document = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}
    template["spec"] |= nodes.on_reserved(namespace)
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": "web", "namespace": namespace},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template, **spec},
    }


def a_course(names: list[str], manifests: list[Document], *timeline: Document) -> Scenario:
    document = {"nodes": [{"name": name} for name in names], "manifests": manifests, "timeline": list(timeline)}
    return read_scenario(msgspec.json.encode({**document, "until": "1m"}))


async def test_cordons_are_set_back_to_what_they_were_and_those_of_others_stay(
    bed: Bed, namespace: str, hollow_nodes: HollowNodes
) -> None:
    """One per case: cordoned before, during and before the run's turn, after it; touched by nobody else; uncordoned."""
    own = await hollow_nodes(5)
    before, during, after, alone, opened = own
    messages: list[str] = []
    async with Kube(load(str(bed.kubeconfig))) as cluster:
        await cordon(cluster, before)
        await cordon(cluster, opened)
        entries: list[Document] = [{"at": "1s", "cordon": node} for node in (before, after, alone)]
        entries += [{"at": "1s", "uncordon": opened}, {"at": "5s", "drain": during}]
        playing = asyncio.create_task(play_live(cluster, a_course(own, [], *entries), Options(), messages.append))
        await until(cluster, NODES, Key("", opened), lambda node: not node["spec"].get("unschedulable"))
        assert await is_cordoned(cluster, alone)
        await cordon(cluster, during)
        await cordon(cluster, after, False)
        await cordon(cluster, after)
        await playing
        assert [await is_cordoned(cluster, node) for node in own] == [True, True, True, False, True]
        assert messages[1:] == [f"not taken back: Node {after} was cordoned by somebody else meanwhile, and stays so"]


async def test_a_budget_that_appeared_meanwhile_is_neither_overwritten_nor_deleted(
    bed: Bed, namespace: str, hollow_nodes: HollowNodes
) -> None:
    own = await hollow_nodes(1)
    head = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget"}
    budget = {
        **head,
        "metadata": {"name": "web", "namespace": namespace},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    }
    async with Kube(load(str(bed.kubeconfig))) as cluster:
        scenario = a_course(own, [a_workload(namespace)], {"at": "2s", "apply": budget})
        playing = asyncio.create_task(play_live(cluster, scenario, Options(), print))
        await until(cluster, DEPLOYMENTS, Key(namespace, "web"), lambda _: True)
        theirs = {**budget, "spec": {**budget["spec"], "minAvailable": 2}}  # type: ignore[dict-item]
        await cluster.create(POD_DISRUPTION_BUDGETS, theirs, namespace)
        with pytest.raises(InputError, match=f"PodDisruptionBudget {namespace}/web is not of this run's making"):
            await playing
        kept = await cluster.get(POD_DISRUPTION_BUDGETS, Key(namespace, "web"), dict)
        assert kept["spec"]["minAvailable"] == 2
        await until_gone(cluster, DEPLOYMENTS, Key(namespace, "web"))


async def test_pods_of_others_are_left_alone_whatever_their_names(
    bed: Bed, namespace: str, hollow_nodes: HollowNodes
) -> None:
    own = await hollow_nodes(2)
    async with Kube(load(str(bed.kubeconfig))) as cluster:
        frontend = a_workload(namespace)
        frontend["metadata"]["name"] = "web-frontend"
        labels = {"app": "web-frontend"}
        frontend["spec"] |= {"selector": {"matchLabels": labels}}
        frontend["spec"]["template"] = {**frontend["spec"]["template"], "metadata": {"labels": labels}}
        await cluster.create(DEPLOYMENTS, frontend, namespace)
        key = Key(namespace, "web-frontend")
        await until(cluster, DEPLOYMENTS, key, lambda it: (it.get("status") or {}).get("availableReplicas") == 2)
        before = {pod["metadata"]["uid"] for pod in (await cluster.list(PODS, dict, Selection(namespace))).items}
        entries = [{"at": "3s", "drain": node} for node in own]
        story = await play_live(cluster, a_course(own, [a_workload(namespace)], *entries), Options(), print)
        assert list(story.workloads) == [f"{namespace}/web"]
        assert story.workloads[f"{namespace}/web"].restarts == 2
        after = (await cluster.list(PODS, dict, Selection(namespace))).items
        assert {pod["metadata"]["uid"] for pod in after} == before
        assert not any("deletionTimestamp" in pod["metadata"] for pod in after)


async def test_what_is_applied_again_loses_fields_and_what_was_replaced_is_left(
    bed: Bed, namespace: str, hollow_nodes: HollowNodes
) -> None:
    own = await hollow_nodes(1)
    key = Key(namespace, "web")
    async with Kube(load(str(bed.kubeconfig))) as cluster:
        later = a_workload(namespace, replicas=1)
        scenario = a_course(
            own,
            [a_workload(namespace, minReadySeconds=1)],
            {"at": "1s", "apply": later},
            {"at": "4s", "apply": later},
        )
        playing = asyncio.create_task(play_live(cluster, scenario, Options(), print))
        created = await until(cluster, DEPLOYMENTS, key, lambda _: True)
        applied = await until(cluster, DEPLOYMENTS, key, lambda it: it["spec"]["replicas"] == 1)
        assert (created["spec"]["minReadySeconds"], applied["spec"].get("minReadySeconds")) == (1, None)
        assert created["metadata"]["uid"] == applied["metadata"]["uid"]
        await cluster.delete(DEPLOYMENTS, key, propagation="Background")
        await until_gone(cluster, DEPLOYMENTS, key)
        await cluster.create(DEPLOYMENTS, a_workload(namespace, replicas=0), namespace)
        with pytest.raises(InputError, match=f"Deployment {namespace}/web is not of this run's making"):
            await playing
        assert (await cluster.get(DEPLOYMENTS, key, dict))["spec"]["replicas"] == 0


async def test_claims_of_a_stateful_set_go_with_the_run_and_others_stay(
    bed: Bed, namespace: str, hollow_nodes: HollowNodes
) -> None:
    own = await hollow_nodes(1)
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    templates = [{"metadata": {"name": "data"}, "spec": claim}]
    stateful = a_workload(namespace, "StatefulSet", serviceName="web", volumeClaimTemplates=templates)
    async with Kube(load(str(bed.kubeconfig))) as cluster:
        await cluster.create(PERSISTENT_VOLUME_CLAIMS, {"metadata": {"name": "data-web-7"}, "spec": claim}, namespace)
        playing = asyncio.create_task(play_live(cluster, a_course(own, [stateful]), Options(), print))
        await until(cluster, PERSISTENT_VOLUME_CLAIMS, Key(namespace, "data-web-0"), lambda _: True)
        playing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await playing
        await until_gone(cluster, PERSISTENT_VOLUME_CLAIMS, Key(namespace, "data-web-0"))
        claims = (await cluster.list(PERSISTENT_VOLUME_CLAIMS, dict, Selection(namespace))).items
        assert [document["metadata"]["name"] for document in claims] == ["data-web-7"]
