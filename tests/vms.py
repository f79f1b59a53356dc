"""Builders for virtual machines: a Wukong, and what KubeVirt makes of it, as the mirror shows them."""

from __future__ import annotations

from typing import Any

import msgspec

from wukong.api.core import Pod, PodCondition, PodStatus
from wukong.api.kubevirt import VirtualMachine, VirtualMachineInstance, VirtualMachineInstanceMigration
from wukong.api.meta import ObjectMeta, OwnerReference
from wukong.api.times import format_time
from wukong.api.vm import Wukong
from wukong.ports import Document

NOW = 1_800_000_000.0  # 2027-01-15T08:00:00Z
LONG_AGO = format_time(NOW - 3600)
DISKS = [{"name": "root", "containerDisk": {"image": "fedora:42"}}]


def a_wukong(name: str = "web", *, generation: int = 1, status: Document | None = None, **spec: Any) -> Wukong:
    """One in namespace shop with a disk; fields are written as in YAML."""
    meta = {"name": name, "namespace": "shop", "uid": f"uid-{name}", "resourceVersion": "7", "generation": generation}
    document = {"metadata": meta, "spec": {"disks": DISKS, **spec}, "status": status or {}}
    return msgspec.convert(document, Wukong)


def a_vm(
    document: Document, *, status: Document | None = None, version: str = "1", generation: int = 1, **meta: Any
) -> VirtualMachine:
    """What the API server has after this document was applied."""
    name = document["metadata"]["name"]
    metadata = {
        **document["metadata"],
        "uid": f"vm-{name}",
        "resourceVersion": version,
        "generation": generation,
        "creationTimestamp": LONG_AGO,
        **meta,
    }
    return msgspec.convert({**document, "metadata": metadata, "status": status or {}}, VirtualMachine)


def running(**more: Any) -> Document:
    return {"printableStatus": "Running", "ready": True, "created": True, **more}


def an_instance(
    vm: VirtualMachine,
    node: str = "",
    *,
    created_at: str = LONG_AGO,
    conditions: list[Document] | None = None,
    **meta: Any,
) -> VirtualMachineInstance:
    """The instance of a VirtualMachine, as it was when the VirtualMachine was as it is."""
    template = vm.spec["template"]
    metadata = {
        "name": vm.metadata.name,
        "namespace": vm.metadata.namespace,
        "uid": f"vmi-{vm.metadata.name}",
        "resourceVersion": "1",
        "creationTimestamp": created_at,
        "labels": {**template["metadata"].get("labels", {}), "kubevirt.io/nodeName": node},
        "ownerReferences": [
            {"kind": "VirtualMachine", "name": vm.metadata.name, "uid": vm.metadata.uid, "controller": True}
        ],
        **meta,
    }
    status = {"phase": "Running" if node else "Scheduling", "nodeName": node, "conditions": conditions or []}
    return msgspec.convert({"metadata": metadata, "spec": template["spec"], "status": status}, VirtualMachineInstance)


def migratable(status: str = "True") -> list[Document]:
    return [{"type": "LiveMigratable", "status": status}]


def a_launcher(
    instance: VirtualMachineInstance,
    node: str = "",
    *,
    refusal: str = "",
    created_at: str = LONG_AGO,
    suffix: str = "a",
    priority: int = 0,
) -> Pod:
    """The virt-launcher pod of an instance. `refusal` is what the scheduler said of it."""
    scheduled = [PodCondition(type="PodScheduled", status="True")] if node else []
    if refusal:
        scheduled = [PodCondition(type="PodScheduled", status="False", reason="Unschedulable", message=refusal)]
    rules = ("affinity", "nodeSelector", "tolerations")
    spec: Document = {name: instance.spec[name] for name in rules if name in instance.spec}
    containers = [{"name": "compute", "resources": {"requests": {"cpu": "100m", "memory": "780Mi"}}}]
    name = f"virt-launcher-{instance.metadata.name}-{suffix}"
    spec |= {"containers": containers, "nodeName": node, "priority": priority}
    pod = msgspec.convert({"spec": spec}, Pod)
    pod.spec.scheduler_name = instance.spec.get("schedulerName", "default-scheduler")
    owner = OwnerReference(
        kind="VirtualMachineInstance", name=instance.metadata.name, uid=instance.metadata.uid, controller=True
    )
    pod.metadata = ObjectMeta(
        name=name,
        namespace=instance.metadata.namespace,
        uid=f"pod-{name}",
        resource_version="1",
        labels={**instance.metadata.labels, "kubevirt.io": "virt-launcher"},
        owner_references=[owner],
        creation_timestamp=created_at,
    )
    pod.status = PodStatus(phase="Running" if node else "Pending", conditions=scheduled)
    return pod


def a_migration(
    instance: VirtualMachineInstance, name: str = "move", phase: str = "Running"
) -> VirtualMachineInstanceMigration:
    meta = {"name": name, "namespace": instance.metadata.namespace, "uid": f"vmim-{name}", "resourceVersion": "1"}
    document = {"metadata": meta, "spec": {"vmiName": instance.metadata.name}, "status": {"phase": phase}}
    return msgspec.convert(document, VirtualMachineInstanceMigration)
