"""One made-up Wukong on a real control plane: is what KubeVirt stores and runs what we mean to build?"""

from __future__ import annotations

import asyncio
from typing import NamedTuple

import msgspec

from random_wukongs import Manifest, random_wukong
from testbed.client import Client, Json, Listed, as_json
from testbed.errors import TestbedError
from vm_comparison.differences import find_pod_differences, find_stored_differences
from wukong.api.vm import Wukong, vm_names_of
from wukong.placement.vm import VmSettings, build_virtual_machine

SECONDS = 180.0
RUNNING = ("Always", "RerunOnFailure", "Once")  # run strategies that make a pod at once


class Comparison(NamedTuple):
    """What was found of one seed: how many VirtualMachines and pods were looked at, and what differs."""

    seed: int
    vms: int
    pods: int
    differences: list[str]


async def compare(client: Client, namespace: str, seed: int, *, is_placeable: bool) -> Comparison:
    """Apply the Wukong of this seed, look at all that comes of it, and delete it again."""
    manifest = random_wukong(seed, is_placeable=is_placeable)
    return await compare_manifest(client, namespace, seed, manifest, has_pods=is_placeable)


async def compare_manifest(
    client: Client, namespace: str, seed: int, manifest: Manifest, *, has_pods: bool
) -> Comparison:
    metadata = {**manifest["metadata"], "namespace": namespace}
    path = f"/apis/vm.novasphere.dev/v1alpha1/namespaces/{namespace}/wukongs"
    created = await client.create(path, {**manifest, "metadata": metadata})
    wukong = msgspec.convert(created, Wukong)
    differences, vms, pods = [], 0, 0
    for name in vm_names_of(wukong):
        built = build_virtual_machine(wukong, name, VmSettings())
        stored = await client.wait_until(_vm_path(namespace, name), lambda vm: True, SECONDS)
        differences += [f"{name}: {line}" for line in find_stored_differences(built, stored)]
        vms += 1
        if has_pods and wukong.spec.run_strategy in RUNNING:
            pod = await wait_for_pod(client, namespace, name)
            differences += [f"pod of {name}: {line}" for line in find_pod_differences(built, pod)]
            pods += 1
    await client.delete(f"{path}/{wukong.metadata.name}")
    for name in vm_names_of(wukong):
        await client.wait_until_gone(_vm_path(namespace, name), SECONDS)
    return Comparison(seed, vms, pods, differences)


async def wait_for_pod(client: Client, namespace: str, vm: str) -> Json:
    """The first virt-launcher pod of this virtual machine, as soon as there is one.

    Found by its instance: the label vm.kubevirt.io/name has the guest's hostname where that is another.
    """
    kubevirt = f"/apis/kubevirt.io/v1/namespaces/{namespace}/virtualmachineinstances/{vm}"
    instance = await client.wait_until(kubevirt, lambda vmi: True, SECONDS)
    path, selector = f"/api/v1/namespaces/{namespace}/pods", f"kubevirt.io/created-by={instance['metadata']['uid']}"
    try:
        async with asyncio.timeout(SECONDS):
            async for change in client.follow(path, labelSelector=selector):
                for raw in change.items if isinstance(change, Listed) else [change.object]:
                    return as_json(raw)
    except TimeoutError:
        raise TestbedError(f"{vm} had no pod within {SECONDS:.0f} s") from None
    raise AssertionError("follow never ends")


def _vm_path(namespace: str, name: str) -> str:
    return f"/apis/kubevirt.io/v1/namespaces/{namespace}/virtualmachines/{name}"
