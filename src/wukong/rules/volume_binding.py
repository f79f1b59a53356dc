"""VolumeBinding: where the volumes of a pod's claims are, or could be bound or made.

Called by filters.py and decide.py, and by cluster.py, which remembers what a placed pod's claims were promised. Nothing
is bound here. Every refusal is final: taking pods off a node brings no volume. From volumebinding in the 1.35 sources.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from wukong.api.core import Node, PersistentVolume, PersistentVolumeClaim, Pod
from wukong.api.quantity import parse_quantity, units
from wukong.api.storage import NO_PROVISIONER, WAIT_FOR_FIRST_CONSUMER, CSIStorageCapacity, StorageClass
from wukong.rules.claims import (
    SELECTED_NODE,
    class_of_claim,
    find_volume,
    is_bound,
    is_made_for,
    is_reachable,
    list_claims,
    size_of_claim,
)
from wukong.rules.selectors import requirements, selects
from wukong.rules.verdict import Rejection

if TYPE_CHECKING:
    from wukong.rules.cluster import Cluster

UNBOUND = "pod has unbound immediate PersistentVolumeClaims"
NODE_CONFLICT = "node(s) didn't match PersistentVolume's node affinity"
BIND_CONFLICT = "node(s) didn't find available persistent volumes to bind"
NOT_ENOUGH_SPACE = "node(s) did not have enough free storage"
NO_VOLUME = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
_FULL = 100


class Binding(NamedTuple):
    claim: PersistentVolumeClaim
    volume: PersistentVolume


class Provision(NamedTuple):
    claim: PersistentVolumeClaim
    capacity: CSIStorageCapacity | None  # None: nobody says how much there is


class PodVolumes(NamedTuple):
    """What one node could give the pod's claims, and why it could not."""

    reasons: tuple[str, ...] = ()
    bindings: tuple[Binding, ...] = ()
    provisions: tuple[Provision, ...] = ()


def find_problem(cluster: Cluster, pod: Pod) -> str:
    """Why the pod goes nowhere, whatever the node (PreFilter); "" if it may go somewhere."""
    for name, is_ephemeral in list_claims(pod):
        claim = cluster.claims.get(f"{pod.metadata.namespace}/{name}")
        if claim is None and is_ephemeral:
            return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
        if claim is None:
            return f'persistentvolumeclaim "{name}" not found'
        if claim.status.phase == "Lost":
            volume = claim.spec.volume_name
            return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{volume}"'
        if claim.metadata.deletion_timestamp is not None:
            return f'persistentvolumeclaim "{name}" is being deleted'
        if is_ephemeral and not is_made_for(claim, pod):
            return f"PVC {claim.key} was not created for pod {pod.key} (pod is not owner)"
    unbound = [claim for claim in _claims_of(cluster, pod) if not is_bound(claim)]
    return "" if all(_waits_for_consumer(cluster, claim) for claim in unbound) else UNBOUND


def reject(cluster: Cluster, pod: Pod, node: Node) -> Rejection | None:
    reasons = find_pod_volumes(cluster, pod, node).reasons
    return Rejection(reasons, unresolvable=True) if reasons else None


def find_pod_volumes(cluster: Cluster, pod: Pod, node: Node) -> PodVolumes:
    claims = _claims_of(cluster, pod)
    bound_reason = _check_bound(cluster, [claim for claim in claims if is_bound(claim)], node)
    unbound = [claim for claim in claims if not is_bound(claim)]
    selected = [claim for claim in unbound if SELECTED_NODE in claim.metadata.annotations]
    if any(claim.metadata.annotations[SELECTED_NODE] != node.metadata.name for claim in selected):
        return PodVolumes(_sort_reasons(bound_reason, BIND_CONFLICT))
    bindings: list[Binding] = []
    missing: list[PersistentVolumeClaim] = []
    for claim in sorted((claim for claim in unbound if claim not in selected), key=size_of_claim):
        taken = {binding.volume.metadata.name for binding in bindings}
        volume = find_volume(claim, cluster.volumes.values(), node, taken)
        if volume is None:
            missing.append(claim)
        else:
            bindings.append(Binding(claim, volume))
    provisions: list[Provision] = []
    for claim in (*selected, *missing):
        storage_class = cluster.storage_classes.get(class_of_claim(claim))
        if storage_class is None:
            return PodVolumes(_sort_reasons(bound_reason, BIND_CONFLICT))
        if storage_class.provisioner in ("", NO_PROVISIONER) or not _allows_topology(storage_class, node):
            return PodVolumes(_sort_reasons(bound_reason, BIND_CONFLICT))
        is_enough, capacity = _find_capacity(cluster, claim, storage_class, node)
        if not is_enough:
            return PodVolumes(_sort_reasons(bound_reason, NOT_ENOUGH_SPACE))
        provisions.append(Provision(claim, capacity))
    return PodVolumes(_sort_reasons(bound_reason), tuple(bindings), tuple(provisions))


def score(cluster: Cluster, pod: Pod, node: Node) -> int:
    """How little of the storage at hand the claims would use: 100 for nothing of it. 0 where nobody can say."""
    _, bindings, provisions = find_pod_volumes(cluster, pod, node)
    requested: dict[str, int] = {}
    offered: dict[str, int] = {}
    for claim, volume in bindings:
        name = volume.spec.storage_class_name
        requested[name] = requested.get(name, 0) + units(size_of_claim(claim))
        offered[name] = offered.get(name, 0) + units(parse_quantity(volume.spec.capacity.get("storage", 0)))
    for claim, capacity in () if bindings else provisions:
        if capacity is not None:
            name = class_of_claim(claim)
            requested[name] = requested.get(name, 0) + units(size_of_claim(claim))
            offered[name] = units(parse_quantity(capacity.capacity or 0))
    points = [_score_use(requested[name], offered[name]) for name in offered]
    return (2 * sum(points) + len(points)) // (2 * len(points)) if points else 0


def _score_use(requested: int, offered: int) -> int:
    return _FULL - (_FULL if offered == 0 or requested > offered else requested * _FULL // offered)


def _claims_of(cluster: Cluster, pod: Pod) -> list[PersistentVolumeClaim]:
    names = [f"{pod.metadata.namespace}/{claim.name}" for claim in list_claims(pod)]
    return [cluster.claims[name] for name in names if name in cluster.claims]


def _waits_for_consumer(cluster: Cluster, claim: PersistentVolumeClaim) -> bool:
    """A claim that names its volume already is to be bound without the scheduler, whatever its class says."""
    storage_class = cluster.storage_classes.get(class_of_claim(claim))
    waits = storage_class is not None and storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
    return waits and not claim.spec.volume_name


def _check_bound(cluster: Cluster, claims: list[PersistentVolumeClaim], node: Node) -> str:
    """The first claim that does not suit decides."""
    for claim in claims:
        volume = cluster.volumes.get(claim.spec.volume_name)
        if volume is None:
            return NO_VOLUME
        if not is_reachable(volume, node):
            return NODE_CONFLICT
    return ""


def _sort_reasons(*reasons: str) -> tuple[str, ...]:
    order = (NODE_CONFLICT, BIND_CONFLICT, NOT_ENOUGH_SPACE, NO_VOLUME)
    return tuple(reason for reason in order if reason in reasons)


def _allows_topology(storage_class: StorageClass, node: Node) -> bool:
    """One of the terms must hold; a term without expressions never does."""
    if not storage_class.allowed_topologies:
        return True
    labels = node.metadata.labels
    return any(
        term.match_label_expressions
        and all(labels.get(entry.key) in entry.values for entry in term.match_label_expressions)
        for term in storage_class.allowed_topologies
    )


def _find_capacity(
    cluster: Cluster, claim: PersistentVolumeClaim, storage_class: StorageClass, node: Node
) -> tuple[bool, CSIStorageCapacity | None]:
    """Only drivers that ask for it are looked at: whether one place that the node reaches holds a volume as large."""
    driver = cluster.csi_drivers.get(storage_class.provisioner)
    if "storage" not in claim.spec.resources.requests or driver is None or not driver.spec.storage_capacity:
        return True, None
    wanted = units(size_of_claim(claim))
    for capacity in cluster.csi_storage_capacities:
        limit = capacity.capacity if capacity.maximum_volume_size is None else capacity.maximum_volume_size
        is_enough = limit is not None and units(parse_quantity(limit)) >= wanted
        is_of_class = capacity.storage_class_name == storage_class.metadata.name
        if is_of_class and is_enough and selects(requirements(capacity.node_topology), node.metadata.labels):
            return True, capacity
    return False, None
