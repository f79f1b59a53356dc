"""Wukongs through `wukong run --components vm`, real virt-api and virt-controller, placed by the real kube-scheduler.

A sample of what `make compare-vm` does with many seeds, every example of examples/vm, and one case for each way in
which virtual machines are to be near or apart.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from testbed.client import Client, Json
from testbed.kubevirt.virtual_machines import VirtualMachines
from testbed.nodes import on_reserved
from testbed.pytest_plugin import Bed, HollowNodes
from vm_comparison.case import compare, compare_manifest
from vm_comparison.machinery import component_running, furnish

HOSTNAME, ZONE, RACK = "kubernetes.io/hostname", "topology.kubernetes.io/zone", "example.com/rack"
EXAMPLES = sorted((Path(__file__).parents[2] / "examples" / "vm").glob("*.yaml"))
SAMPLE = (101, 102, 103, 104, 105, 106)


@pytest.fixture(scope="session")
def vm_component(kubevirt_bed: Bed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    """The control plane with KubeVirt, our kinds, and `wukong run --components vm`."""
    folder = tmp_path_factory.mktemp("vm")
    kubeconfig = asyncio.run(furnish(kubevirt_bed, folder))
    with component_running(kubeconfig, folder / "vm.log"):
        yield kubevirt_bed


async def test_made_up_wukongs_become_the_vms_and_pods_that_we_build(vm_component: Bed, vm_namespace: str) -> None:
    async with vm_component.client() as client, asyncio.TaskGroup() as group:
        tasks = [group.create_task(compare(client, vm_namespace, seed, is_placeable=seed % 2 == 1)) for seed in SAMPLE]
    comparisons = [task.result() for task in tasks]
    assert {comparison.seed: comparison.differences for comparison in comparisons if comparison.differences} == {}
    assert sum(comparison.pods for comparison in comparisons) > 0, "a sample without a pod shows too little"


async def test_every_example_becomes_the_vm_that_we_build(vm_component: Bed, vm_namespace: str) -> None:
    manifests = [manifest for path in EXAMPLES for manifest in yaml.safe_load_all(path.read_text())]
    async with vm_component.client() as client, asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(compare_manifest(client, vm_namespace, index, manifest, has_pods=True))
            for index, manifest in enumerate(manifests)
        ]
    assert len(tasks) >= 7
    assert [task.result().differences for task in tasks] == [[]] * len(tasks)


def a_wukong(name: str, namespace: str, scheduling: Json, **spec: Any) -> Json:
    """A small one that may run on the nodes of its test alone."""
    return {
        "apiVersion": "vm.novasphere.dev/v1alpha1",
        "kind": "Wukong",
        "metadata": {"name": name},
        "spec": {
            "memory": "64Mi",
            "disks": [{"name": "root", "containerDisk": {"image": "quay.io/containerdisks/fedora:41"}}],
            "scheduling": {**on_reserved(namespace), **scheduling},
            **spec,
        },
    }


async def place(client: Client, namespace: str, wukong: Json, *names: str) -> list[Json]:
    """Apply it and return the nodes of its virtual machines once they run."""
    await client.create(f"/apis/vm.novasphere.dev/v1alpha1/namespaces/{namespace}/wukongs", wukong)
    vms = VirtualMachines(client, namespace)
    instances = [await vms.wait_until_running(name) for name in names or (wukong["metadata"]["name"],)]
    return [await client.get(f"/api/v1/nodes/{vmi['status']['nodeName']}") for vmi in instances]


def labels_of(node: Json, key: str) -> str:
    return str(node["metadata"]["labels"][key])


@pytest.mark.parametrize("key", [HOSTNAME, ZONE, RACK])
@pytest.mark.parametrize("is_near", [True, False])
async def test_the_scheduler_places_vms_near_or_apart_in_any_domain(
    key: str, is_near: bool, vm_component: Bed, vm_namespace: str, vm_nodes: HollowNodes
) -> None:
    for zone, rack in (("a", "1"), ("a", "2"), ("b", "3")):
        await vm_nodes(1, labels={ZONE: zone, RACK: rack})
    term = {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": key}
    rule = {"podAffinity" if is_near else "podAntiAffinity": {"required": [term]}}
    async with vm_component.client() as client:
        (db,) = await place(client, vm_namespace, a_wukong("db", vm_namespace, {}, labels={"app": "db"}))
        (web,) = await place(client, vm_namespace, a_wukong("web", vm_namespace, rule))
    assert (labels_of(db, key) == labels_of(web, key)) is is_near


async def test_replicas_of_a_highly_available_wukong_run_on_different_nodes(
    vm_component: Bed, vm_namespace: str, vm_nodes: HollowNodes
) -> None:
    await vm_nodes(3)
    wukong = a_wukong("web", vm_namespace, {}, replicas=3, highAvailability={"antiAffinity": True})
    async with vm_component.client() as client:
        nodes = await place(client, vm_namespace, wukong, "web-0", "web-1", "web-2")
    assert len({labels_of(node, HOSTNAME) for node in nodes}) == 3


async def test_vms_keep_apart_from_those_of_other_namespaces_by_their_labels(
    vm_component: Bed, vm_namespace: str, vm_nodes: HollowNodes
) -> None:
    nodes = await vm_nodes(2)
    async with vm_component.client() as client:
        await client.patch(f"/api/v1/namespaces/{vm_namespace}", {"metadata": {"labels": {"env": vm_namespace}}})
        competitor = a_wukong("competitor", vm_namespace, {}, labels={"app": "competitor"})
        (taken,) = await place(client, vm_namespace, competitor)
        term = {
            "labelSelector": {"matchLabels": {"app": "competitor"}},
            "namespaceSelector": {"matchLabels": {"env": vm_namespace}},
            "topologyKey": HOSTNAME,
        }
        rule = {"podAntiAffinity": {"required": [term]}}
        other = f"{vm_namespace[:50]}-two"
        await client.create("/api/v1/namespaces", {"metadata": {"name": other}})
        try:
            (free,) = await place(client, other, a_wukong("isolated", vm_namespace, rule))
        finally:
            await client.delete(f"/api/v1/namespaces/{other}")
    assert {labels_of(taken, HOSTNAME), labels_of(free, HOSTNAME)} == set(nodes)


async def test_a_vm_that_fits_nowhere_says_why_within_two_seconds_and_recovers(
    vm_component: Bed, vm_namespace: str, vm_nodes: HollowNodes
) -> None:
    await vm_nodes(1, labels={ZONE: "a"})
    needs_zone = {**on_reserved(vm_namespace)["nodeSelector"], ZONE: "b"}
    path = f"/apis/vm.novasphere.dev/v1alpha1/namespaces/{vm_namespace}/wukongs/web"
    async with vm_component.client() as client:
        wukong = a_wukong("web", vm_namespace, {"nodeSelector": needs_zone})
        await client.create(path.removesuffix("/web"), wukong)
        vms = VirtualMachines(client, vm_namespace)
        await vms.wait_for_status("web", "ErrorUnschedulable")
        # Two seconds from what the scheduler said; the machine of a test may be slow, hence the generous deadline: what
        # is promised is measured by the times on the objects.
        blocked = await client.wait_until(path, lambda found: condition(found, "Placed") == "False", 30)
        refused = next(item for item in await vms.launcher_pods("web"))
        await vm_nodes(1, labels={ZONE: "b"})
        await vms.wait_until_running("web")
        await client.wait_until(path, lambda found: condition(found, "Placed") == "True", 30)
    placed = next(item for item in blocked["status"]["conditions"] if item["type"] == "Placed")
    assert "node" in placed["message"]
    assert blocked["status"]["vms"][0]["reason"] == "Unschedulable"
    scheduled = next(item for item in refused["status"]["conditions"] if item["type"] == "PodScheduled")
    assert seconds_between(scheduled["lastTransitionTime"], placed["lastTransitionTime"]) <= 2


def condition(wukong: Json, kind: str) -> str:
    conditions = wukong.get("status", {}).get("conditions", [])
    return next((item["status"] for item in conditions if item["type"] == kind), "")


def seconds_between(earlier: str, later: str) -> float:
    from datetime import datetime

    return (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds()
