"""Which virtual machines can be migrated, as virt-handler decides it."""

import pytest

from testbed.client import Json
from testbed.kubevirt import migratability
from testbed.kubevirt.migratability import ALLOW_BRIDGE

POD_NETWORK = [{"name": "default", "pod": {}}]
CLAIM = {"name": "disk", "persistentVolumeClaim": {"claimName": "data"}}


def a_vmi(
    *, annotations: Json | None = None, modes: list[str] | None = None, devices: Json | None = None, **spec: object
) -> Json:
    info = {"persistentVolumeClaimInfo": {"accessModes": modes}} if modes else {}
    return {
        "metadata": {"annotations": annotations or {}},
        "spec": {"domain": {"devices": devices or {}}, **spec},
        "status": {"volumeStatus": [{"name": "disk", **info}]},
    }


def bound_by(binding: str) -> Json:
    return {"devices": {"interfaces": [{"name": "default", binding: {}}]}, "networks": POD_NETWORK}


CASES = {
    "no interface": (a_vmi(), ""),
    "masquerade": (a_vmi(**bound_by("masquerade")), ""),
    "bridge": (a_vmi(**bound_by("bridge")), "InterfaceNotLiveMigratable"),
    "bridge, allowed": (a_vmi(annotations={ALLOW_BRIDGE: ""}, **bound_by("bridge")), ""),
    "bridge to another network": (
        a_vmi(devices=bound_by("bridge")["devices"], networks=[{"name": "default", "multus": {"networkName": "lan"}}]),
        "",
    ),
    "a GPU": (a_vmi(devices={"gpus": [{"name": "one"}]}), "HostDeviceNotLiveMigratable"),
    "a host device": (a_vmi(devices={"hostDevices": [{"name": "one"}]}), "HostDeviceNotLiveMigratable"),
    "a shared claim": (a_vmi(modes=["ReadWriteMany"], volumes=[CLAIM]), ""),
    "a claim of one node": (a_vmi(modes=["ReadWriteOnce"], volumes=[CLAIM]), "DisksNotLiveMigratable"),
    "a claim nobody knows": (a_vmi(volumes=[CLAIM]), "DisksNotLiveMigratable"),
    "a disk of the host": (a_vmi(volumes=[{"name": "disk", "hostDisk": {"path": "/x"}}]), "DisksNotLiveMigratable"),
    "an image": (a_vmi(volumes=[{"name": "disk", "containerDisk": {"image": "x"}}]), ""),
}


@pytest.mark.parametrize("name", CASES)
def test_what_keeps_a_guest_on_its_node(name: str) -> None:
    vmi, reason = CASES[name]
    obstacle = migratability.find_obstacle(vmi)
    assert (obstacle.reason if obstacle else "") == reason


@pytest.mark.parametrize(
    ("volume", "disk", "modes", "is_copied"),
    [
        ({"name": "disk", "containerDisk": {"image": "x"}}, "disk", None, True),
        ({"name": "disk", "cloudInitNoCloud": {"userData": "x"}}, "cdrom", None, False),
        (CLAIM, "disk", ["ReadWriteMany"], False),
        (CLAIM, "disk", ["ReadWriteOnce"], True),
    ],
)
def test_disks_that_exist_on_the_node_alone_are_copied(
    volume: Json, disk: str, modes: list[str] | None, is_copied: bool
) -> None:
    vmi = a_vmi(volumes=[volume], devices={"disks": [{"name": "disk", disk: {}}]}, modes=modes)
    assert migratability.is_block_migration(vmi) is is_copied
