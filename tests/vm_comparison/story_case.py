"""Made-up cases of virtual machines that are to leave a node: nodes, machines with rules and strategies, one happening.

    a_case(7)        the same seed makes the same case

Machines are brought to their first node by cordoning the others, so that where they begin is no matter of chance.
"""

from __future__ import annotations

from random import Random
from typing import Literal, NamedTuple

from testbed.client import Json

HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
STRATEGIES = ("LiveMigrate", "LiveMigrateIfPossible", "None", "External", "")
Happening = Literal["evict", "drain", "taint", "migrate"]


class Machine(NamedTuple):
    name: str
    node: int  # where it begins
    strategy: str  # "" where nothing is said
    can_migrate: bool
    apart: str  # topology key of a required rule against its like; "" where there is none
    migration_fails: bool = False


class Case(NamedTuple):
    seed: int
    zones: list[str]  # of each node
    machines: list[Machine]
    happening: Happening
    target: int  # a machine (evict, migrate) or a node (drain, taint)

    def describe(self) -> str:
        subject = self.machines[self.target].name if self.happening in ("evict", "migrate") else f"n{self.target}"
        machines = ", ".join(
            f"{machine.name}@n{machine.node}({machine.strategy or 'unset'}"
            f"{'' if machine.can_migrate else ', bound'}{', apart by ' + machine.apart if machine.apart else ''})"
            for machine in self.machines
        )
        return f"{self.happening} {subject}; zones {' '.join(self.zones)}; {machines}"


def a_case(seed: int) -> Case:
    rng = Random(f"virtual machines leave {seed}")
    zones = [rng.choice("abc") for _ in range(rng.randint(2, 5))]
    apart = rng.choice(("", "", HOSTNAME, HOSTNAME, ZONE))
    places = _places(rng, zones, apart)
    happening: Happening = rng.choice(("evict", "evict", "drain", "drain", "drain", "taint", "migrate"))
    machines = [_a_machine(rng, f"v{index}", node, apart, happening) for index, node in enumerate(places)]
    on_machine = happening in ("evict", "migrate")
    target = rng.randrange(len(machines)) if on_machine else rng.choice(places)
    return Case(seed, zones, machines, happening, target)


def _places(rng: Random, zones: list[str], apart: str) -> list[int]:
    """The first node of each machine; one for each domain where they are to be apart."""
    nodes = list(range(len(zones)))
    if not apart:
        crowded = rng.choice(nodes)
        return [crowded if rng.random() < 0.6 else rng.choice(nodes) for _ in range(rng.randint(1, 5))]
    rng.shuffle(nodes)
    domains = {zones[node] if apart == ZONE else str(node): node for node in nodes}
    places = list(domains.values())
    return places[: rng.randint(1, len(places))]


def _a_machine(rng: Random, name: str, node: int, apart: str, happening: Happening) -> Machine:
    fails = happening == "migrate" and rng.random() < 0.3
    return Machine(name, node, rng.choice(STRATEGIES), rng.random() < 0.75, apart, fails)


def build_vm(machine: Machine) -> Json:
    """The VirtualMachine, for both clusters alike."""
    binding = "masquerade" if machine.can_migrate else "bridge"
    spec: Json = {
        "domain": {
            "memory": {"guest": "64Mi"},
            "devices": {
                "disks": [{"name": "root", "disk": {"bus": "virtio"}}],
                "interfaces": [{"name": "default", binding: {}}],
            },
        },
        "networks": [{"name": "default", "pod": {}}],
        "volumes": [{"name": "root", "containerDisk": {"image": "quay.io/containerdisks/fedora:41"}}],
    }
    if machine.strategy:
        spec["evictionStrategy"] = machine.strategy
    if machine.apart:
        term = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": machine.apart}
        spec["affinity"] = {"podAntiAffinity": {REQUIRED: [term]}}
    annotations = {"sim.novasphere.dev/migration-seconds": "1"}
    if machine.migration_fails:
        annotations["sim.novasphere.dev/migration-fails"] = "true"
    template = {"metadata": {"labels": {"app": "web"}, "annotations": annotations}, "spec": spec}
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {"name": machine.name},
        "spec": {"runStrategy": "Always", "template": template},
    }
