"""What a pod asks of a scheduler that ours does not do. Such a pod is told so, and left alone until that has changed.

Called by controller.py for our own scheduler: one that only stands for kube-scheduler in an embedded cluster treats all
of this as satisfied. Attach limits of CSI drivers are not known here, and not asked for.
"""

from __future__ import annotations

from collections.abc import Iterator

from wukong.api.core import PersistentVolume, PersistentVolumeClaim, Pod, Volume
from wukong.api.resources import Key
from wukong.state import State

VOLUME_BINDING = "VolumeBinding"  # the plugin that would refuse such a pod: a change of claims or volumes may help
ONE_POD = "ReadWriteOncePod"
ZONE_LABELS = (
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
)


def find_unmodelled(pod: Pod, state: State) -> str:
    """Return the first thing that we do not model about this pod; "" if there is none."""
    return next(_list_unmodelled(pod, state), "")


def _list_unmodelled(pod: Pod, state: State) -> Iterator[str]:
    if pod.spec.resource_claims:
        yield "it has resource claims, and devices are not allocated here"
    for volume in pod.spec.volumes:
        yield from _list_volume_problems(pod, volume, state)


def _list_volume_problems(pod: Pod, volume: Volume, state: State) -> Iterator[str]:
    disks = {
        "gcePersistentDisk": volume.gce_persistent_disk,
        "awsElasticBlockStore": volume.aws_elastic_block_store,
        "rbd": volume.rbd,
        "iscsi": volume.iscsi,
    }
    for kind, source in disks.items():
        if source is not None:
            yield f"volume {volume.name} is a {kind}, and who else has that disk is not checked here"
    if volume.persistent_volume_claim is not None:
        yield from _list_claim_problems(Key(pod.metadata.namespace, volume.persistent_volume_claim.claim_name), state)
    if volume.ephemeral is not None:
        yield from _list_claim_problems(Key(pod.metadata.namespace, f"{pod.metadata.name}-{volume.name}"), state)


def _list_claim_problems(key: Key, state: State) -> Iterator[str]:
    claim = state.get(PersistentVolumeClaim, key)
    if claim is None or not claim.spec.volume_name:
        yield f"claim {key.name} is not bound to a volume yet, and volumes are not bound or provisioned here"
        return
    if ONE_POD in claim.spec.access_modes:
        yield f"claim {key.name} is {ONE_POD}, and who else has it is not checked here"
    volume = state.get(PersistentVolume, Key("", claim.spec.volume_name))
    if volume is None:
        yield f"volume {claim.spec.volume_name} of claim {key.name} is not there"
    elif volume.spec.node_affinity is None and any(label in volume.metadata.labels for label in ZONE_LABELS):
        yield f"volume {volume.metadata.name} is tied to a zone by its labels alone, and those are not read here"
