"""`wukong run --components vm` beside real KubeVirt: what becomes of virtual machines when a Wukong changes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from live.accounts import used_by, when
from live.wukongs import ZONE, a_wukong, condition_of, place, wukong_path
from testbed.client import Client, Json, Listed, as_json
from testbed.kubevirt.virtual_machines import VirtualMachines, has_condition
from testbed.nodes import on_reserved
from testbed.pytest_plugin import Bed, HollowNodes
from vm_comparison.machinery import ACCOUNT
from wukong.app.component import list_permissions
from wukong.app.components.vm import VM

LABELS = {"app": "web"}


async def until(client: Client, namespace: str, name: str, is_so: Callable[[Json], bool]) -> Json:
    return await client.wait_until(wukong_path(namespace, name), is_so, 60)


def a_priority(value: int) -> Json:
    return {"schedulingPolicy": {"priority": value}}


async def test_the_status_says_where_vms_run_and_a_smaller_wukong_loses_the_highest(
    vm_component: Bed, vm_namespace: str, vm_nodes: HollowNodes
) -> None:
    await vm_nodes(1)
    async with vm_component.client() as client:
        await place(client, vm_namespace, a_wukong("web", vm_namespace, replicas=3), "web-0", "web-1", "web-2")
        ready = await until(client, vm_namespace, "web", lambda found: found["status"].get("readyReplicas") == 3)
        await client.patch(wukong_path(vm_namespace, "web"), {"spec": {"replicas": 2}})
        vms = VirtualMachines(client, vm_namespace)
        await client.wait_until_gone(vms.path("virtualmachines", "web-2"))
        left = [await client.get(vms.path("virtualmachines", name)) for name in ("web-0", "web-1")]
    assert [(vm["name"], vm["phase"], vm["migratable"]) for vm in ready["status"]["vms"]] == [
        (f"web-{index}", "Running", True) for index in range(3)
    ]
    assert all("deletionTimestamp" not in vm["metadata"] for vm in left)


async def test_what_somebody_changes_on_a_vm_is_put_right_again(
    vm_component: Bed, vm_namespace: str, vm_nodes: HollowNodes
) -> None:
    await vm_nodes(1)
    async with vm_component.client() as client:
        await place(client, vm_namespace, a_wukong("web", vm_namespace, labels=LABELS))
        vms = VirtualMachines(client, vm_namespace)
        await vms.patch("web", {"metadata": {"labels": {"app": None, "mine": "1"}}})
        path = vms.path("virtualmachines", "web")
        repaired = await client.wait_until(path, lambda vm: vm["metadata"]["labels"].get("app") == "web", 60)
    assert repaired["metadata"]["labels"]["mine"] == "1", "what is not ours stays"


async def test_a_change_says_whether_running_vms_take_it_up(
    vm_component: Bed, vm_namespace: str, vm_nodes: HollowNodes
) -> None:
    await vm_nodes(1)
    async with vm_component.client() as client:
        await place(client, vm_namespace, a_wukong("web", vm_namespace, a_priority(5)))
        vms, path = VirtualMachines(client, vm_namespace), wukong_path(vm_namespace, "web")
        zone = {"matchExpressions": [{"key": ZONE, "operator": "Exists"}]}
        affinity = {"preferred": [{"weight": 1, "preference": zone}]}
        await client.patch(path, {"spec": {"scheduling": {"nodeAffinity": affinity}}})
        instance = vms.path("virtualmachineinstances", "web")
        live = await client.wait_until(instance, lambda vmi: "affinity" in vmi["spec"], 60)
        await client.patch(path, {"spec": {"scheduling": {"schedulingPolicy": {"priority": 6}}}})
        changed = await until(
            client, vm_namespace, "web", lambda found: condition_of(found, "RestartRequired").get("status") == "True"
        )
        vm = await client.wait_until(
            vms.path("virtualmachines", "web"), lambda found: has_condition(found, "RestartRequired"), 60
        )
        pod = await vms.launcher_pod("web")
    assert live["spec"]["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert "web" in condition_of(changed, "RestartRequired")["message"]
    assert vm["spec"]["template"]["spec"]["priorityClassName"] == "wukong-6"
    assert pod["spec"]["priority"] == 5, "what runs is left alone"


async def test_a_vm_of_higher_priority_takes_the_place_of_another(
    vm_component: Bed, vm_namespace: str, vm_nodes: HollowNodes
) -> None:
    await vm_nodes(1, capacity={"cpu": "250m"})  # room for two virtual cpus of 100m
    async with vm_component.client() as client:
        low = a_wukong("low", vm_namespace, a_priority(10), cpu=2)
        await place(client, vm_namespace, low)
        vms = VirtualMachines(client, vm_namespace)
        victim = await vms.launcher_pod("low")
        await place(client, vm_namespace, a_wukong("high", vm_namespace, a_priority(20), cpu=2))
        blocked = await until(client, vm_namespace, "low", _is_unschedulable)
        pods = [pod["metadata"]["name"] for pod in await vms.launcher_pods("low")]
    assert victim["metadata"]["name"] not in pods or len(pods) > 1
    assert blocked["status"]["vms"][0]["reason"] == "Unschedulable"


async def test_a_vm_that_preempts_nobody_waits(vm_component: Bed, vm_namespace: str, vm_nodes: HollowNodes) -> None:
    await vm_nodes(1, capacity={"cpu": "250m"})
    async with vm_component.client() as client:
        await place(client, vm_namespace, a_wukong("low", vm_namespace, a_priority(10), cpu=2))
        scheduling = {"schedulingPolicy": {"priority": 20, "preemptionPolicy": "Never"}}
        await client.create(wukong_path(vm_namespace), a_wukong("high", vm_namespace, scheduling, cpu=2))
        blocked = await until(client, vm_namespace, "high", _is_unschedulable)
        low = await client.get(wukong_path(vm_namespace, "low"))
    assert "cpu" in condition_of(blocked, "Placed")["message"]
    assert low["status"]["readyReplicas"] == 1


async def test_a_vm_that_fits_nowhere_says_why_and_recovers_when_a_node_appears(
    vm_component: Bed,
    vm_namespace: str,
    vm_nodes: HollowNodes,
    record_property: Callable[[str, object], None],
) -> None:
    await vm_nodes(1, labels={ZONE: "a"})
    needs_zone = {**on_reserved(vm_namespace)["nodeSelector"], ZONE: "b"}
    async with vm_component.client() as client:
        wukong = a_wukong("web", vm_namespace, {"nodeSelector": needs_zone})
        await client.create(wukong_path(vm_namespace), wukong)
        async with asyncio.TaskGroup() as group:
            refused_at = group.create_task(_wait_for_refusal(client, vm_namespace))
            blocked = await until(client, vm_namespace, "web", _is_unschedulable)
            told_at = time.monotonic()
        await vm_nodes(1, labels={ZONE: "b"})
        await until(client, vm_namespace, "web", lambda found: condition_of(found, "Placed").get("status") == "True")
    seconds = max(told_at - refused_at.result(), 0.0)
    figure = f"a VM that fits nowhere: explained on its Wukong {seconds:.1f} s after the scheduler's word was seen"
    record_property("figure", figure)
    assert "node" in condition_of(blocked, "Placed")["message"]


def _is_unschedulable(wukong: Json) -> bool:
    return bool(condition_of(wukong, "Placed").get("reason") == "Unschedulable")


async def _wait_for_refusal(client: Client, namespace: str) -> float:
    """When the scheduler's refusal of the only pod there was seen."""
    async for change in client.follow(f"/api/v1/namespaces/{namespace}/pods"):
        for raw in change.items if isinstance(change, Listed) else [change.object]:
            if has_condition(as_json(raw), "PodScheduled", "False"):
                return time.monotonic()
    raise AssertionError("follow never ends")


async def test_a_deleted_wukong_takes_its_vms_along_and_uses_no_more_rights_than_it_asks_for(
    vm_component: Bed, vm_namespace: str, vm_nodes: HollowNodes
) -> None:
    await vm_nodes(1)
    async with vm_component.client() as client:
        await place(client, vm_namespace, a_wukong("web", vm_namespace, a_priority(7), replicas=2), "web-0", "web-1")
        await client.patch(wukong_path(vm_namespace, "web"), {"spec": {"replicas": 1}})
        vms = VirtualMachines(client, vm_namespace)
        await client.wait_until_gone(vms.path("virtualmachines", "web-1"))
        await client.delete(wukong_path(vm_namespace, "web"))
        await client.wait_until_gone(vms.path("virtualmachines", "web-0"))
        await client.wait_until_gone(vms.path("virtualmachineinstances", "web-0"))
    granted = {
        (permission.group, permission.resource, verb)
        for permission in list_permissions([VM])
        for verb in permission.verbs
    }
    account = f"system:serviceaccount:default:{ACCOUNT}"
    await when(lambda: bool(used_by(vm_component, account)), lambda: "nothing was written down")
    assert used_by(vm_component, account) <= granted
