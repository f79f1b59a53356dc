"""`wukong run --components vm` on real KubeVirt: virtual machines, their status, and exactly its own rights."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from live.accounts import service_account, used_by, when
from testbed.client import ApiError, Client, Json
from testbed.kubevirt.virtual_machines import VirtualMachines
from testbed.nodes import on_reserved
from testbed.pytest_plugin import Bed, HollowNodes
from wukong.api.crds import build_crds
from wukong.api.kinds import PRIORITY_CLASSES, WUKONGS
from wukong.app.component import list_permissions
from wukong.app.components.vm import VM

DISKS = [{"name": "root", "containerDisk": {"image": "quay.io/containerdisks/fedora:latest"}}]
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
ACCOUNT = "vm"
# What is needed and not written down: an apply that creates is a patch to the audit log, and an Event is patched when
# it comes again.
UNSEEN = {("kubevirt.io", "virtualmachines", "create"), ("events.k8s.io", "events", "patch")}
SHOWN_SECONDS = 2.0  # until a reason shows


@contextlib.contextmanager
def running(kubeconfig: Path, namespace: str, log: Path) -> Iterator[None]:
    """The command itself, as a process of its own; ended with SIGTERM, which must succeed."""
    words = ["run", "--components", "vm", "--kubeconfig", str(kubeconfig), "--lease", f"{namespace}/wukong"]
    with log.open("ab") as output:
        argv = [sys.executable, "-m", "wukong", *words, "--lease-seconds", "4", "--restart-pause-seconds", "1"]
        process = subprocess.Popen(argv, stdout=output, stderr=output)
    try:
        yield
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 0, log.read_text()
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def shown(bed: Bed, *words: str) -> str:
    """What a verb prints about the cluster."""
    argv = [sys.executable, "-m", "wukong", *words, "--kubeconfig", str(bed.kubeconfig)]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout


class Wukongs:
    """Those of one namespace, on its own nodes."""

    def __init__(self, client: Client, namespace: str) -> None:
        self.client, self.namespace = client, namespace

    def path(self, name: str = "") -> str:
        return WUKONGS.path(self.namespace, name)

    def spec(self, scheduling: Json | None = None, **spec: Any) -> Json:
        rules = {**on_reserved(self.namespace), **(scheduling or {})}
        return {"memory": "128Mi", "disks": DISKS, "scheduling": rules, **spec}

    async def create(self, name: str, **spec: Any) -> None:
        head = {"apiVersion": WUKONGS.api_version, "kind": WUKONGS.kind, "metadata": {"name": name}}
        await self.client.create(self.path(), {**head, "spec": self.spec(**spec)})

    async def replace(self, name: str, **spec: Any) -> None:
        """Give it this spec: fields that are not in it are gone."""
        operation = {"op": "replace", "path": "/spec", "value": self.spec(**spec)}
        await self.client.patch(self.path(name), [operation], "json")

    async def until(self, name: str, is_so: Callable[[Json], bool]) -> Json:
        return await self.client.wait_until(self.path(name), is_so, 60.0)


def condition(wukong: Json, kind: str) -> tuple[str, str, str]:
    for entry in wukong.get("status", {}).get("conditions", []):
        if entry["type"] == kind:
            return entry["status"], entry["reason"], entry["message"]
    return "", "", ""


def is_told(kind: str, status: str, reason: str = "") -> Callable[[Json], bool]:
    """Whether a condition about the latest generation says so."""

    def is_so(wukong: Json) -> bool:
        is_latest = wukong.get("status", {}).get("observedGeneration") == wukong["metadata"]["generation"]
        found = condition(wukong, kind)
        return is_latest and found[0] == status and reason in ("", found[1])

    return is_so


async def install(client: Client) -> None:
    for crd in build_crds():
        with contextlib.suppress(ApiError):  # another test has
            await client.create(CRDS, crd)
        await client.wait_until(f"{CRDS}/{crd['metadata']['name']}", _is_established)


def _is_established(crd: Json) -> bool:
    conditions = crd.get("status", {}).get("conditions") or []
    return any(entry["type"] == "Established" and entry["status"] == "True" for entry in conditions)


@asynccontextmanager
async def controlled(bed: Bed, namespace: str, folder: Path) -> AsyncIterator[Wukongs]:
    """Wukongs of a namespace with the component at work, which has exactly its rights."""
    async with bed.client() as client:
        await install(client)
        kubeconfig = await service_account(client, bed, namespace, ACCOUNT, list_permissions([VM]), folder)
        with running(kubeconfig, namespace, folder / "log"):
            yield Wukongs(client, namespace)


async def test_a_wukong_becomes_machines_that_run_and_follows_its_spec(
    kubevirt_bed: Bed, vm_namespace: str, vm_nodes: HollowNodes, tmp_path: Path
) -> None:
    nodes = await vm_nodes(3)
    async with controlled(kubevirt_bed, vm_namespace, tmp_path) as wukongs:
        vms = VirtualMachines(wukongs.client, vm_namespace)
        await wukongs.create("web", replicas=2, highAvailability={"antiAffinity": True})
        ready = await wukongs.until("web", is_told("Ready", "True"))
        assert {vm["node"] for vm in ready["status"]["vms"]} < set(nodes)
        assert ready["status"]["node"] == "2 nodes"
        first = await wukongs.client.get(vms.path("virtualmachines", "web-0"))
        assert first["metadata"]["ownerReferences"][0]["kind"] == "Wukong"
        tree = shown(kubevirt_bed, "get", "wk", "web", "-n", vm_namespace)
        assert [line.split()[:3] for line in tree.splitlines()[1:3]] == [["wk/web", "2/2"], ["├─", "vm/web-0", "yes"]]
        assert f"node/{ready['status']['vms'][0]['node']}" in tree
        explained = shown(kubevirt_bed, "explain", f"wk/{vm_namespace}/web")
        assert explained.startswith(f"Wukong {vm_namespace}/web, virtual machine web-0")
        await wukongs.replace("web", replicas=1, highAvailability={"antiAffinity": True})
        await wukongs.client.wait_until_gone(vms.path("virtualmachines", "web-1"))
        await wukongs.until("web", lambda wukong: wukong["status"]["replicas"] == 1)
        drifted = {"spec": {"template": {"spec": {"evictionStrategy": "None"}}}}
        await wukongs.client.patch(vms.path("virtualmachines", "web-0"), drifted)
        await wukongs.client.wait_until(
            vms.path("virtualmachines", "web-0"),
            lambda vm: vm["spec"]["template"]["spec"]["evictionStrategy"] == "LiveMigrateIfPossible",
        )
        await wukongs.client.delete(wukongs.path("web"))
        await wukongs.client.wait_until_gone(vms.path("virtualmachines", "web-0"))


async def test_a_rule_that_no_node_satisfies_is_told_at_once_and_recovers_when_a_node_appears(
    kubevirt_bed: Bed, vm_namespace: str, vm_nodes: HollowNodes, tmp_path: Path
) -> None:
    await vm_nodes(1)
    async with controlled(kubevirt_bed, vm_namespace, tmp_path) as wukongs:
        affinity = {"required": [{"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}]}
        await wukongs.create("warm-up")
        await wukongs.until("warm-up", is_told("Ready", "True"))
        began = time.monotonic()
        await wukongs.create("web", scheduling={"nodeAffinity": affinity})
        stuck = await wukongs.until("web", is_told("Placed", "False", "Unschedulable"))
        assert time.monotonic() - began < SHOWN_SECONDS
        assert "nodes are available" in condition(stuck, "Placed")[2]
        assert "Smallest fix: " in condition(stuck, "Placed")[2]
        (added,) = await vm_nodes(1, labels={"disk": "ssd"})
        placed = await wukongs.until("web", is_told("Ready", "True"))
        assert placed["status"]["node"] == added


async def test_a_scheduler_that_nobody_runs_is_named_and_no_right_is_missing_or_unused(
    kubevirt_bed: Bed, vm_namespace: str, vm_nodes: HollowNodes, tmp_path: Path
) -> None:
    nodes = await vm_nodes(2, labels={"disk": "hdd"})
    account = f"system:serviceaccount:{vm_namespace}:{ACCOUNT}"
    granted = {(rule.group, rule.resource, verb) for rule in list_permissions([VM]) for verb in rule.verbs}
    priority = 1 + int(vm_namespace[-6:], 16) % 900_000  # of this test alone: its class is looked at
    urgent = {"schedulingPolicy": {"priority": priority}}
    async with controlled(kubevirt_bed, vm_namespace, tmp_path) as wukongs:
        client, vms = wukongs.client, VirtualMachines(wukongs.client, vm_namespace)
        nobody = {"schedulingPolicy": {"schedulerName": "nobody"}}
        await wukongs.create("lost", scheduling=nobody, restartPolicy="WhenSafe")
        # A migration: its node is wrong by a rule that came later.
        await wukongs.create("web", restartPolicy="WhenSafe", scheduling=urgent)
        before = await wukongs.until("web", is_told("Ready", "True"))
        node = before["status"]["node"]
        (other,) = set(nodes) - {node}
        await client.patch(f"/api/v1/nodes/{other}", {"metadata": {"labels": {"disk": "ssd"}}})
        ssd = {"required": [{"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}]}
        await wukongs.replace("web", restartPolicy="WhenSafe", scheduling={**urgent, "nodeAffinity": ssd})
        await vms.wait_until_migrated("web", away_from=node)
        await wukongs.until("web", lambda wukong: wukong["status"]["node"] == other)
        # A restart: what KubeVirt says needs one.
        running_before = await vms.wait_until_running("web")
        rules = {**urgent, "nodeAffinity": ssd}
        await wukongs.replace("web", restartPolicy="WhenSafe", scheduling=rules, terminationGracePeriodSeconds=5)
        await vms.wait_until_running("web", after=running_before["metadata"]["uid"])
        await wukongs.until("web", is_told("RestartRequired", "False", "UpToDate"))
        # Scaling down, and a class that nobody asks for any more: marked, and deleted later.
        await client.delete(wukongs.path("web"))
        name = f"wukong-{priority}"
        await client.wait_until(PRIORITY_CLASSES.path(name=name), _is_marked, 60.0)
        mark = {"metadata": {"annotations": {"vm.novasphere.dev/unused-since": "2026-01-01T00:00:00Z"}}}
        await client.patch(PRIORITY_CLASSES.path(name=name), mark)
        await client.wait_until_gone(PRIORITY_CLASSES.path(name=name))
        await wukongs.create("pair", replicas=2)
        await wukongs.until("pair", is_told("Ready", "True"))
        await wukongs.replace("pair", replicas=1)
        await client.wait_until_gone(vms.path("virtualmachines", "pair-1"))
        lost = await wukongs.until("lost", is_told("Placed", "False", "SchedulerMissing"))
        assert '"nobody"' in condition(lost, "Placed")[2]
        await when(
            lambda: used_by(kubevirt_bed, account) | UNSEEN == granted,
            lambda: f"unused or missing: {granted ^ (used_by(kubevirt_bed, account) | UNSEEN)}",
        )


def _is_marked(priority_class: Json) -> bool:
    return "vm.novasphere.dev/unused-since" in priority_class["metadata"].get("annotations", {})
