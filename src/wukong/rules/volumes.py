"""VolumeBinding, as far as it is modelled: a claim bound to a volume with node affinity ties the pod to its nodes.

Unbound claims, claims that are not in the snapshot and volumes that are not in the snapshot set no constraint.
"""

from __future__ import annotations

from wukong.api.core import Node, PersistentVolume, Pod
from wukong.rules.cluster import Cluster
from wukong.rules.selectors import node_selector_selects
from wukong.rules.verdict import Rejection, build_unresolvable

REASON = "node(s) didn't match PersistentVolume's node affinity"


def reject(cluster: Cluster, pod: Pod, node: Node) -> Rejection | None:
    reachable = all(_is_reachable(volume, node) for volume in bound_volumes(cluster, pod))
    return None if reachable else build_unresolvable(REASON)


def bound_volumes(cluster: Cluster, pod: Pod) -> list[PersistentVolume]:
    """The volumes behind the pod's bound claims."""
    names = [volume.persistent_volume_claim.claim_name for volume in pod.spec.volumes if volume.persistent_volume_claim]
    claims = [cluster.claims.get(f"{pod.metadata.namespace}/{name}") for name in names]
    volumes = [cluster.volumes.get(claim.spec.volume_name) for claim in claims if claim is not None]
    return [volume for volume in volumes if volume is not None]


def _is_reachable(volume: PersistentVolume, node: Node) -> bool:
    """kube-scheduler shows the volume's terms only the node's labels, so fields in them are not looked at."""
    affinity = volume.spec.node_affinity
    if affinity is None or affinity.required is None:
        return True
    return node_selector_selects(affinity.required, node.metadata.labels, node_name="")
