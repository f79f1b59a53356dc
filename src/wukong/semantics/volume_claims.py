"""Claims and volumes: which claims a pod has, whether one is bound, which volume suits it, and how disks are named.

Used by the engine, the scheduler and the embedded cluster's volume controller. One object at a time; nothing is bound
here. As in component-helpers/storage of the 1.35 sources.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from wukong.api.core import (
    AwsElasticBlockStore,
    AzureDisk,
    CinderVolume,
    ClaimReference,
    GcePersistentDisk,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    Volume,
)
from wukong.api.meta import controller_of
from wukong.api.quantity import parse_quantity
from wukong.api.storage import WAIT_FOR_FIRST_CONSUMER, StorageClass
from wukong.semantics.selectors import compile_selector, selects

CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
CLAIM_PROTECTION = "kubernetes.io/pvc-protection"  # finalizers of what may be in use
VOLUME_PROTECTION = "kubernetes.io/pv-protection"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
STORAGE_PROVISIONER = "volume.kubernetes.io/storage-provisioner"
BETA_STORAGE_PROVISIONER = "volume.beta.kubernetes.io/storage-provisioner"
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
# What decisions and the volume controller read of annotations of claims, volumes and classes.
READ_ANNOTATIONS = (
    *(CLASS_ANNOTATION, BIND_COMPLETED, BOUND_BY_CONTROLLER, PROVISIONED_BY, SELECTED_NODE),
    *(STORAGE_PROVISIONER, DEFAULT_CLASS),
)
# In-tree plugin → the CSI driver that serves its volumes now, on every node that has a CSINode.
MIGRATED_PLUGINS = {
    "kubernetes.io/aws-ebs": "ebs.csi.aws.com",
    "kubernetes.io/gce-pd": "pd.csi.storage.gke.io",
    "kubernetes.io/azure-disk": "disk.csi.azure.com",
    "kubernetes.io/cinder": "cinder.csi.openstack.org",
}
UNCOUNTED_PLUGINS = frozenset(  # migratable, but not by what a scheduler counts
    {"kubernetes.io/vsphere-volume", "kubernetes.io/portworx-volume", "kubernetes.io/azure-file"}
)
_ZONES = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")
_UNSPECIFIED = "UNSPECIFIED"


class PodClaim(NamedTuple):
    """A volume of a pod that needs a claim: the claim's name, and whether it is made for this pod alone."""

    name: str
    is_ephemeral: bool


class CsiVolume(NamedTuple):
    """A volume as a CSI driver knows it."""

    driver: str
    handle: str


def find_claim(pod: Pod, volume: Volume) -> PodClaim | None:
    """The claim that a volume of a pod needs; None if it needs none."""
    if volume.persistent_volume_claim is not None:
        return PodClaim(volume.persistent_volume_claim.claim_name, is_ephemeral=False)
    if volume.ephemeral is not None:
        return PodClaim(f"{pod.metadata.name}-{volume.name}", is_ephemeral=True)
    return None


def list_claims(pod: Pod) -> list[PodClaim]:
    claims = (find_claim(pod, volume) for volume in pod.spec.volumes)
    return [claim for claim in claims if claim is not None]


def is_bound(claim: PersistentVolumeClaim) -> bool:
    """Whether it is bound for good. A snapshot may have lost the annotation; the phase comes with it."""
    has_mark = BIND_COMPLETED in claim.metadata.annotations or claim.status.phase == "Bound"
    return bool(claim.spec.volume_name) and has_mark


def class_of_claim(claim: PersistentVolumeClaim) -> str:
    annotated = claim.metadata.annotations.get(CLASS_ANNOTATION)
    return annotated if annotated is not None else claim.spec.storage_class_name or ""


def class_of_volume(volume: PersistentVolume) -> str:
    annotated = volume.metadata.annotations.get(CLASS_ANNOTATION)
    return annotated if annotated is not None else volume.spec.storage_class_name


def waits_for_consumer(storage_class: StorageClass | None) -> bool:
    """Whether claims of this class are bound once a pod that uses them has a node."""
    return storage_class is not None and storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER


def find_default_class(classes: Iterable[StorageClass]) -> StorageClass | None:
    """The class of claims that name none: of several defaults the newest, then the first by name."""
    defaults = [entry for entry in classes if entry.metadata.annotations.get(DEFAULT_CLASS) == "true"]
    by_name = sorted(defaults, key=lambda entry: entry.metadata.name)
    return max(by_name, key=lambda entry: entry.metadata.creation_timestamp or "", default=None)


def is_made_for(claim: PersistentVolumeClaim, pod: Pod) -> bool:
    """Whether the claim of an ephemeral volume is this pod's."""
    owner = controller_of(claim.metadata)
    return owner is not None and owner.uid == pod.metadata.uid


def size_of_claim(claim: PersistentVolumeClaim) -> int:
    """What it asks for, in billionths of bytes."""
    return parse_quantity(claim.spec.resources.requests.get("storage", 0))


def size_of_volume(volume: PersistentVolume) -> int:
    return parse_quantity(volume.spec.capacity.get("storage", 0))


def is_reference_to(reference: ClaimReference | None, claim: PersistentVolumeClaim) -> bool:
    """Whether a volume with this claimRef is bound to the claim, or kept for one of its name."""
    if reference is None or (reference.namespace, reference.name) != (claim.metadata.namespace, claim.metadata.name):
        return False
    return not reference.uid or reference.uid == claim.metadata.uid


def list_candidates(
    claim: PersistentVolumeClaim,
    volumes: Iterable[PersistentVolume],
    reference_of: Callable[[PersistentVolume], ClaimReference | None] = lambda volume: volume.spec.claim_ref,
    *,
    checks_modes: bool = True,
) -> tuple[PersistentVolume | None, list[PersistentVolume]]:
    """The volume kept for the claim, or else those of its class that suit it, the smallest first and then by name.

    Nodes are not looked at. The volume controller asks for access modes elsewhere.
    """
    selector = compile_selector(claim.spec.selector) if claim.spec.selector is not None else ()
    wanted_modes, wanted_size, wanted_class = set(claim.spec.access_modes), size_of_claim(claim), class_of_claim(claim)
    suitable: list[PersistentVolume] = []
    kept: list[PersistentVolume] = []
    for volume in volumes:
        spec, reference = volume.spec, reference_of(volume)
        is_kept = reference is not None and is_reference_to(reference, claim)
        if (reference is not None and not is_kept) or class_of_volume(volume) != wanted_class:
            continue
        if size_of_volume(volume) < wanted_size or volume.metadata.deletion_timestamp is not None:
            continue
        if (spec.volume_mode or "Filesystem") != (claim.spec.volume_mode or "Filesystem"):
            continue
        if (spec.volume_attributes_class_name or "") != (claim.spec.volume_attributes_class_name or ""):
            continue
        if is_kept:
            kept.append(volume)
            continue
        has_modes = not checks_modes or wanted_modes <= set(spec.access_modes)
        if has_modes and volume.status.phase == "Available" and selects(selector, volume.metadata.labels):
            suitable.append(volume)
    if kept:
        return min(kept, key=lambda volume: volume.metadata.name), []
    return None, sorted(suitable, key=lambda volume: (size_of_volume(volume), volume.metadata.name))


def find_csi_volume(volume: PersistentVolume, *, is_migrated: bool) -> CsiVolume | None:
    """The volume as its driver knows it. `is_migrated`: in-tree ones count for the driver that serves them now."""
    spec = volume.spec
    if spec.csi is not None:
        return CsiVolume(spec.csi.driver, spec.csi.volume_handle)
    disk = spec.aws_elastic_block_store or spec.gce_persistent_disk or spec.azure_disk or spec.cinder
    if disk is None or not is_migrated:
        return None
    zones = [volume.metadata.labels[label] for label in _ZONES if label in volume.metadata.labels]
    return _translate(disk, zones[0] if zones else _UNSPECIFIED)


def find_inline_csi_volume(volume: Volume) -> CsiVolume | None:
    """A disk that a pod names itself, as its driver knows it."""
    disk = volume.aws_elastic_block_store or volume.gce_persistent_disk or volume.azure_disk or volume.cinder
    return None if disk is None else _translate(disk, _UNSPECIFIED)


def _translate(disk: AwsElasticBlockStore | GcePersistentDisk | AzureDisk | CinderVolume, zone: str) -> CsiVolume:
    if isinstance(disk, AwsElasticBlockStore):
        return CsiVolume("ebs.csi.aws.com", disk.volume_id.rpartition("/")[2])
    if isinstance(disk, GcePersistentDisk):
        return CsiVolume("pd.csi.storage.gke.io", f"projects/{_UNSPECIFIED}/zones/{zone}/disks/{disk.pd_name}")
    if isinstance(disk, AzureDisk):
        return CsiVolume("disk.csi.azure.com", disk.disk_uri)
    return CsiVolume("cinder.csi.openstack.org", disk.volume_id)


def holds_exclusively(volumes: Collection[Volume]) -> bool:
    """Whether one of them is a disk that few pods of a node may share."""
    return any(
        volume.gce_persistent_disk or volume.aws_elastic_block_store or volume.rbd or volume.iscsi for volume in volumes
    )


def share_disk(volume: Volume, other: Volume) -> bool:
    """Whether two pods of one node may not have these volumes: the same disk, not read-only in both."""
    gce, other_gce = volume.gce_persistent_disk, other.gce_persistent_disk
    if gce and other_gce and gce.pd_name == other_gce.pd_name and not (gce.read_only and other_gce.read_only):
        return True
    aws, other_aws = volume.aws_elastic_block_store, other.aws_elastic_block_store
    if aws and other_aws and aws.volume_id == other_aws.volume_id:
        return True
    iscsi, other_iscsi = volume.iscsi, other.iscsi
    if iscsi and other_iscsi and iscsi.iqn == other_iscsi.iqn and not (iscsi.read_only and other_iscsi.read_only):
        return True
    rbd, other_rbd = volume.rbd, other.rbd
    if not rbd or not other_rbd or (rbd.read_only and other_rbd.read_only):
        return False
    is_same_image = (rbd.pool, rbd.image) == (other_rbd.pool, other_rbd.image)
    return is_same_image and not set(rbd.monitors).isdisjoint(other_rbd.monitors)
