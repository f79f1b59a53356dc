"""Whether an instance can migrate live: the condition LiveMigratable as virt-handler works it out. Pure.

Follows calculateLiveMigrationCondition of pkg/virt-handler/vm.go, KubeVirt 1.7, for what the spec and the claims tell.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from wukong.embedded.store.kubevirt.names import BRIDGE_MIGRATION_ANNOTATION
from wukong.ports import Document

AccessModesOf = Callable[[str], list[str] | None]  # of a claim by its name; None if nothing is known of it
_INTERFACE_MESSAGE = (
    f"cannot migrate VMI which does not use masquerade, bridge with {BRIDGE_MIGRATION_ANNOTATION} VM annotation or a "
    "migratable plugin to connect to the pod network"
)
_SHARED_NEEDED = "live migration requires that all PVCs must be shared (using ReadWriteMany access mode)"


class Obstacle(NamedTuple):
    """Why an instance cannot migrate."""

    reason: str
    message: str


def find_obstacle(spec: Document, annotations: dict[str, str], access_modes_of: AccessModesOf) -> Obstacle | None:
    """The first thing that keeps an instance from migrating; None if nothing does."""
    devices = (spec.get("domain") or {}).get("devices") or {}
    if not _are_interfaces_migratable(spec, devices, annotations):
        return Obstacle("InterfaceNotLiveMigratable", _INTERFACE_MESSAGE)
    if devices.get("hostDevices") or devices.get("gpus"):
        return Obstacle("HostDeviceNotLiveMigratable", "VMI uses a PCI host devices")
    security = (spec.get("domain") or {}).get("launchSecurity") or {}
    if "sev" in security or "snp" in security:
        return Obstacle("SEVNotLiveMigratable", "VMI uses SEV")
    if "tdx" in security:
        return Obstacle("TDXNotLiveMigratable", "VMI uses TDX")
    message = _find_volume_problem(spec, access_modes_of)
    return Obstacle("DisksNotLiveMigratable", message) if message else None


def _are_interfaces_migratable(spec: Document, devices: Document, annotations: dict[str, str]) -> bool:
    interfaces = {interface.get("name"): interface for interface in devices.get("interfaces") or ()}
    if not interfaces:
        return True
    pod_network = next((network for network in spec.get("networks") or () if "pod" in network), None)
    interface = interfaces.get(pod_network.get("name")) if pod_network is not None else None
    if interface is None:
        return True
    return "masquerade" in interface or ("bridge" in interface and BRIDGE_MIGRATION_ANNOTATION in annotations)


def _find_volume_problem(spec: Document, access_modes_of: AccessModesOf) -> str:
    for volume in spec.get("volumes") or ():
        claim = (volume.get("persistentVolumeClaim") or {}).get("claimName") or (volume.get("dataVolume") or {}).get(
            "name"
        )
        if claim:
            modes = access_modes_of(claim)
            if modes is None:
                return f"cannot migrate VMI: Unable to determine if PVC {claim} is shared, {_SHARED_NEEDED}"
            if "ReadWriteMany" not in modes:
                return f"cannot migrate VMI: PVC {claim} is not shared, {_SHARED_NEEDED}"
        elif "hostDisk" in volume and not volume["hostDisk"].get("shared"):
            return "cannot migrate VMI with non-shared HostDisk"
    return ""
