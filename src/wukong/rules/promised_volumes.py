"""What the claims of a pod are promised once it has a node, before anybody has bound them (Reserve).

Called by cluster.py when a pod is added. A claim that is to be provisioned gets the node; a volume that is there gets
the claim. Other pods see both, as in kube-scheduler, until the pod is removed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from wukong.api.core import ClaimReference, Node, PersistentVolume, PersistentVolumeClaim, Pod
from wukong.rules import volume_binding
from wukong.rules.claims import SELECTED_NODE, list_claims

if TYPE_CHECKING:
    from wukong.rules.cluster import Cluster


class Promise(NamedTuple):
    """Claims and volumes as other pods see them from now on."""

    claims: dict[str, PersistentVolumeClaim]
    volumes: dict[str, PersistentVolume]


def promise_volumes(cluster: Cluster, pod: Pod, node: Node) -> Promise | None:
    """What this node has for the pod's unbound claims. None if there is nothing to give."""
    if not list_claims(pod) or volume_binding.find_problem(cluster, pod):
        return None
    found = volume_binding.find_pod_volumes(cluster, pod, node)
    promise = Promise({}, {})
    for claim, _ in found.provisions:
        annotations = {**claim.metadata.annotations, SELECTED_NODE: node.metadata.name}
        promise.claims[claim.key] = replace(claim, metadata=replace(claim.metadata, annotations=annotations))
    for claim, volume in found.bindings:
        meta = claim.metadata
        reference = ClaimReference(namespace=meta.namespace, name=meta.name, uid=meta.uid)
        promise.volumes[volume.metadata.name] = replace(volume, spec=replace(volume.spec, claim_ref=reference))
    return promise if promise.claims or promise.volumes else None
