"""NodeVolumeLimits: how many volumes of a CSI driver a node can have attached, by its CSINode.

Called by filters.py. From nodevolumelimits in the 1.35 sources. Volumes of in-tree plugins count for the driver that
they were migrated to (AWS, GCE, Azure and Cinder disks; Portworx' are left out). A volume that is still to be made is
counted by its claim.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wukong.api.core import (
    AwsElasticBlockStore,
    AzureDisk,
    CinderVolume,
    GcePersistentDisk,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
)
from wukong.api.storage import CSINode
from wukong.api.versions import Version
from wukong.rules.claims import class_of_claim, list_claims
from wukong.rules.verdict import Rejection, build_rejection

if TYPE_CHECKING:
    from wukong.rules.cluster import Cluster, NodeInfo

REASON = "node(s) exceed max volume count"
Attached = dict[str, str]  # driver/handle → driver

_DRIVER_OF_PLUGIN = {
    "kubernetes.io/aws-ebs": "ebs.csi.aws.com",
    "kubernetes.io/gce-pd": "pd.csi.storage.gke.io",
    "kubernetes.io/azure-disk": "disk.csi.azure.com",
    "kubernetes.io/cinder": "cinder.csi.openstack.org",
}
_NEVER_MIGRATED = {"kubernetes.io/vsphere-volume", "kubernetes.io/portworx-volume", "kubernetes.io/azure-file"}
_ZONE_LABELS = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")


def reject(cluster: Cluster, pod: Pod, info: NodeInfo, version: Version) -> Rejection | None:
    csi_node = cluster.csi_nodes.get(info.name)
    wanted = list_volumes(cluster, pod, csi_node)
    if version.missing_drivers_refuse:
        for driver in sorted(wanted.values()):  # in Go any of them
            if _is_missing(cluster, driver, csi_node):
                return build_rejection(f"{driver} CSI driver is not installed on the node")
    limits = _read_limits(csi_node)
    if not limits:
        return None
    used: Attached = {}
    for placed_pod in info.pods:
        used |= list_volumes(cluster, placed_pod, csi_node)
    # One that is attached and that no pod there uses is counted once more for the pod that wants it.
    added = {name: driver for name, driver in wanted.items() if name not in used}
    counted = [*(used | _list_attachments(cluster, info.name)).values(), *added.values()]
    is_exceeded = any(driver in limits and counted.count(driver) > limits[driver] for driver in added.values())
    return build_rejection(REASON) if is_exceeded else None


def list_volumes(cluster: Cluster, pod: Pod, csi_node: CSINode | None) -> Attached:
    volumes: Attached = {}
    for claim_name in list_claims(pod):
        claim = cluster.claims.get(f"{pod.metadata.namespace}/{claim_name.name}")
        if claim is not None:
            driver, handle = _find_driver(cluster, claim, csi_node)
            if driver and handle:
                volumes[f"{driver}/{handle}"] = driver
    for volume in pod.spec.volumes:
        disk = volume.aws_elastic_block_store or volume.gce_persistent_disk or volume.azure_disk or volume.cinder
        if disk is not None and csi_node is not None:
            driver, handle = _migrate(disk, "UNSPECIFIED")
            volumes[f"{driver}/{handle}"] = driver
    return volumes


def _find_driver(cluster: Cluster, claim: PersistentVolumeClaim, csi_node: CSINode | None) -> tuple[str, str]:
    volume = cluster.volumes.get(claim.spec.volume_name)
    if volume is None:
        return _find_driver_of_class(cluster, claim, csi_node)
    spec = volume.spec
    if spec.csi is not None:
        return spec.csi.driver, spec.csi.volume_handle
    disk = spec.aws_elastic_block_store or spec.gce_persistent_disk or spec.azure_disk or spec.cinder
    return ("", "") if disk is None or csi_node is None else _migrate(disk, _zone_of(volume))


def _find_driver_of_class(cluster: Cluster, claim: PersistentVolumeClaim, csi_node: CSINode | None) -> tuple[str, str]:
    storage_class = cluster.storage_classes.get(class_of_claim(claim))
    provisioner = storage_class.provisioner if storage_class is not None else ""
    if provisioner in _DRIVER_OF_PLUGIN:
        provisioner = _DRIVER_OF_PLUGIN[provisioner] if csi_node is not None else ""
    elif provisioner in _NEVER_MIGRATED:
        provisioner = ""
    return provisioner, f"claim-{claim.key}"


def _migrate(disk: AwsElasticBlockStore | GcePersistentDisk | AzureDisk | CinderVolume, zone: str) -> tuple[str, str]:
    if isinstance(disk, AwsElasticBlockStore):
        return "ebs.csi.aws.com", disk.volume_id.rpartition("/")[2]
    if isinstance(disk, GcePersistentDisk):
        return "pd.csi.storage.gke.io", f"projects/UNSPECIFIED/zones/{zone}/disks/{disk.pd_name}"
    if isinstance(disk, AzureDisk):
        return "disk.csi.azure.com", disk.disk_uri
    return "cinder.csi.openstack.org", disk.volume_id


def _zone_of(volume: PersistentVolume) -> str:
    zones = [volume.metadata.labels[label] for label in _ZONE_LABELS if label in volume.metadata.labels]
    return zones[0] if zones else "UNSPECIFIED"


def _list_attachments(cluster: Cluster, node: str) -> Attached:
    """What is attached to the node, whether a pod uses it or not."""
    attached: Attached = {}
    for attachment in cluster.volume_attachments:
        spec = attachment.spec
        volume = cluster.volumes.get(spec.source.persistent_volume_name or "")
        if spec.node_name == node and spec.attacher and volume is not None and volume.spec.csi is not None:
            attached[f"{spec.attacher}/{volume.spec.csi.volume_handle}"] = spec.attacher
    return attached


def _read_limits(csi_node: CSINode | None) -> dict[str, int]:
    drivers = csi_node.spec.drivers if csi_node is not None else []
    return {
        driver.name: driver.allocatable.count
        for driver in drivers
        if driver.allocatable is not None and driver.allocatable.count is not None
    }


def _is_missing(cluster: Cluster, name: str, csi_node: CSINode | None) -> bool:
    """Whether a driver that asks for it is not installed on the node."""
    driver = cluster.csi_drivers.get(name)
    if driver is None or not driver.spec.prevent_pod_scheduling_if_missing:
        return False
    return csi_node is None or all(entry.name != name for entry in csi_node.spec.drivers)
