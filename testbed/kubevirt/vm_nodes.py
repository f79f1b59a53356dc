"""Hollow Nodes that virt-launcher pods can run on: the labels and devices that virt-handler gives a Node.

virt-handler's heartbeat annotation is left off: virt-controller takes a Node with an old one for dead, and one without
for alive.
"""

from __future__ import annotations

from testbed import nodes
from testbed.client import Json

CPU_MODEL = "Skylake-Server"
LABELS = {
    "kubevirt.io/schedulable": "true",
    "machine-type.node.kubevirt.io/q35": "true",
    f"cpu-model.node.kubevirt.io/{CPU_MODEL}": "true",
    f"host-model-cpu.node.kubevirt.io/{CPU_MODEL}": "true",
    f"cpu-model-migration.node.kubevirt.io/{CPU_MODEL}": "true",
}
DEVICES = {f"devices.kubevirt.io/{device}": "1000" for device in ("kvm", "tun", "vhost-net")}


def a_vm_node(
    name: str,
    *,
    now: float,
    capacity: dict[str, str] | None = None,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    taints: list[Json] | None = None,
) -> Json:
    """As nodes.a_node makes it, with what KubeVirt asks for."""
    return nodes.a_node(
        name,
        now=now,
        capacity=DEVICES | (capacity or {}),
        labels=LABELS | (labels or {}),
        annotations=annotations,
        taints=taints,
    )
