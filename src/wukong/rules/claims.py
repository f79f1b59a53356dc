"""Claims and volumes read plainly: which claims a pod has, whether they are bound, and which volume suits one.

Called by the volume filters of this package. From the 1.35 sources: component-helpers/storage/volume and
component-helpers/storage/ephemeral. Nothing here decides about a node by itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from wukong.api.core import Node, PersistentVolume, PersistentVolumeClaim, Pod, Volume
from wukong.api.quantity import parse_quantity
from wukong.rules.selectors import node_selector_selects, requirements, selects

CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
SELECTED_NODE = "volume.kubernetes.io/selected-node"


class PodClaim(NamedTuple):
    """A volume of a pod that needs a claim: the claim's name, and whether it is made for this pod alone."""

    name: str
    is_ephemeral: bool


def list_claims(pod: Pod) -> list[PodClaim]:
    found = [_claim_of(pod, volume) for volume in pod.spec.volumes]
    return [claim for claim in found if claim is not None]


def _claim_of(pod: Pod, volume: Volume) -> PodClaim | None:
    if volume.persistent_volume_claim is not None:
        return PodClaim(volume.persistent_volume_claim.claim_name, is_ephemeral=False)
    if volume.ephemeral is not None:
        return PodClaim(f"{pod.metadata.name}-{volume.name}", is_ephemeral=True)
    return None


def is_bound(claim: PersistentVolumeClaim) -> bool:
    """The phase is what a snapshot may have left of the annotation; the controller writes both."""
    has_mark = BIND_COMPLETED in claim.metadata.annotations or claim.status.phase == "Bound"
    return bool(claim.spec.volume_name) and has_mark


def class_of_claim(claim: PersistentVolumeClaim) -> str:
    annotated = claim.metadata.annotations.get(CLASS_ANNOTATION)
    return annotated if annotated is not None else claim.spec.storage_class_name or ""


def class_of_volume(volume: PersistentVolume) -> str:
    annotated = volume.metadata.annotations.get(CLASS_ANNOTATION)
    return annotated if annotated is not None else volume.spec.storage_class_name


def is_made_for(claim: PersistentVolumeClaim, pod: Pod) -> bool:
    owners = [owner for owner in claim.metadata.owner_references if owner.controller]
    return bool(owners) and owners[0].uid == pod.metadata.uid


def size_of_claim(claim: PersistentVolumeClaim) -> int:
    return parse_quantity(claim.spec.resources.requests.get("storage", 0))


def is_reachable(volume: PersistentVolume, node: Node) -> bool:
    """kube-scheduler shows the volume's terms only the node's labels, so fields in them are not looked at."""
    affinity = volume.spec.node_affinity
    if affinity is None or affinity.required is None:
        return True
    return node_selector_selects(affinity.required, node.metadata.labels, node_name="")


def is_for(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether the volume is bound to the claim, or kept for one of its name."""
    reference = volume.spec.claim_ref
    if reference is None or (reference.namespace, reference.name) != (claim.metadata.namespace, claim.metadata.name):
        return False
    return reference.uid in ("", claim.metadata.uid)


def find_volume(
    claim: PersistentVolumeClaim, volumes: Iterable[PersistentVolume], node: Node, taken: Collection[str]
) -> PersistentVolume | None:
    """The volume to bind on this node: the one kept for the claim, else the smallest that suits; by name if equal."""
    suitable = [
        volume
        for volume in sorted(volumes, key=lambda volume: volume.metadata.name)
        if volume.metadata.name not in taken and _may_suit(volume, claim)
    ]
    kept = [volume for volume in suitable if is_for(volume, claim)]
    if kept:
        return kept[0] if is_reachable(kept[0], node) else None
    matching = [volume for volume in suitable if _suits(volume, claim) and is_reachable(volume, node)]
    return min(matching, key=_size_of_volume) if matching else None


def _may_suit(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """What even a volume kept for the claim must fulfil."""
    return (
        class_of_volume(volume) == class_of_claim(claim)
        and (volume.spec.claim_ref is None or is_for(volume, claim))
        and _size_of_volume(volume) >= size_of_claim(claim)
        and (volume.spec.volume_mode or "Filesystem") == (claim.spec.volume_mode or "Filesystem")
        and (volume.spec.volume_attributes_class_name or "") == (claim.spec.volume_attributes_class_name or "")
        and volume.metadata.deletion_timestamp is None
    )


def _suits(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    selector = claim.spec.selector
    is_selected = selector is None or selects(requirements(selector), volume.metadata.labels)
    has_modes = set(claim.spec.access_modes) <= set(volume.spec.access_modes)
    return volume.status.phase == "Available" and is_selected and has_modes


def _size_of_volume(volume: PersistentVolume) -> int:
    return parse_quantity(volume.spec.capacity.get("storage", 0))
