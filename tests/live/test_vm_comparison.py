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


async def test_the_scheduler_places_vms_near_or_apart_in_any_domain(
    vm_component: Bed, vm_namespace: str, vm_nodes: HollowNodes
) -> None:
    for zone, rack in (("a", "1"), ("a", "2"), ("b", "3")):
        await vm_nodes(1, labels={ZONE: zone, RACK: rack})
    cases = [(key, is_near) for key in (HOSTNAME, ZONE, RACK) for is_near in (True, False)]
    async with vm_component.client() as client:
        (db,) = await place(client, vm_namespace, a_wukong("db", vm_namespace, {}, labels={"app": "db"}))

        async def place_beside(number: int, key: str, is_near: bool) -> bool:
            term = {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": key}
            rule = {"podAffinity" if is_near else "podAntiAffinity": {"required": [term]}}
            (web,) = await place(client, vm_namespace, a_wukong(f"web-{number}", vm_namespace, rule))
            return labels_of(db, key) == labels_of(web, key)

        is_same = await asyncio.gather(*(place_beside(number, *case) for number, case in enumerate(cases)))
    assert dict(zip(cases, is_same, strict=True)) == {(key, is_near): is_near for key, is_near in cases}


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
