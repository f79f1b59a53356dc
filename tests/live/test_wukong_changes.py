"""What a change means for machines that run: find_change_effects beside what real KubeVirt does."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

import msgspec
import pytest

from testbed.client import ApiError, Client, Json, as_json
from testbed.kubevirt.virtual_machines import VirtualMachines, has_condition
from testbed.nodes import on_reserved
from testbed.pytest_plugin import Bed, HollowNodes
from wukong.api.vm import Wukong
from wukong.placement.vm import ChangeEffect, VmSettings, build_virtual_machine, find_change_effects
from wukong.placement.vm.changes import is_within

DISK = {"name": "root", "containerDisk": {"image": "quay.io/containerdisks/fedora:41"}}
BASE: Json = {"cpu": 1, "memory": "1Gi", "labels": {"app": "web"}, "disks": [DISK], "networks": [{"name": "default"}]}
APART = {"podAntiAffinity": {"required": [{"topologyKey": "room", "labelSelector": {"matchLabels": {"a": "b"}}}]}}
LAN = {"name": "lan", "multus": "lan"}
SPREAD = [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}]


class Change(NamedTuple):
    """One field of a Wukong that changes while its machine runs, and the effect that we name."""

    name: str
    spec: Json
    effect: ChangeEffect
    scheduling: Json = {}


CHANGES = [
    Change("affinity", {}, ChangeEffect.NEXT_POD, APART),
    Change("node-affinity", {}, ChangeEffect.NEXT_POD, {"nodeAffinity": {"preferred": [
        {"weight": 1, "preference": {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}}]}}),
    Change("toleration", {}, ChangeEffect.NEXT_POD, {"tolerations": [{"key": "more", "operator": "Exists"}]}),
    Change("node-selector", {}, ChangeEffect.NEXT_POD, {"nodeSelector": {"kubernetes.io/os": "linux"}}),
    Change("memory", {"memory": "2Gi"}, ChangeEffect.LIVE),
    Change("too-much-memory", {"memory": "8Gi"}, ChangeEffect.RESTART_REQUIRED),
    Change("less-memory", {"memory": "512Mi"}, ChangeEffect.RESTART_REQUIRED),
    Change("network", {"networks": [{"name": "default"}, LAN]}, ChangeEffect.LIVE),
    Change("other-network", {"networks": [{"name": "default", "multus": "lan"}]}, ChangeEffect.RESTART_REQUIRED),
    Change("cpu", {"cpu": 2}, ChangeEffect.RESTART_REQUIRED),
    Change("disk", {"disks": [DISK, {"name": "i", "cloudInit": {"userData": "x"}}]}, ChangeEffect.RESTART_REQUIRED),
    Change("image", {"disks": [{**DISK, "containerDisk": {"image": "x"}}]}, ChangeEffect.RESTART_REQUIRED),
    Change("gpu", {"gpus": [{"name": "g", "deviceName": "a.b/c"}]}, ChangeEffect.RESTART_REQUIRED),
    Change("priority", {}, ChangeEffect.RESTART_REQUIRED, {"schedulingPolicy": {"priority": 5}}),
    Change("scheduler", {}, ChangeEffect.RESTART_REQUIRED, {"schedulingPolicy": {"schedulerName": "other"}}),
    Change("spread", {}, ChangeEffect.RESTART_REQUIRED, {"topologySpreadConstraints": SPREAD}),
    Change("eviction-strategy", {"evictionStrategy": "None"}, ChangeEffect.RESTART_REQUIRED),
    Change("grace", {"terminationGracePeriodSeconds": 7}, ChangeEffect.RESTART_REQUIRED),
    Change("probe", {"readinessProbe": {"guestAgentPing": {}}}, ChangeEffect.RESTART_REQUIRED),
    Change("labels", {"labels": {"app": "web", "new": "1"}}, ChangeEffect.AFTER_RESTART),
    Change("run-strategy", {"runStrategy": "Halted"}, ChangeEffect.LIVE),
]  # fmt: skip


@pytest.mark.slow
async def test_every_change_has_the_effect_that_we_name(
    kubevirt_bed: Bed, vm_namespace: str, vm_nodes: HollowNodes
) -> None:
    await vm_nodes(2)
    async with kubevirt_bed.client() as client:
        vms = VirtualMachines(client, vm_namespace)
        await asyncio.gather(*(apply(client, vms, build(vm_namespace, change.name)) for change in CHANGES))
        await asyncio.gather(*(vms.wait_until_running(change.name) for change in CHANGES))
        wrong = await asyncio.gather(*(judge(client, vms, change) for change in CHANGES))
    assert [text for text in wrong if text] == []


async def judge(client: Client, vms: VirtualMachines, change: Change) -> str:
    """Make the change, and say what was otherwise than we say."""
    live = await client.get(vms.path("virtualmachines", change.name))
    wanted = build(vms.namespace, change.name, change.spec, change.scheduling)
    effects = {effect for _, effect in find_change_effects(live["spec"], wanted["spec"])}
    if effects != {change.effect}:
        return f"{change.name}: {effects}"
    await apply(client, vms, wanted)
    try:
        await EXPECTED[change.effect](client, vms, change, wanted)
    except (TimeoutError, AssertionError, ApiError) as error:
        return f"{change.name}: {error}"
    return ""


async def expect_copied(client: Client, vms: VirtualMachines, change: Change, wanted: Json) -> None:
    """The instance gets it, and no restart is asked for."""
    if wanted["spec"]["runStrategy"] == "Halted":
        await vms.wait_for_status(change.name, "Stopped")
        return
    template = wanted["spec"]["template"]["spec"]
    await client.wait_until(
        vms.path("virtualmachineinstances", change.name), lambda vmi: has_all_of(vmi["spec"], template), vms.seconds
    )
    assert not has_condition(await client.get(vms.path("virtualmachines", change.name)), "RestartRequired")


async def expect_restart_required(client: Client, vms: VirtualMachines, change: Change, wanted: Json) -> None:
    path = vms.path("virtualmachines", change.name)
    await client.wait_until(path, lambda vm: has_condition(vm, "RestartRequired"), vms.seconds)


async def expect_nothing(client: Client, vms: VirtualMachines, change: Change, wanted: Json) -> None:
    """A second change, of which we see that it arrives, shows that the first was passed over."""
    both = build(vms.namespace, change.name, change.spec, APART)
    await apply(client, vms, both)
    await expect_copied(client, vms, change, both)
    vmi = await client.get(vms.path("virtualmachineinstances", change.name))
    assert "new" not in vmi["metadata"]["labels"]


EXPECTED = {
    ChangeEffect.LIVE: expect_copied,
    ChangeEffect.NEXT_POD: expect_copied,
    ChangeEffect.RESTART_REQUIRED: expect_restart_required,
    ChangeEffect.AFTER_RESTART: expect_nothing,
}


def has_all_of(instance_spec: Json, template: Json) -> bool:
    names = ("affinity", "nodeSelector", "tolerations", "networks")
    is_placed_so = all(is_within(template[name], instance_spec.get(name)) for name in names if name in template)
    memory = template["domain"]["memory"]
    return is_placed_so and is_within(memory, instance_spec["domain"]["memory"])


def build(namespace: str, name: str, spec: Json | None = None, scheduling: Json | None = None) -> Json:
    """The machine as we apply it. Without an owner, which would not be there."""
    reserved: dict[str, Any] = on_reserved(namespace)
    more = scheduling or {}
    placed = {
        **more,
        "nodeSelector": {**reserved["nodeSelector"], **more.get("nodeSelector", {})},
        "tolerations": [*reserved["tolerations"], *more.get("tolerations", [])],
    }
    document = {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {**BASE, **(spec or {}), "scheduling": placed},
    }
    machine = build_virtual_machine(msgspec.convert(document, Wukong), name, VmSettings())
    del machine["metadata"]["ownerReferences"]
    return machine


async def apply(client: Client, vms: VirtualMachines, machine: Json) -> Json:
    params = {"fieldManager": "wukong", "force": "true"}
    path = vms.path("virtualmachines", machine["metadata"]["name"])
    content_type = "application/apply-patch+yaml"
    return as_json(await client.send("PATCH", path, machine, params=params, content_type=content_type))
