"""Virtual machines that run twice, are lost or leave something behind are found."""

from __future__ import annotations

from typing import Any

import pytest

from embedded.actors.machine_world import a_machine
from embedded.checkers.checked_cluster import CheckedCluster
from wukong.actions import DONE, Outcome
from wukong.api.kinds import PODS, VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES, WUKONGS
from wukong.api.resources import Key
from wukong.embedded.store.deletion import DeleteOptions
from wukong.ports import Document, PatchBody
from wukong.state import State
from wukong.state.controller import Watch


class Idle:
    """Takes the place of an actor of this name, and does nothing."""

    def __init__(self, name: str, *more: Watch) -> None:
        self.name = name
        self.watches = (Watch(VIRTUAL_MACHINES), *more)

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        return DONE


class Onlooker:
    """Sees Wukongs, and cares for none of their machines."""

    name = "onlooker"
    watches = (Watch(WUKONGS),)

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        return DONE


def a_launcher(cluster: CheckedCluster, name: str, node: str, **labels: str) -> None:
    spec = {"containers": [{"name": "compute", "image": "a"}], "nodeName": node}
    labels = {"kubevirt.io": "virt-launcher", "vmi.kubevirt.io/id": "web", **labels}
    cluster.server.create(PODS, {"metadata": {"name": name, "labels": labels}, "spec": spec}, "default")
    cluster.world.run()


def a_cluster(*idle: str, cares_for_wukongs: bool = False) -> CheckedCluster:
    """One in which these actors do nothing, nor does the controller of Wukongs, where there is one."""
    ours = [Idle("vm", Watch(WUKONGS))] if cares_for_wukongs else [Onlooker()]
    cluster = CheckedCluster(*(Idle(name) for name in idle), *ours)
    for name in ("n0", "n1"):
        cluster.node(name)
    return cluster


@pytest.mark.parametrize(
    ("first", "second", "is_found"),
    [
        ({}, {}, True),
        ({}, {"kubevirt.io/migrationJobUID": "a"}, False),
        ({"kubevirt.io/migrationJobUID": "a"}, {"kubevirt.io/migrationJobUID": "b"}, False),
        ({"kubevirt.io/migrationJobUID": "a"}, {"kubevirt.io/migrationJobUID": "a"}, True),
        ({}, {"vmi.kubevirt.io/id": "other"}, False),
    ],
)
def test_two_pods_of_one_machine_run_only_while_it_migrates(first: Any, second: Any, is_found: bool) -> None:
    cluster = a_cluster()
    a_launcher(cluster, "one", "n0", **first)
    a_launcher(cluster, "two", "n1", **second)
    findings = [text for text in cluster.findings() if "its guest is there twice" in text]
    assert len(findings) == is_found


def test_a_pod_that_was_removed_at_once_runs_no_more() -> None:
    cluster = a_cluster()
    a_launcher(cluster, "one", "n0")
    cluster.server.delete(PODS, Key("default", "one"), DeleteOptions(grace_seconds=0))
    a_launcher(cluster, "two", "n1")
    assert [text for text in cluster.findings() if "its guest is there twice" in text] == []


def test_a_third_pod_of_a_machine_is_found_even_while_it_migrates() -> None:
    cluster = a_cluster()
    a_launcher(cluster, "one", "n0")
    a_launcher(cluster, "two", "n1", **{"kubevirt.io/migrationJobUID": "a"})
    a_launcher(cluster, "three", "n1", **{"kubevirt.io/migrationJobUID": "b"})
    assert any("while 2 other pods of machine web run" in text for text in cluster.findings())


def test_a_machine_that_is_to_run_and_has_no_instance_is_found() -> None:
    cluster = a_cluster("virt-vm")
    cluster.server.create(VIRTUAL_MACHINES, a_machine(), "default")
    (finding,) = cluster.findings()
    assert "virtualmachine default/web: at rest it is to have an instance that runs, and has none" in finding


def test_an_instance_whose_machine_is_gone_is_found() -> None:
    cluster = a_cluster("virt-vm", "virt-vmi", "garbage")
    reference = {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "name": "web",
        "uid": "x",
        "controller": True,
    }
    meta = {"name": "web", "ownerReferences": [reference]}
    spec: Document = {"domain": {"memory": {"guest": "1Gi"}}}
    cluster.server.create(VIRTUAL_MACHINE_INSTANCES, {"metadata": meta, "spec": spec}, "default")
    (finding,) = cluster.findings()
    assert "virtualmachineinstance default/web: at rest its virtual machine is gone" in finding


def a_reference(kind: str, api_version: str, name: str, uid: str) -> Document:
    return {"apiVersion": api_version, "kind": kind, "name": name, "uid": uid, "controller": True}


def an_instance(cluster: CheckedCluster, phase: str, **meta: Any) -> Document:
    spec: Document = {"domain": {"memory": {"guest": "1Gi"}}}
    body = {"metadata": {"name": "web", **meta}, "spec": spec, "status": {"phase": phase}}
    return cluster.server.create(VIRTUAL_MACHINE_INSTANCES, body, "default")


@pytest.mark.parametrize(("phase", "is_found"), [("Pending", False), ("Scheduled", True), ("Running", True)])
def test_an_instance_that_runs_without_a_pod_is_found(phase: str, is_found: bool) -> None:
    cluster = a_cluster("virt-vmi", "virt-handler")
    an_instance(cluster, phase)
    text = f"virtualmachineinstance default/web: at rest it is {phase}, and none of its pods runs: its guest is lost"
    assert findings_of(cluster) == [text] * is_found


def test_an_instance_whose_only_pod_has_ended_is_found_and_one_whose_pod_runs_is_not() -> None:
    cluster = a_cluster("virt-vmi", "virt-handler", "kubelet")
    instance = an_instance(cluster, "Running")
    reference = a_reference("VirtualMachineInstance", "kubevirt.io/v1", "web", instance["metadata"]["uid"])
    cluster.pod("launcher", nodeName="n0")
    owned = {"metadata": {"ownerReferences": [reference]}}
    cluster.server.patch(PODS, Key("default", "launcher"), PatchBody("merge", owned))
    assert cluster.findings() == []
    ended = {"status": {"phase": "Failed"}}
    cluster.server.patch(PODS, Key("default", "launcher"), PatchBody("merge", ended), "status")
    (finding,) = cluster.findings()
    assert "none of its pods runs: its guest is lost" in finding


@pytest.mark.parametrize("idle", [("garbage",), ()])
def test_a_virt_launcher_pod_whose_instance_is_gone_is_found_unless_it_is_removed(idle: tuple[str, ...]) -> None:
    cluster = a_cluster("virt-vmi", "virt-handler", *idle)
    instance = an_instance(cluster, "Pending")
    reference = a_reference("VirtualMachineInstance", "kubevirt.io/v1", "web", instance["metadata"]["uid"])
    a_launcher(cluster, "one", "n0")
    owned = {"metadata": {"ownerReferences": [reference]}}
    cluster.server.patch(PODS, Key("default", "one"), PatchBody("merge", owned))
    assert cluster.findings() == []
    cluster.server.delete(VIRTUAL_MACHINE_INSTANCES, Key("default", "web"))
    cluster.server.patch(PODS, Key("default", "one"), PatchBody("merge", {"metadata": {"labels": {"a": "b"}}}))
    expected = ["pod default/one: at rest its instance is gone, and it is left behind"] * len(idle)
    assert findings_of(cluster) == expected


def add_wukong(cluster: CheckedCluster, status: Document | None = None, **spec: Any) -> Document:
    disks = [{"name": "root", "containerDisk": {"image": "a"}}]
    body = {"metadata": {"name": "web"}, "spec": {"disks": disks, **spec}}
    wukong = cluster.server.create(WUKONGS, body, "default")
    if status is not None:
        cluster.server.patch(WUKONGS, Key("default", "web"), PatchBody("merge", {"status": status}), "status")
    return wukong


def add_machine_of(cluster: CheckedCluster, wukong: Document | None, name: str) -> None:
    machine = a_machine(name, strategy="Halted")
    if wukong is not None:
        uid = wukong["metadata"]["uid"]
        machine["metadata"]["ownerReferences"] = [a_reference("Wukong", WUKONGS.api_version, "web", uid)]
    cluster.server.create(VIRTUAL_MACHINES, machine, "default")


def findings_of(cluster: CheckedCluster) -> list[str]:
    """Without when, and at which line."""
    return [finding.partition(" (at")[0] for finding in cluster.findings()]


def test_a_machine_of_a_wukong_that_is_lost_is_found() -> None:
    cluster = a_cluster(cares_for_wukongs=True)
    wukong = add_wukong(cluster, replicas=3)
    add_machine_of(cluster, wukong, "web-1")
    assert findings_of(cluster) == [
        "wukong default/web: at rest its virtual machine web-0 is lost",
        "wukong default/web: at rest its virtual machine web-2 is lost",
    ]


def test_where_nobody_cares_for_wukongs_none_of_their_machines_is_missed() -> None:
    cluster = a_cluster()
    add_wukong(cluster, replicas=3)
    assert cluster.findings() == []


def test_a_wukong_that_is_refused_or_whose_name_is_taken_loses_nothing() -> None:
    refused = {"conditions": [{"type": "Accepted", "status": "False"}]}
    cluster = a_cluster(cares_for_wukongs=True)
    add_wukong(cluster, refused)
    assert cluster.findings() == []
    other = a_cluster(cares_for_wukongs=True)
    add_wukong(other)
    add_machine_of(other, None, "web")
    assert other.findings() == []


def test_a_machine_that_its_wukong_does_not_ask_for_is_found() -> None:
    cluster = a_cluster(cares_for_wukongs=True)
    wukong = add_wukong(cluster, replicas=1)
    for name in ("web-0", "web-1"):
        add_machine_of(cluster, wukong, name)
    assert findings_of(cluster) == [
        "wukong default/web: at rest virtual machine web-1 is left behind: nobody asks for it"
    ]


@pytest.mark.parametrize("idle", [("garbage",), ()])
def test_a_machine_whose_wukong_is_gone_is_found_unless_it_is_removed(idle: tuple[str, ...]) -> None:
    cluster = a_cluster(*idle, cares_for_wukongs=True)
    wukong = add_wukong(cluster)
    add_machine_of(cluster, wukong, "web")
    assert cluster.findings() == []
    cluster.server.delete(WUKONGS, Key("default", "web"))
    touch = PatchBody("merge", {"metadata": {"labels": {"a": "b"}}})
    cluster.server.patch(VIRTUAL_MACHINES, Key("default", "web"), touch)
    expected = ["virtualmachine default/web: at rest its Wukong is gone, and it is left behind"] * len(idle)
    assert findings_of(cluster) == expected


def test_a_machine_that_nobody_lets_go_is_found() -> None:
    cluster = a_cluster("virt-vm")
    cluster.server.create(VIRTUAL_MACHINES, a_machine(strategy="Halted"), "default")
    held = {"metadata": {"finalizers": ["kubevirt.io/virtualMachineControllerFinalize"]}}
    cluster.server.patch(VIRTUAL_MACHINES, Key("default", "web"), PatchBody("merge", held))
    cluster.server.delete(VIRTUAL_MACHINES, Key("default", "web"))
    (finding,) = cluster.findings()
    assert "at rest it still waits for its finalizer kubevirt.io/virtualMachineControllerFinalize" in finding
