"""Wukongs through `wukong run --components vm`, real virt-api and virt-controller, placed by the real kube-scheduler.

A sample of what `make compare-vm` does with many seeds, every example of examples/vm, and one case for each way in
which virtual machines are to be near or apart.
"""

from __future__ import annotations

import asyncio
import secrets
from pathlib import Path

import pytest
import yaml

from live.wukongs import HOSTNAME, RACK, ZONE, a_wukong, labels_of, place
from testbed.client import Client
from testbed.pytest_plugin import Bed, HollowNodes, make_namespace
from vm_comparison.case import compare, compare_manifest
from vm_comparison.story_comparison import StoryComparison, compare_stories

EXAMPLES = sorted((Path(__file__).parents[2] / "examples" / "vm").glob("*.yaml"))
STORIES = (101, 102, 103, 104)
SAMPLE = (101, 102, 103, 104, 105, 106)


async def test_made_up_wukongs_become_the_vms_and_pods_that_we_build(vm_component: Bed, vm_namespace: str) -> None:
    async with vm_component.client() as client, asyncio.TaskGroup() as group:
        tasks = [group.create_task(compare(client, vm_namespace, seed, is_placeable=seed % 2 == 1)) for seed in SAMPLE]
    comparisons = [task.result() for task in tasks]
    assert {comparison.seed: comparison.differences for comparison in comparisons if comparison.differences} == {}
    assert sum(comparison.pods for comparison in comparisons) > 0, "a sample without a pod shows too little"


@pytest.mark.slow(waits=60)
async def test_virtual_machines_leave_a_node_as_in_the_embedded_cluster(kubevirt_bed: Bed) -> None:
    """Two at a time: KubeVirt bounds the migrations of a cluster."""
    differing = []
    async with kubevirt_bed.client() as client:
        for pair in zip(STORIES[::2], STORIES[1::2], strict=True):
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(play_in_own_namespace(kubevirt_bed, client, seed)) for seed in pair]
            differing += [task.result().describe() for task in tasks if not task.result().is_same]
    assert differing == []


async def play_in_own_namespace(bed: Bed, client: Client, seed: int) -> StoryComparison:
    namespace = f"story-{seed}-{secrets.token_hex(3)}"
    await make_namespace(bed, namespace)
    try:
        return await compare_stories(client, namespace, seed, embedded_seeds=3)
    finally:
        await client.delete(f"/api/v1/namespaces/{namespace}")


async def test_every_example_becomes_the_vm_that_we_build(vm_component: Bed, vm_namespace: str) -> None:
    manifests = [manifest for path in EXAMPLES for manifest in yaml.safe_load_all(path.read_text())]
    async with vm_component.client() as client, asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(compare_manifest(client, vm_namespace, index, manifest, has_pods=True))
            for index, manifest in enumerate(manifests)
        ]
    assert len(tasks) >= 7
    assert [task.result().differences for task in tasks] == [[]] * len(tasks)


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
