"""`wukong run --components vm` beside real KubeVirt, with exactly its own rights: VMs, status, changes."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable

from live.accounts import used_by, when
from live.wukongs import HOSTNAME, ZONE, a_wukong, condition_of, labels_of, place, wukong_path
from testbed.client import Client, Json, Listed, as_json
from testbed.kubevirt.virtual_machines import VirtualMachines, has_condition
from testbed.nodes import on_reserved
from testbed.pytest_plugin import Bed, HollowNodes
from vm_comparison.machinery import ACCOUNT
from wukong.api.kinds import PRIORITY_CLASSES
from wukong.app.component import list_permissions
from wukong.app.components.vm import VM

LABELS = {"app": "web"}
NEEDS_SSD = {"required": [{"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}]}
UNUSED_SINCE = "vm.novasphere.dev/unused-since"
# What is needed and not written down: an apply that creates is a patch to the audit log, and an Event is patched when
# it comes again.
UNSEEN = {("kubevirt.io", "virtualmachines", "create"), ("events.k8s.io", "events", "patch")}


async def until(client: Client, namespace: str, name: str, is_so: Callable[[Json], bool]) -> Json:
    return await client.wait_until(wukong_path(namespace, name), is_so, 60)


async def replace(client: Client, namespace: str, wukong: Json) -> None:
    """Give it this spec: fields that are not in it are gone."""
    operation = {"op": "replace", "path": "/spec", "value": wukong["spec"]}
    await client.patch(wukong_path(namespace, wukong["metadata"]["name"]), [operation], "json")


def says(kind: str, status: str, reason: str = "") -> Callable[[Json], bool]:
    """Whether a condition about the latest generation says so."""

    def is_so(wukong: Json) -> bool:
        is_latest = wukong.get("status", {}).get("observedGeneration") == wukong["metadata"]["generation"]
        condition = condition_of(wukong, kind)
        return is_latest and condition.get("status") == status and reason in ("", condition["reason"])

    return is_so


def show(bed: Bed, *words: str) -> str:
    """What a verb prints about the cluster."""
    argv = [sys.executable, "-m", "wukong", *words, "--kubeconfig", str(bed.kubeconfig)]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout


def a_priority(value: int) -> Json:
    return {"schedulingPolicy": {"priority": value}}


async def test_a_wukong_becomes_machines_apart_that_follow_its_spec_and_go_with_it(
    vm_component: Bed, vm_namespace: str, vm_nodes: HollowNodes
) -> None:
    nodes = await vm_nodes(3)
    wukong = a_wukong("web", vm_namespace, replicas=3, highAvailability={"antiAffinity": True}, labels=LABELS)
    async with vm_component.client() as client:
        vms = VirtualMachines(client, vm_namespace)
        places = await place(client, vm_namespace, wukong, "web-0", "web-1", "web-2")
        assert {labels_of(node, HOSTNAME) for node in places} == set(nodes)
        ready = await until(client, vm_namespace, "web", says("Ready", "True"))
        assert {vm["node"] for vm in ready["status"]["vms"]} == set(nodes)
        assert (ready["status"]["node"], ready["status"]["readyReplicas"]) == ("3 nodes", 3)
        assert [(vm["name"], vm["phase"], vm["migratable"]) for vm in ready["status"]["vms"]] == [
            (f"web-{index}", "Running", True) for index in range(3)
        ]
        first = await client.get(vms.path("virtualmachines", "web-0"))
        assert first["metadata"]["ownerReferences"][0]["kind"] == "Wukong"
        tree = show(vm_component, "get", "wk", "web", "-n", vm_namespace)
        assert [line.split()[:3] for line in tree.splitlines()[1:3]] == [["wk/web", "3/3"], ["├─", "vm/web-0", "yes"]]
        assert f"node/{ready['status']['vms'][0]['node']}" in tree
        explained = show(vm_component, "explain", f"wk/{vm_namespace}/web")
        assert explained.startswith(f"Wukong {vm_namespace}/web, virtual machine web-0")
        # A smaller one loses the machine of the highest number.
        await replace(client, vm_namespace, {**wukong, "spec": {**wukong["spec"], "replicas": 2}})
        await client.wait_until_gone(vms.path("virtualmachines", "web-2"))
        await until(client, vm_namespace, "web", lambda found: found["status"]["replicas"] == 2)
        left = [await client.get(vms.path("virtualmachines", name)) for name in ("web-0", "web-1")]
        assert all("deletionTimestamp" not in vm["metadata"] for vm in left)
        # What somebody changes is put right again, what is not ours stays.
        drift = {"metadata": {"labels": {"app": None, "mine": "1"}}}
        await vms.patch("web-0", {**drift, "spec": {"template": {"spec": {"evictionStrategy": "None"}}}})
        repaired = await client.wait_until(vms.path("virtualmachines", "web-0"), _is_repaired, 60)
        assert repaired["metadata"]["labels"]["mine"] == "1"
        await client.delete(wukong_path(vm_namespace, "web"))
        for name in ("web-0", "web-1"):
            await client.wait_until_gone(vms.path("virtualmachines", name))
            await client.wait_until_gone(vms.path("virtualmachineinstances", name))


def _is_repaired(vm: Json) -> bool:
    strategy = vm["spec"]["template"]["spec"].get("evictionStrategy")
    return bool(vm["metadata"]["labels"].get("app") == "web" and strategy == "LiveMigrateIfPossible")


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


async def test_vms_that_fit_nowhere_say_why_at_once_and_recover_when_a_node_appears(
    vm_component: Bed,
    vm_namespace: str,
    vm_nodes: HollowNodes,
    record_property: Callable[[str, object], None],
) -> None:
    """By a rule of node affinity, and by a node selector. How soon: test_embedded_vm_moves.py, on virtual time."""
    await vm_nodes(1, labels={ZONE: "a"})
    needs_zone = {**on_reserved(vm_namespace)["nodeSelector"], ZONE: "b"}
    async with vm_component.client() as client:
        await place(client, vm_namespace, a_wukong("warm-up", vm_namespace))
        await client.create(wukong_path(vm_namespace), a_wukong("web", vm_namespace, {"nodeAffinity": NEEDS_SSD}))
        async with asyncio.TaskGroup() as group:
            refused_at = group.create_task(_wait_for_refusal(client, vm_namespace))
            blocked = await until(client, vm_namespace, "web", says("Placed", "False", "Unschedulable"))
            told_at = time.monotonic()
        await client.create(wukong_path(vm_namespace), a_wukong("db", vm_namespace, {"nodeSelector": needs_zone}))
        selecting = await until(client, vm_namespace, "db", says("Placed", "False", "Unschedulable"))
        (added,) = await vm_nodes(1, labels={"disk": "ssd", ZONE: "b"})
        placed = [await until(client, vm_namespace, name, says("Ready", "True")) for name in ("web", "db")]
    seconds = max(told_at - refused_at.result(), 0.0)
    figure = f"a VM that fits nowhere: explained on its Wukong {seconds:.1f} s after the scheduler's word was seen"
    record_property("figure", figure)
    for wukong in (blocked, selecting):
        assert "nodes are available" in condition_of(wukong, "Placed")["message"]
        assert "Smallest fix: " in condition_of(wukong, "Placed")["message"]
    assert [wukong["status"]["node"] for wukong in placed] == [added, added]


def _is_unschedulable(wukong: Json) -> bool:
    return bool(condition_of(wukong, "Placed").get("reason") == "Unschedulable")


async def _wait_for_refusal(client: Client, namespace: str) -> float:
    """When the scheduler's refusal of a pod there was first seen."""
    async for change in client.follow(f"/api/v1/namespaces/{namespace}/pods"):
        for raw in change.items if isinstance(change, Listed) else [change.object]:
            if has_condition(as_json(raw), "PodScheduled", "False"):
                return time.monotonic()
    raise AssertionError("follow never ends")


async def test_a_scheduler_that_nobody_runs_is_named_and_no_right_is_missing_or_unused(
    vm_component: Bed, vm_namespace: str, vm_nodes: HollowNodes
) -> None:
    nodes = await vm_nodes(2, labels={"disk": "hdd"})
    account = f"system:serviceaccount:default:{ACCOUNT}"
    granted = {(rule.group, rule.resource, verb) for rule in list_permissions([VM]) for verb in rule.verbs}
    priority = 1 + int(vm_namespace[-6:], 16) % 900_000  # of this test alone: its class is looked at
    urgent, when_safe = a_priority(priority), {"restartPolicy": "WhenSafe"}
    async with vm_component.client() as client:
        vms = VirtualMachines(client, vm_namespace)
        nobody = {"schedulingPolicy": {"schedulerName": "nobody"}}
        await client.create(wukong_path(vm_namespace), a_wukong("lost", vm_namespace, nobody, **when_safe))
        # A migration: its node is wrong by a rule that came later.
        await client.create(wukong_path(vm_namespace), a_wukong("web", vm_namespace, urgent, **when_safe))
        before = await until(client, vm_namespace, "web", says("Ready", "True"))
        node = before["status"]["node"]
        (other,) = set(nodes) - {node}
        await client.patch(f"/api/v1/nodes/{other}", {"metadata": {"labels": {"disk": "ssd"}}})
        rules = {**urgent, "nodeAffinity": NEEDS_SSD}
        await replace(client, vm_namespace, a_wukong("web", vm_namespace, rules, **when_safe))
        await vms.wait_until_migrated("web", away_from=node)
        await until(client, vm_namespace, "web", lambda wukong: wukong["status"]["node"] == other)
        # A restart: what KubeVirt says needs one.
        running_before = await vms.wait_until_running("web")
        shorter = a_wukong("web", vm_namespace, rules, terminationGracePeriodSeconds=5, **when_safe)
        await replace(client, vm_namespace, shorter)
        await vms.wait_until_running("web", after=running_before["metadata"]["uid"])
        await until(client, vm_namespace, "web", says("RestartRequired", "False", "UpToDate"))
        # Scaling down, and a class that nobody asks for any more: marked, and deleted later.
        await client.delete(wukong_path(vm_namespace, "web"))
        path = PRIORITY_CLASSES.path(name=f"wukong-{priority}")
        await client.wait_until(path, _is_marked, 60)
        await client.patch(path, {"metadata": {"annotations": {UNUSED_SINCE: "2026-01-01T00:00:00Z"}}})
        await client.wait_until_gone(path)
        await client.create(wukong_path(vm_namespace), a_wukong("pair", vm_namespace, replicas=2))
        await until(client, vm_namespace, "pair", says("Ready", "True"))
        await replace(client, vm_namespace, a_wukong("pair", vm_namespace, replicas=1))
        await client.wait_until_gone(vms.path("virtualmachines", "pair-1"))
        lost = await until(client, vm_namespace, "lost", says("Placed", "False", "SchedulerMissing"))
        assert '"nobody"' in condition_of(lost, "Placed")["message"]
        await when(
            lambda: used_by(vm_component, account) | UNSEEN == granted,
            lambda: f"unused or missing: {granted ^ (used_by(vm_component, account) | UNSEEN)}",
        )


def _is_marked(priority_class: Json) -> bool:
    return UNUSED_SINCE in priority_class["metadata"].get("annotations", {})
