"""Which placed pods have volumes, and what their claims were promised: a part of the snapshot, kept by it.

A claim that waits for a first consumer is promised a volume that is there, or the node to make one on, once its pod is
placed; until it is bound other pods see that, as in kube-scheduler (Reserve). Read by the volume plugins, and by the
scheduler, which writes the promises down (PreBind). Pods without volumes never get here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from wukong.api.core import ClaimReference, PersistentVolume, PersistentVolumeClaim, Pod
from wukong.api.quantity import parse_quantity, units
from wukong.api.resources import Key, key_of
from wukong.api.storage import NO_PROVISIONER, CSIStorageCapacity, StorageClass
from wukong.engine.copy_on_write import CopyOnWriteDicts
from wukong.engine.pod_claims import read_pod_claims
from wukong.engine.template import Template
from wukong.engine.volume_facts import VolumeFacts
from wukong.semantics.node_selectors import accepts_node, compile_node_selector
from wukong.semantics.volume_claims import (
    SELECTED_NODE,
    class_of_claim,
    list_candidates,
    list_claims,
    size_of_claim,
)

Labels = Mapping[str, str]


class Promise(NamedTuple):
    """What the claims of one placed pod get: volume that is there → claim, and the claims to provision on its node.

    A claim that the pod names twice gets two volumes, as in kube-scheduler.
    """

    node: str
    bindings: dict[str, Key]
    provisions: tuple[Key, ...]


class VolumeUse:
    def __init__(self) -> None:
        self.pods: CopyOnWriteDicts[int, str, Template] = CopyOnWriteDicts()  # node → its pods with volumes
        self.claim_users: dict[Key, int] = {}  # claims that placed pods name → how often
        self.promises: dict[str, Promise] = {}  # by pod
        self.nodes: dict[Key, str] = {}  # claims to be provisioned → the node they were promised
        self.references: dict[str, ClaimReference] = {}  # volumes → the claim they were promised to
        self.is_trial = False  # pods go and come back: what they were promised stays theirs, as in kube-scheduler
        self.version = 0  # of all that concerns more than one node
        self.log: list[int] = []  # rows whose pods with volumes changed; plugins read it from where they stopped

    def add(self, key: str, template: Template, row: int, node: str, labels: Labels, facts: VolumeFacts) -> None:
        self.pods.own(row)[key] = template
        self._count_claims(template, 1)
        promise = None if self.is_trial else promise_volumes(facts, self, template.pod, node, labels)
        if promise is not None:
            self.promises[key] = promise
            self.nodes.update(dict.fromkeys(promise.provisions, node))
            for volume, claim_key in promise.bindings.items():
                uid = facts.claims[claim_key].metadata.uid
                self.references[volume] = ClaimReference(namespace=claim_key.namespace, name=claim_key.name, uid=uid)
            self.version += 1
        self.log.append(row)

    def remove(self, key: str, template: Template, row: int) -> None:
        del self.pods.own(row)[key]
        self.pods.drop_if_empty(row)
        self._count_claims(template, -1)
        if not self.is_trial and self.promises.pop(key, None) is not None:
            kept = [*self.promises.values()]  # pods that share a claim were promised the same
            kept_volumes = {volume for other in kept for volume in other.bindings}
            self.nodes = {claim: other.node for other in kept for claim in other.provisions}
            self.references = {name: claim for name, claim in self.references.items() if name in kept_volumes}
            self.version += 1
        self.log.append(row)

    def move(self, new_of: list[int]) -> None:
        self.pods = CopyOnWriteDicts({new_of[row]: pods for row, pods in self.pods.items()})

    def fork(self) -> VolumeUse:
        copy = VolumeUse()
        copy.pods, copy.claim_users = self.pods.fork(), dict(self.claim_users)
        copy.promises, copy.nodes, copy.references = dict(self.promises), dict(self.nodes), dict(self.references)
        return copy

    def _count_claims(self, template: Template, change: int) -> None:
        for claim in list_claims(template.pod):
            if not claim.is_ephemeral:
                key = Key(template.namespace, claim.name)
                count = self.claim_users[key] = self.claim_users.get(key, 0) + change
                self.version += count == (1 if change > 0 else 0)
                if not count:
                    del self.claim_users[key]

    def find_selected_node(self, claim: PersistentVolumeClaim) -> str | None:
        """The node that a claim is to be provisioned on: written on it, or promised."""
        selected = claim.metadata.annotations.get(SELECTED_NODE)
        return self.nodes.get(key_of(claim)) if selected is None else selected

    def find_reference(self, volume: PersistentVolume) -> ClaimReference | None:
        """The claim that a volume is bound to, or promised to."""
        return volume.spec.claim_ref or self.references.get(volume.metadata.name)


def promise_volumes(facts: VolumeFacts, use: VolumeUse, pod: Pod, node: str, labels: Labels) -> Promise | None:
    """What the pod's unbound claims get on this node. None if there is nothing to promise, or nothing would suit."""
    claims = read_pod_claims(facts, pod).unbound
    if not claims:
        return None
    bindings: dict[str, Key] = {}
    provisions = [claim for claim in claims if use.find_selected_node(claim) is not None]
    if any(use.find_selected_node(claim) != node for claim in provisions):
        return None
    for claim in sorted((claim for claim in claims if use.find_selected_node(claim) is None), key=size_of_claim):
        volume = _find_volume(facts, use, claim, labels, frozenset(bindings))
        if volume is None:
            provisions.append(claim)
        else:
            bindings[volume.metadata.name] = key_of(claim)
    classes = [facts.find_class(class_of_claim(claim)) for claim in provisions]
    if any(entry is None or entry.provisioner in ("", NO_PROVISIONER) for entry in classes):
        return None
    return Promise(node, bindings, tuple(key_of(claim) for claim in provisions))


def _find_volume(
    facts: VolumeFacts, use: VolumeUse, claim: PersistentVolumeClaim, labels: Labels, taken: frozenset[str]
) -> PersistentVolume | None:
    volumes = facts.volumes_by_class.get(class_of_claim(claim), [])
    free = (volume for volume in volumes if volume.metadata.name not in taken)
    kept, suitable = list_candidates(claim, free, use.find_reference)
    candidates = suitable if kept is None else [kept]
    return next((volume for volume in candidates if _is_reachable(volume, labels)), None)


def _is_reachable(volume: PersistentVolume, labels: Labels) -> bool:
    required = volume.spec.node_affinity.required if volume.spec.node_affinity else None
    return required is None or accepts_node(compile_node_selector(required), dict(labels), "")


def list_capacities(
    facts: VolumeFacts, claim: PersistentVolumeClaim, storage_class: StorageClass
) -> list[CSIStorageCapacity] | None:
    """The places with room for a volume of this size. None: the driver does not say how much there is."""
    driver = facts.drivers.get(Key("", storage_class.provisioner))
    if driver is None or not driver.spec.storage_capacity or "storage" not in claim.spec.resources.requests:
        return None
    wanted = units(size_of_claim(claim))
    name = storage_class.metadata.name
    return [
        capacity
        for capacity in facts.sorted_capacities
        if capacity.storage_class_name == name and _find_limit(capacity) >= wanted
    ]


def _find_limit(capacity: CSIStorageCapacity) -> int:
    """How large a volume may be, in bytes; -1 if nobody says."""
    limit = capacity.capacity if capacity.maximum_volume_size is None else capacity.maximum_volume_size
    return -1 if limit is None else units(parse_quantity(limit))
