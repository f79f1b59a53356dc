"""Whether a VirtualMachineInstance can be migrated, and why not: decided as virt-handler 1.7 does, in its words.

Followed here: pkg/virt-handler/vm.go (calculateLiveMigrationCondition, checkVolumesForMigration) and
pkg/network/vmispec/interface.go (VerifyVMIMigratable). Left out is what needs hardware: SEV, TDX, Secure Execution,
time stamp counters, persistent reservations. handler.py writes the result into the conditions.
"""

from __future__ import annotations

import msgspec

from testbed.client import Json

ALLOW_BRIDGE = "kubevirt.io/allow-pod-bridge-network-live-migration"
REQUIRES_SHARED = "live migration requires that all PVCs must be shared (using ReadWriteMany access mode)"


class Obstacle(msgspec.Struct, frozen=True):
    """The reason and message of the condition LiveMigratable where it is False."""

    reason: str
    message: str


def find_obstacle(vmi: Json) -> Obstacle | None:
    """What keeps this VirtualMachineInstance on its node. Volumes come last, as virt-handler has it."""
    return find_unmovable_hardware(vmi) or find_unshared_volume(vmi)


def find_unmovable_hardware(vmi: Json) -> Obstacle | None:
    """The part that also keeps its storage from being migrated."""
    domain, devices = vmi["spec"]["domain"], vmi["spec"]["domain"]["devices"]
    if not may_network_move(vmi):
        message = (
            f"cannot migrate VMI which does not use masquerade, bridge with {ALLOW_BRIDGE} VM annotation "
            "or a migratable plugin to connect to the pod network"
        )
        return Obstacle("InterfaceNotLiveMigratable", message)
    if devices.get("hostDevices") or devices.get("gpus"):
        return Obstacle("HostDeviceNotLiveMigratable", "VMI uses a PCI host devices")
    if domain.get("features", {}).get("hypervPassthrough", {}).get("enabled"):
        return Obstacle("HypervPassthroughNotLiveMigratable", "VMI uses hyperv passthrough")
    return None


def may_network_move(vmi: Json) -> bool:
    interfaces = vmi["spec"]["domain"]["devices"].get("interfaces", ())
    pod_network = next((network["name"] for network in vmi["spec"].get("networks", ()) if "pod" in network), None)
    interface = next((interface for interface in interfaces if interface["name"] == pod_network), None)
    if interface is None:
        return True
    is_bridge_allowed = ALLOW_BRIDGE in vmi["metadata"].get("annotations", {})
    return "masquerade" in interface or (is_bridge_allowed and "bridge" in interface)


def find_unshared_volume(vmi: Json) -> Obstacle | None:
    statuses = {status["name"]: status for status in vmi["status"].get("volumeStatus", ())}
    for volume in vmi["spec"].get("volumes", ()):
        claim = claim_of(volume)
        info = statuses.get(volume["name"], {}).get("persistentVolumeClaimInfo")
        if claim and info is None:
            message = f"cannot migrate VMI: Unable to determine if PVC {claim} is shared, {REQUIRES_SHARED}"
            return Obstacle("DisksNotLiveMigratable", message)
        if claim and "ReadWriteMany" not in info.get("accessModes", ()):
            message = f"cannot migrate VMI: PVC {claim} is not shared, {REQUIRES_SHARED}"
            return Obstacle("DisksNotLiveMigratable", message)
        if "hostDisk" in volume and not volume["hostDisk"].get("shared"):
            return Obstacle("DisksNotLiveMigratable", "cannot migrate VMI with non-shared HostDisk")
    return None


def claim_of(volume: Json) -> str | None:
    claim: Json = volume.get("persistentVolumeClaim", {})
    name: str | None = claim.get("claimName") or volume.get("dataVolume", {}).get("name")
    return name


def is_block_migration(vmi: Json) -> bool:
    """Whether disks are copied: some volume exists on the node alone and is no read-only CD."""
    disks = vmi["spec"]["domain"]["devices"].get("disks", ())
    read_only = {disk["name"] for disk in disks if "cdrom" in disk and disk["cdrom"].get("readonly", True)}
    shared = {"persistentVolumeClaim", "dataVolume", "hostDisk"}
    local = [volume["name"] for volume in vmi["spec"].get("volumes", ()) if not shared & volume.keys()]
    return any(name not in read_only for name in local)
