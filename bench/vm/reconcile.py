"""What a look at one Wukong costs among ten thousand. `python -m bench --vm` runs it.

Each Wukong has two virtual machines with instances and pods, all as they should be. Processor time, in microseconds:

    nothing     one of its virtual machines changed in nothing that is told
    status      a virtual machine became ready or not: the status is written
    spec        the Wukong itself changed: judged, built and applied anew
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import msgspec

from wukong.actions import Outcome
from wukong.api.core import Container, Node, NodeStatus, Pod, PodSpec, PodStatus, ResourceRequirements
from wukong.api.kubevirt import VirtualMachine, VirtualMachineInstance
from wukong.api.meta import Object, ObjectMeta, OwnerReference
from wukong.api.resources import Key, key_of
from wukong.api.vm import Wukong, WukongStatus
from wukong.controllers.vm.controller import VirtualMachineController
from wukong.placement.rules import BUILT_IN
from wukong.state import State

COUNTS = (1, 100, 10_000)
LOOKS, WARM_UP = 200, 20
NODES = 100
REPLICAS = 2


def main(say: Callable[[str], None]) -> None:
    print("microseconds of processor time for a look at one Wukong of two virtual machines")
    baseline: dict[str, float] = {}
    for count in COUNTS:
        say(f"{count:,} Wukongs")
        cluster = Cluster(count)
        figures = {
            "nothing": cluster.time(cluster.touch_machine),
            "status": cluster.time(cluster.turn_machine),
            "spec": cluster.time(cluster.change_spec),
        }
        baseline = baseline or figures
        columns = "".join(
            f"{name:>12}{figure:8.0f} ({figure / baseline[name]:.2f}×)" for name, figure in figures.items()
        )
        print(f"{count:>8,} Wukongs{columns}")


class Cluster:
    """A mirror with so many Wukongs at rest, and the controller that has looked at all of them."""

    def __init__(self, count: int) -> None:
        self.state, self.version, self.now = State(), 0, 1_800_000_000.0
        self.controller = VirtualMachineController(BUILT_IN)
        allocatable: dict[str, Any] = {"cpu": "1000", "memory": "4000Gi", "pods": "1000"}
        for number in range(NODES):
            self.put(Node(metadata=ObjectMeta(name=f"n{number}"), status=NodeStatus(allocatable=allocatable)))
        for number in range(count):
            self._add_wukong(number)
        self.key = Key("shop", f"web{count // 2}")

    def put(self, subject: Object) -> None:
        self.version += 1
        subject.metadata.resource_version = str(self.version)
        self.state.apply("MODIFIED", subject)

    def _add_wukong(self, number: int) -> None:
        meta = {"name": f"web{number}", "namespace": "shop", "uid": f"w{number}", "generation": 1}
        disks = [{"name": "root", "containerDisk": {"image": "fedora:42"}}]
        spec = {"replicas": REPLICAS, "disks": disks, "highAvailability": {"antiAffinity": True}}
        wukong = msgspec.convert({"metadata": meta, "spec": spec}, Wukong)
        self.put(wukong)
        key = key_of(wukong)
        for action in self.controller.reconcile(key, self.state, self.now).actions:
            body = getattr(getattr(action, "patch", None), "body", {})
            if body.get("kind") == "VirtualMachine":
                self._add_machine(body, f"n{number % NODES}")
        self.settle(key)

    def _add_machine(self, body: dict[str, Any], node: str) -> None:
        name = body["metadata"]["name"]
        document = {
            **body,
            "metadata": {**body["metadata"], "uid": f"vm-{name}", "generation": 1},
            "status": {"printableStatus": "Running", "ready": True},
        }
        self.put(msgspec.convert(document, VirtualMachine))
        template = body["spec"]["template"]
        owner = {"kind": "VirtualMachine", "name": name, "uid": f"vm-{name}", "controller": True}
        meta = {
            **template["metadata"],
            "name": name,
            "namespace": "shop",
            "uid": f"i-{name}",
            "ownerReferences": [owner],
        }
        instance = {"metadata": meta, "spec": template["spec"], "status": {"phase": "Running", "nodeName": node}}
        self.put(msgspec.convert(instance, VirtualMachineInstance))
        rules = msgspec.convert({"affinity": template["spec"]["affinity"], "nodeName": node}, PodSpec)
        rules.containers = [Container(resources=ResourceRequirements(requests={"cpu": "100m", "memory": "1Gi"}))]
        pod_meta = ObjectMeta(
            name=f"virt-launcher-{name}",
            namespace="shop",
            uid=f"p-{name}",
            labels={**template["metadata"]["labels"], "kubevirt.io": "virt-launcher"},
            owner_references=[
                OwnerReference(kind="VirtualMachineInstance", name=name, uid=f"i-{name}", controller=True)
            ],
        )
        self.put(Pod(metadata=pod_meta, spec=rules, status=PodStatus(phase="Running")))

    def settle(self, key: Key) -> None:
        """Write the status that the controller wants."""
        outcome = self.look(key)
        body = getattr(getattr(outcome.actions[0], "patch", None), "body", {}) if outcome.actions else {}
        wukong = self.state.get(Wukong, key)
        assert wukong is not None
        if "status" in body:
            status = msgspec.convert(body["status"], WukongStatus)
            meta = msgspec.structs.replace(wukong.metadata)
            self.put(msgspec.structs.replace(wukong, metadata=meta, status=status))

    def look(self, key: Key) -> Outcome:
        self.now += 2.0
        return self.controller.reconcile(key, self.state, self.now)

    def time(self, change: Callable[[int], int]) -> float:
        """The median of many looks, each after a change. `change` returns how many actions are to come of it."""
        seconds = []
        for turn in range(WARM_UP + LOOKS):
            least = change(turn)
            began = time.process_time()
            outcome = self.look(self.key)
            seconds.append(time.process_time() - began)
            assert (len(outcome.actions) >= least) if least else not outcome.actions, outcome.actions[:1]
            self.settle(self.key)
        return statistics.median(seconds[WARM_UP:]) * 1e6

    def _machine(self) -> VirtualMachine:
        vm = self.state.get(VirtualMachine, Key("shop", f"{self.key.name}-1"))
        assert vm is not None
        return msgspec.structs.replace(vm, metadata=msgspec.structs.replace(vm.metadata))

    def touch_machine(self, turn: int) -> int:
        self.put(self._machine())
        return 0

    def turn_machine(self, turn: int) -> int:
        vm = self._machine()
        vm.status = msgspec.structs.replace(vm.status, ready=not vm.status.ready)
        self.put(vm)
        return 1

    def change_spec(self, turn: int) -> int:
        wukong = self.state.get(Wukong, self.key)
        assert wukong is not None
        meta = msgspec.structs.replace(wukong.metadata, generation=wukong.metadata.generation + 1)
        spec = msgspec.structs.replace(wukong.spec, cpu=turn + 2)
        self.put(msgspec.structs.replace(wukong, metadata=meta, spec=spec))
        return 1 + REPLICAS
