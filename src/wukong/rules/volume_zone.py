"""VolumeZone: a bound volume that carries zone or region labels goes only to nodes with the same.

Called by filters.py and decide.py. Looks at claims that the pod names, never at those of ephemeral volumes. From
volumezone in the 1.35 sources.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wukong.api.core import Node, Pod
from wukong.api.storage import WAIT_FOR_FIRST_CONSUMER
from wukong.rules.claims import class_of_claim
from wukong.rules.verdict import Rejection, build_unresolvable

if TYPE_CHECKING:
    from wukong.rules.cluster import Cluster

REASON = "node(s) had no available volume zone"
_ZONE, _REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
_GA_LABELS = {
    "failure-domain.beta.kubernetes.io/zone": _ZONE,
    "failure-domain.beta.kubernetes.io/region": _REGION,
    _ZONE: _ZONE,
    _REGION: _REGION,
}
_DELIMITER = "__"  # between the zones of a volume that is in several


def find_problem(cluster: Cluster, pod: Pod) -> str:
    """A claim without its volume, or a volume that is not there (PreFilter)."""
    for name in _claim_names_of(pod):
        claim = cluster.claims.get(f"{pod.metadata.namespace}/{name}")
        if claim is None:
            return f'persistentvolumeclaim "{name}" not found'
        volume = claim.spec.volume_name
        if not volume and not class_of_claim(claim):
            return "PersistentVolumeClaim had no pv name and storageClass name"
        if not volume:
            storage_class = cluster.storage_classes.get(class_of_claim(claim))
            if storage_class is None:
                return f'storageclass.storage.k8s.io "{class_of_claim(claim)}" not found'
            if storage_class.volume_binding_mode != WAIT_FOR_FIRST_CONSUMER:
                return "PersistentVolume had no name"
        elif volume not in cluster.volumes:
            return f'persistentvolume "{volume}" not found'
    return ""


def reject(cluster: Cluster, pod: Pod, node: Node) -> Rejection | None:
    labels = node.metadata.labels
    if not any(label in labels for label in _GA_LABELS):
        return None  # a cluster of one zone may have no such labels at all
    for key, zones in _list_zones(cluster, pod):
        if labels.get(key, labels.get(_GA_LABELS[key])) not in zones:
            return build_unresolvable(REASON)
    return None


def _list_zones(cluster: Cluster, pod: Pod) -> list[tuple[str, set[str]]]:
    """Label and values of every volume. A label with an empty part is written wrongly, and not looked at."""
    claims = [cluster.claims.get(f"{pod.metadata.namespace}/{name}") for name in _claim_names_of(pod)]
    volumes = [cluster.volumes.get(claim.spec.volume_name) for claim in claims if claim is not None]
    labels = [
        (key, {zone.strip() for zone in volume.metadata.labels[key].split(_DELIMITER)})
        for volume in volumes
        if volume is not None
        for key in _GA_LABELS
        if key in volume.metadata.labels
    ]
    return [(key, zones) for key, zones in labels if "" not in zones]


def _claim_names_of(pod: Pod) -> list[str]:
    return [volume.persistent_volume_claim.claim_name for volume in pod.spec.volumes if volume.persistent_volume_claim]
