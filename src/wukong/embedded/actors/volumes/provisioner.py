"""An external provisioner: makes the volumes that claims ask a driver for, and deletes those that were let go.

As csi-provisioner with a driver that knows zones: a claim whose pod has a node gets a volume in that node's zone, or
on the node where that has no zone; one that is bound at once gets a volume where its class allows. It takes a second
or so, drawn by the seed. Every driver that a class names counts as installed, and storage as endless: what a driver
says is left (CSIStorageCapacity) is not reduced.
"""

from __future__ import annotations

from collections.abc import Iterable

from wukong.actions import DONE, Create, Delete, Outcome
from wukong.api.core import Node, PersistentVolume, PersistentVolumeClaim
from wukong.api.kinds import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
from wukong.api.meta import Object
from wukong.api.resources import Key, key_of
from wukong.api.storage import StorageClass
from wukong.embedded.actors.volumes.binding import annotate_claim, refer_to
from wukong.embedded.world.clock import Chance
from wukong.ports import Document
from wukong.semantics.volume_claims import (
    PROVISIONED_BY,
    SELECTED_NODE,
    STORAGE_PROVISIONER,
    class_of_claim,
    is_bound,
)
from wukong.state import State
from wukong.state.controller import Watch, each_side

ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
LEAST_SECONDS, MOST_SECONDS = 0.2, 1.5


def _keys_of_claim(subject: Object, _: State) -> Iterable[Key]:
    assert isinstance(subject, PersistentVolumeClaim)
    return (key_of(subject),) if STORAGE_PROVISIONER in subject.metadata.annotations else ()


def _keys_of_volume(subject: Object, _: State) -> Iterable[Key]:
    assert isinstance(subject, PersistentVolume)
    return (Key("", subject.metadata.name),) if PROVISIONED_BY in subject.metadata.annotations else ()


class Provisioner:
    name = "provisioner"
    watches = (
        Watch(PERSISTENT_VOLUME_CLAIMS, each_side(_keys_of_claim)),
        Watch(PERSISTENT_VOLUMES, each_side(_keys_of_volume)),
    )

    def __init__(self, chance: Chance) -> None:
        self._chance = chance
        self._ready_at: dict[str, float] = {}  # uid of a claim → when its volume is made

    def copy_memory(self, source: Provisioner, _: State) -> None:
        self._ready_at = dict(source._ready_at)

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        if not key.namespace:
            return _delete_released(key, state)
        claim = state.get(PersistentVolumeClaim, key)
        if claim is None or is_bound(claim) or claim.spec.volume_name or not _is_asked(claim):
            if claim is not None:
                self._ready_at.pop(claim.metadata.uid, None)
            return DONE
        uid = claim.metadata.uid
        if state.get(PersistentVolume, Key("", f"pvc-{uid}")) is not None:
            return DONE
        seconds = LEAST_SECONDS + (MOST_SECONDS - LEAST_SECONDS) * self._chance.share(uid)
        ready_at = self._ready_at.setdefault(uid, round(now + seconds, 3))
        if now < ready_at:
            return Outcome(requeue_after=ready_at - now)
        node_name = claim.metadata.annotations.get(SELECTED_NODE)
        node = state.get(Node, Key("", node_name)) if node_name else None
        if node_name and node is None:  # it went: the scheduler has to choose again
            return Outcome((annotate_claim(claim, {SELECTED_NODE: None}),))
        storage_class = state.get(StorageClass, Key("", class_of_claim(claim)))
        if storage_class is None:
            return DONE
        return Outcome((Create(PERSISTENT_VOLUMES, _build_volume(claim, storage_class, node)),))


def _is_asked(claim: PersistentVolumeClaim) -> bool:
    return STORAGE_PROVISIONER in claim.metadata.annotations and claim.metadata.deletion_timestamp is None


def _delete_released(key: Key, state: State) -> Outcome:
    volume = state.get(PersistentVolume, key)
    if volume is None or volume.status.phase != "Released" or volume.metadata.deletion_timestamp is not None:
        return DONE
    if volume.spec.persistent_volume_reclaim_policy != "Delete":
        return DONE
    return Outcome((Delete(PERSISTENT_VOLUMES, key, uid=volume.metadata.uid),))


def _build_volume(claim: PersistentVolumeClaim, storage_class: StorageClass, node: Node | None) -> Document:
    name, driver = f"pvc-{claim.metadata.uid}", claim.metadata.annotations[STORAGE_PROVISIONER]
    spec: Document = {
        "capacity": {"storage": claim.spec.resources.requests.get("storage", "0")},
        "accessModes": claim.spec.access_modes,
        "volumeMode": claim.spec.volume_mode or "Filesystem",
        "storageClassName": class_of_claim(claim),
        "persistentVolumeReclaimPolicy": storage_class.reclaim_policy or "Delete",
        "csi": {"driver": driver, "volumeHandle": name},
        "claimRef": refer_to(claim),
    }
    if terms := _build_terms(storage_class, node):
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    return {"metadata": {"name": name, "annotations": {PROVISIONED_BY: driver}}, "spec": spec}


def _build_terms(storage_class: StorageClass, node: Node | None) -> list[Document]:
    if node is not None:
        labels = node.metadata.labels
        key = ZONE if ZONE in labels else HOSTNAME
        return [_build_term({key: [labels[key]]})] if key in labels else []
    return [
        _build_term({entry.key: entry.values for entry in term.match_label_expressions})
        for term in storage_class.allowed_topologies
    ]


def _build_term(values: dict[str, list[str]]) -> Document:
    return {"matchExpressions": [{"key": key, "operator": "In", "values": [*entry]} for key, entry in values.items()]}
