"""What binds a volume and a claim to each other, and what each of them says then. Pure; called by controller.py."""

from __future__ import annotations

from wukong.actions import Action, Patch
from wukong.api.core import PersistentVolume, PersistentVolumeClaim
from wukong.api.kinds import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
from wukong.api.resources import Key, key_of
from wukong.embedded.actors.pods import MANAGER
from wukong.ports import Document, PatchBody
from wukong.semantics.volume_claims import BIND_COMPLETED, BOUND_BY_CONTROLLER, is_reference_to


def bind(volume: PersistentVolume, claim: PersistentVolumeClaim) -> list[Action]:
    """What is still missing for the two to be bound: the volume's claim, its phase, the claim's volume, its phase."""
    actions: list[Action] = []
    reference = volume.spec.claim_ref
    if reference is None or not reference.uid or not is_reference_to(reference, claim):
        mark = {} if reference is not None else {"annotations": {BOUND_BY_CONTROLLER: "yes"}}
        actions.append(_patch_volume(volume, {"metadata": mark, "spec": {"claimRef": refer_to(claim)}}))
    if volume.status.phase != "Bound":
        actions.append(set_phase(volume, "Bound"))
    has_volume = bool(claim.spec.volume_name)
    if not has_volume or BIND_COMPLETED not in claim.metadata.annotations:
        marks = {BIND_COMPLETED: "yes"} if has_volume else {BIND_COMPLETED: "yes", BOUND_BY_CONTROLLER: "yes"}
        spec = {"volumeName": volume.metadata.name}
        actions.append(_patch_claim(claim, {"metadata": {"annotations": marks}, "spec": spec}))
    if claim.status.phase != "Bound":
        status = {"accessModes": volume.spec.access_modes, "capacity": dict(volume.spec.capacity), "phase": "Bound"}
        actions.append(_patch_claim(claim, {"status": status}, "status"))
    return actions


def refer_to(claim: PersistentVolumeClaim) -> Document:
    meta = claim.metadata
    head = {"apiVersion": "v1", "kind": PERSISTENT_VOLUME_CLAIMS.kind, "namespace": meta.namespace, "name": meta.name}
    return {**head, "uid": meta.uid, "resourceVersion": meta.resource_version}


def set_phase(volume: PersistentVolume, phase: str) -> Patch:
    body = {"status": {"phase": phase}}
    return Patch(PERSISTENT_VOLUMES, Key("", volume.metadata.name), PatchBody("merge", body, manager=MANAGER), "status")


def lose(claim: PersistentVolumeClaim) -> Patch:
    return _patch_claim(claim, {"status": {"phase": "Lost", "accessModes": None, "capacity": None}}, "status")


def annotate_claim(claim: PersistentVolumeClaim, annotations: dict[str, str | None]) -> Patch:
    return _patch_claim(claim, {"metadata": {"annotations": annotations}})


def _patch_volume(volume: PersistentVolume, body: Document) -> Patch:
    meta = {**body.get("metadata", {}), "uid": volume.metadata.uid}
    key = Key("", volume.metadata.name)
    return Patch(PERSISTENT_VOLUMES, key, PatchBody("merge", {**body, "metadata": meta}, manager=MANAGER))


def _patch_claim(claim: PersistentVolumeClaim, body: Document, subresource: str = "") -> Patch:
    meta = {**body.get("metadata", {}), "uid": claim.metadata.uid}
    patch = PatchBody("merge", {**body, "metadata": meta}, manager=MANAGER)
    return Patch(PERSISTENT_VOLUME_CLAIMS, key_of(claim), patch, subresource)
