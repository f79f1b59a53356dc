"""Binding pods to nodes, and the scale of workloads."""

from __future__ import annotations

import msgspec
import pytest

from conformance_helpers import a_deployment, a_node_name, a_pod, is_ready, until
from wukong.api.apps import Deployment, SizeManager
from wukong.api.kinds import DEPLOYMENTS, PODS
from wukong.api.resources import Key
from wukong.errors import Conflict, NotFound
from wukong.ports import Cluster, PatchBody


async def test_a_bound_pod_runs_on_its_node(cluster: Cluster, namespace: str) -> None:
    made = await cluster.create(PODS, a_pod("web"), namespace)
    node = await a_node_name(cluster)
    await cluster.bind(Key(namespace, "web"), node, uid=made["metadata"]["uid"])
    pod = await until(cluster, PODS, Key(namespace, "web"), is_ready)
    assert pod["spec"]["nodeName"] == node
    scheduled = [each["status"] for each in pod["status"]["conditions"] if each["type"] == "PodScheduled"]
    assert scheduled == ["True"]


async def test_a_pod_is_bound_once(cluster: Cluster, namespace: str) -> None:
    await cluster.create(PODS, a_pod("web"), namespace)
    key, node = Key(namespace, "web"), await a_node_name(cluster)
    await cluster.bind(key, node)
    for again in (node, "another"):
        with pytest.raises(Conflict):
            await cluster.bind(key, again)
    assert (await cluster.get(PODS, key, dict))["spec"]["nodeName"] == node


async def test_only_the_pod_meant_is_bound(cluster: Cluster, namespace: str) -> None:
    await cluster.create(PODS, a_pod("web"), namespace)
    key, node = Key(namespace, "web"), await a_node_name(cluster)
    with pytest.raises(Conflict):
        await cluster.bind(key, node, uid="00000000-0000-0000-0000-000000000000")
    assert "nodeName" not in (await cluster.get(PODS, key, dict))["spec"]
    with pytest.raises(NotFound):
        await cluster.bind(Key(namespace, "other"), node)


async def read_size_managers(cluster: Cluster, key: Key) -> frozenset[SizeManager]:
    document = await cluster.get(DEPLOYMENTS, key, dict)
    document["metadata"]["managedFields"] = list(document["metadata"]["managedFields"])
    return msgspec.convert(document, Deployment).size_managers


async def test_it_is_noted_who_has_set_a_size(cluster: Cluster, namespace: str) -> None:
    """By that the mover of pods tells its own sizes from those that somebody else asks for."""
    await cluster.create(DEPLOYMENTS, a_deployment("web"), namespace)
    key = Key(namespace, "web")
    await cluster.scale(DEPLOYMENTS, key, 3)
    assert await read_size_managers(cluster, key) == {SizeManager("wukong", "scale")}
    await cluster.scale(DEPLOYMENTS, key, 3, manager="kubectl")  # nothing that could be seen
    await cluster.patch(DEPLOYMENTS, key, PatchBody("merge", {"spec": {"replicas": 3}}, manager="kubectl-edit"))
    assert await read_size_managers(cluster, key) == {SizeManager("wukong", "scale")}
    applied = {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 3}}
    await cluster.patch(DEPLOYMENTS, key, PatchBody("apply", applied, manager="argocd"))
    assert await read_size_managers(cluster, key) == {SizeManager("wukong", "scale"), SizeManager("argocd", "")}
    await cluster.scale(DEPLOYMENTS, key, 4)
    assert await read_size_managers(cluster, key) == {SizeManager("wukong", "scale")}
    await cluster.patch(DEPLOYMENTS, key, PatchBody("merge", {"spec": {"replicas": 3}}, manager="kubectl-edit"))
    assert await read_size_managers(cluster, key) == {SizeManager("kubectl-edit", "")}
    await cluster.scale(DEPLOYMENTS, key, 4, manager="kubectl")
    assert await read_size_managers(cluster, key) == {SizeManager("kubectl", "scale")}


async def test_a_write_that_changes_nothing_is_refused_at_an_old_version(cluster: Cluster, namespace: str) -> None:
    made = await cluster.create(DEPLOYMENTS, a_deployment("web"), namespace)
    key, old = Key(namespace, "web"), made["metadata"]["resourceVersion"]
    await cluster.scale(DEPLOYMENTS, key, 3)
    with pytest.raises(Conflict):
        await cluster.scale(DEPLOYMENTS, key, 3, resource_version=old)
    body = {"metadata": {"resourceVersion": old}, "spec": {"replicas": 3}}
    with pytest.raises(Conflict):
        await cluster.patch(DEPLOYMENTS, key, PatchBody("merge", body))


async def test_a_scale_changes_replicas_and_respects_the_version(cluster: Cluster, namespace: str) -> None:
    made = await cluster.create(DEPLOYMENTS, a_deployment("web"), namespace)
    key = Key(namespace, "web")
    await cluster.scale(DEPLOYMENTS, key, 3)
    assert (await cluster.get(DEPLOYMENTS, key, dict))["spec"]["replicas"] == 3
    with pytest.raises(Conflict):
        await cluster.scale(DEPLOYMENTS, key, 4, resource_version=made["metadata"]["resourceVersion"])
    with pytest.raises(NotFound):
        await cluster.scale(DEPLOYMENTS, Key(namespace, "other"), 1)
