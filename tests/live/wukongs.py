"""Wukongs on a control plane with KubeVirt, for tests that use `vm_component`: builders, and where their VMs run."""

from __future__ import annotations

from typing import Any

from testbed.client import Client, Json
from testbed.kubevirt.virtual_machines import VirtualMachines
from testbed.nodes import on_reserved

HOSTNAME, ZONE, RACK = "kubernetes.io/hostname", "topology.kubernetes.io/zone", "example.com/rack"


def wukong_path(namespace: str, name: str = "") -> str:
    return f"/apis/vm.novasphere.dev/v1alpha1/namespaces/{namespace}/wukongs" + (f"/{name}" if name else "")


def a_wukong(name: str, namespace: str, scheduling: Json | None = None, **spec: Any) -> Json:
    """A small one that may run on the nodes of its test alone."""
    return {
        "apiVersion": "vm.novasphere.dev/v1alpha1",
        "kind": "Wukong",
        "metadata": {"name": name},
        "spec": {
            "memory": "64Mi",
            "disks": [{"name": "root", "containerDisk": {"image": "quay.io/containerdisks/fedora:41"}}],
            "scheduling": {**on_reserved(namespace), **(scheduling or {})},
            **spec,
        },
    }


async def place(client: Client, namespace: str, wukong: Json, *names: str) -> list[Json]:
    """Apply it and return the nodes of its virtual machines once they run."""
    await client.create(wukong_path(namespace), wukong)
    vms = VirtualMachines(client, namespace)
    instances = [await vms.wait_until_running(name) for name in names or (wukong["metadata"]["name"],)]
    return [await client.get(f"/api/v1/nodes/{vmi['status']['nodeName']}") for vmi in instances]


def labels_of(node: Json, key: str) -> str:
    return str(node["metadata"]["labels"][key])


def condition_of(wukong: Json, kind: str) -> Json:
    """The condition of this type; empty while it is not there."""
    conditions = wukong.get("status", {}).get("conditions", [])
    return next((item for item in conditions if item["type"] == kind), {})
