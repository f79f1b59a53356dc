"""What a virtual machine is made of: cpus and memory, disks with their volumes, interfaces with their networks. Pure.

KubeVirt pairs disks with volumes, and interfaces with networks, by name.
"""

from __future__ import annotations

from wukong.api.vm import Disk, Network, WukongSpec
from wukong.ports import Document

POD_NETWORK = Network(name="default")  # what a Wukong that names no network gets


def build_domain(spec: WukongSpec, networks: list[Network]) -> Document:
    devices: Document = {
        "disks": [{"name": disk.name, "disk": {"bus": disk.bus}} for disk in spec.disks],
        "interfaces": [build_interface(network) for network in networks],
        "gpus": [{"name": gpu.name, "deviceName": gpu.device_name} for gpu in spec.gpus],
    }
    return {
        "cpu": {"cores": spec.cpu},
        "memory": {"guest": str(spec.memory)},
        "devices": {name: entries for name, entries in devices.items() if entries},
    }


def build_volumes(spec: WukongSpec) -> list[Document]:
    """One volume per disk, of its first source. find_wukong_problems refuses disks with none or several."""
    return [{"name": disk.name, **next(iter(sources_of(disk)), {})} for disk in spec.disks]


def build_networks(networks: list[Network]) -> list[Document]:
    return [{"name": network.name, **_build_network_source(network)} for network in networks]


def build_interface(network: Network) -> Document:
    """Masquerade on the pod network: KubeVirt's default there, bridge, would keep the machine from migrating."""
    return {"name": network.name, **({"bridge": {}} if network.multus else {"masquerade": {}})}


def sources_of(disk: Disk) -> list[Document]:
    """The sources that a disk gives, as a volume has them; exactly one is right."""
    sources: list[Document] = []
    if disk.container_disk is not None:
        sources.append({"containerDisk": {"image": disk.container_disk.image}})
    if disk.data_volume is not None:
        sources.append({"dataVolume": {"name": disk.data_volume.name}})
    if disk.claim is not None:
        sources.append({"persistentVolumeClaim": {"claimName": disk.claim.claim_name}})
    if disk.cloud_init is not None:
        data = {"userData": disk.cloud_init.user_data, "networkData": disk.cloud_init.network_data}
        sources.append({"cloudInitNoCloud": {name: text for name, text in data.items() if text}})
    return sources


def _build_network_source(network: Network) -> Document:
    return {"multus": {"networkName": network.multus}} if network.multus else {"pod": {}}
