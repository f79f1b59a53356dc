"""What the tests of virtual machines share: a world with a scheduler, KubeVirt and some nodes, and manifests."""

from __future__ import annotations

from typing import Any

from embedded.actors.actor_world import NAMESPACE, add_node
from wukong.api.kinds import NAMESPACES, PODS, VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES
from wukong.api.resources import Key
from wukong.app.embedded import EmbeddedCluster, Settings, build_cluster
from wukong.embedded.scenario.play.steps import Drains
from wukong.embedded.store.documents import value_at
from wukong.embedded.world.world import World
from wukong.errors import NotFound
from wukong.ports import Document


def a_cluster(nodes: int = 3, *, seed: int = 0, takes_time: bool = True) -> EmbeddedCluster:
    cluster = build_cluster(Settings(seed, takes_time=takes_time), Drains())
    cluster.world.server.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
    for number in range(nodes):
        add_node(cluster.world, f"n{number}")
    cluster.world.run()
    return cluster


def a_machine_world(nodes: int = 3, *, seed: int = 0) -> World:
    return a_cluster(nodes, seed=seed).world


def a_machine(name: str = "web", *, strategy: str = "Always", memory: str = "1Gi", **spec: Any) -> Document:
    """A VirtualMachine that can migrate. `spec` is put over the spec of its template; None removes a field."""
    domain = {
        "cpu": {"cores": 2},
        "memory": {"guest": memory},
        "devices": {
            "disks": [{"name": "root", "disk": {"bus": "virtio"}}],
            "interfaces": [{"name": "default", "masquerade": {}}],
        },
    }
    template_spec = {
        "domain": domain,
        "networks": [{"name": "default", "pod": {}}],
        "volumes": [{"name": "root", "containerDisk": {"image": "registry/disk:1"}}],
        "evictionStrategy": "LiveMigrateIfPossible",
        **spec,
    }
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {field: value for field, value in template_spec.items() if value is not None},
    }
    return {"metadata": {"name": name}, "spec": {"runStrategy": strategy, "template": template}}


def add_machine(world: World, name: str = "web", *, annotations: dict[str, str] | None = None, **more: Any) -> None:
    machine = a_machine(name, **more)
    if annotations:
        machine["spec"]["template"]["metadata"]["annotations"] = annotations
    world.server.create(VIRTUAL_MACHINES, machine, NAMESPACE)


def run_machine(nodes: int = 3, *, seed: int = 0, **more: Any) -> World:
    """A world in which one machine has come up, as far as it can."""
    world = a_machine_world(nodes, seed=seed)
    add_machine(world, **more)
    world.run(seconds=5)
    return world


def machine_of(world: World, name: str = "web") -> Document:
    return world.server.get(VIRTUAL_MACHINES, Key(NAMESPACE, name))


def word_of(world: World, name: str = "web") -> str:
    return str(value_at(machine_of(world, name), "status.printableStatus"))


def instance_of(world: World, name: str = "web") -> Document | None:
    try:
        return world.server.get(VIRTUAL_MACHINE_INSTANCES, Key(NAMESPACE, name))
    except NotFound:
        return None


def phase_of(world: World, name: str = "web") -> str | None:
    instance = instance_of(world, name)
    return None if instance is None else str(value_at(instance, "status.phase"))


def node_of(world: World, name: str = "web") -> str:
    instance = instance_of(world, name)
    assert instance is not None
    return str(value_at(instance, "status.nodeName"))


def launchers_of(world: World, name: str = "web") -> list[Document]:
    """The virt-launcher pods of a machine, finished ones too."""
    pods = world.server.list(PODS).items
    return [pod for pod in pods if pod["metadata"]["labels"].get("vmi.kubevirt.io/id") == name]


def running_launchers_of(world: World, name: str = "web") -> list[Document]:
    return [pod for pod in launchers_of(world, name) if pod["status"]["phase"] == "Running"]


def condition_of(document: Document | None, kind: str) -> Document:
    conditions: list[Document] = value_at(document or {}, "status.conditions") or []
    return next((condition for condition in conditions if condition["type"] == kind), {})
