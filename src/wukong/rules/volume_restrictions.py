"""VolumeRestrictions: disks that one pod at a time may use, on a node or, by ReadWriteOncePod claims, in the cluster.

Called by filters.py, which tells it of pods that preemption takes away and puts back. From volumerestrictions in the
1.35 sources; its arithmetic of claims is followed where it is odd: pods that come and go during preemption are counted
by the names of their claims, whatever their namespace.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wukong.api.core import Pod, Volume
from wukong.api.versions import Version
from wukong.rules.verdict import Rejection, build_rejection

if TYPE_CHECKING:
    from wukong.rules.cluster import Cluster, NodeInfo

ONE_POD = "ReadWriteOncePod"
DISK_CONFLICT = "node(s) had no available disk"


def find_problem(cluster: Cluster, pod: Pod) -> str:
    """Its access modes cannot be read from a claim that is not there (PreFilter)."""
    for name in _claim_names_of(pod):
        if f"{pod.metadata.namespace}/{name}" not in cluster.claims:
            return f'persistentvolumeclaim "{name}" not found'
    return ""


class RestrictionsFilter:
    """How often the pod's ReadWriteOncePod claims are in use, as kube-scheduler counts."""

    def __init__(self, cluster: Cluster, pod: Pod, version: Version) -> None:
        self.pod, self.version = pod, version
        claims = {name: cluster.claims.get(f"{pod.metadata.namespace}/{name}") for name in _claim_names_of(pod)}
        self.exclusive = {name for name, claim in claims.items() if claim and ONE_POD in claim.spec.access_modes}
        placed = [placed_pod for info in cluster.nodes.values() for placed_pod in info.pods]
        used = {name for other in placed if _is_beside(other, pod) for name in _claim_names_of(other)}
        self.conflicts = len(self.exclusive & used)
        self.is_skipped = not self.conflicts and not any(map(_is_disk, pod.spec.volumes))

    def add_pod(self, placed_pod: Pod) -> None:
        self.conflicts += self._count(placed_pod)

    def remove_pod(self, placed_pod: Pod) -> None:
        self.conflicts -= self._count(placed_pod)

    def reject(self, info: NodeInfo) -> Rejection | None:
        if self.is_skipped:
            return None
        if any(_conflict(volume, placed_pod) for volume in self.pod.spec.volumes for placed_pod in info.pods):
            return build_rejection(DISK_CONFLICT)
        return build_rejection(self.version.one_pod_claim_reason) if self.conflicts > 0 else None

    def copy(self) -> RestrictionsFilter:
        copy = RestrictionsFilter.__new__(RestrictionsFilter)
        copy.pod, copy.version, copy.exclusive = self.pod, self.version, self.exclusive
        copy.conflicts, copy.is_skipped = self.conflicts, self.is_skipped
        return copy

    def _count(self, placed_pod: Pod) -> int:
        return sum(name in self.exclusive for name in _claim_names_of(placed_pod))


def _claim_names_of(pod: Pod) -> list[str]:
    """Those that the pod names; claims of ephemeral volumes are its own anyway."""
    return [volume.persistent_volume_claim.claim_name for volume in pod.spec.volumes if volume.persistent_volume_claim]


def _is_beside(other: Pod, pod: Pod) -> bool:
    return other.metadata.namespace == pod.metadata.namespace


def _is_disk(volume: Volume) -> bool:
    disks = (volume.gce_persistent_disk, volume.aws_elastic_block_store, volume.rbd, volume.iscsi)
    return any(disk is not None for disk in disks)


def _conflict(volume: Volume, placed_pod: Pod) -> bool:
    return any(_share_disk(volume, other) for other in placed_pod.spec.volumes)


def _share_disk(volume: Volume, other: Volume) -> bool:
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
    if rbd is None or other_rbd is None or (rbd.read_only and other_rbd.read_only):
        return False
    is_same_image = (rbd.pool, rbd.image) == (other_rbd.pool, other_rbd.image)
    return is_same_image and bool(set(rbd.monitors) & set(other_rbd.monitors))
