"""Virtual machines that run twice, are lost or leave something behind are found."""

from __future__ import annotations

from typing import Any

import pytest

from embedded.actors.machine_world import a_machine
from embedded.checkers.checked_cluster import CheckedCluster
from wukong.actions import DONE, Outcome
from wukong.api.kinds import PODS, VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES
from wukong.api.resources import Key
from wukong.ports import Document, PatchBody
from wukong.state import State
from wukong.state.controller import Watch


class Idle:
    """Takes the place of an actor of this name, and does nothing."""

    watches: tuple[Watch, ...] = (Watch(VIRTUAL_MACHINES),)

    def __init__(self, name: str) -> None:
        self.name = name

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        return DONE


def a_launcher(cluster: CheckedCluster, name: str, node: str, **labels: str) -> None:
    spec = {"containers": [{"name": "compute", "image": "a"}], "nodeName": node}
    labels = {"kubevirt.io": "virt-launcher", "vmi.kubevirt.io/id": "web", **labels}
    cluster.server.create(PODS, {"metadata": {"name": name, "labels": labels}, "spec": spec}, "default")
    cluster.world.run()


def a_cluster(*idle: str) -> CheckedCluster:
    cluster = CheckedCluster(*(Idle(name) for name in idle))
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


def test_a_machine_that_nobody_lets_go_is_found() -> None:
    cluster = a_cluster("virt-vm")
    cluster.server.create(VIRTUAL_MACHINES, a_machine(strategy="Halted"), "default")
    held = {"metadata": {"finalizers": ["kubevirt.io/virtualMachineControllerFinalize"]}}
    cluster.server.patch(VIRTUAL_MACHINES, Key("default", "web"), PatchBody("merge", held))
    cluster.server.delete(VIRTUAL_MACHINES, Key("default", "web"))
    (finding,) = cluster.findings()
    assert "at rest it still waits for its finalizer kubevirt.io/virtualMachineControllerFinalize" in finding
