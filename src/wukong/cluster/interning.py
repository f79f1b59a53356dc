"""Keeps one copy of what many objects have alike, so that a snapshot of 150,000 pods fits into memory.

The pods of one workload differ in name, node and start, and in little else. Called for every object as it is read,
right after decoding. Afterwards objects share parts, so nobody may change them in place (admission.admit copies).
"""

from __future__ import annotations

from copy import copy
from sys import intern

import msgspec

from wukong.api.apps import ScaledWorkload
from wukong.api.core import Node, PersistentVolume, PersistentVolumeClaim, Pod, PodSpec, PodStatus, Volume
from wukong.api.meta import Object, ObjectMeta, OwnerReference
from wukong.api.storage import StorageClass
from wukong.placement.leaving_nodes import NOTICE, SHUTTING_DOWN
from wukong.placement.pod_annotations import MARK
from wukong.semantics.volume_claims import READ_ANNOTATIONS

_READ: dict[type[Object], tuple[str, ...]] = {  # annotations that placement reads
    Node: (NOTICE,),
    Pod: (MARK,),
    PersistentVolumeClaim: READ_ANNOTATIONS,
    PersistentVolume: READ_ANNOTATIONS,
    StorageClass: READ_ANNOTATIONS,
}
_encode = msgspec.msgpack.Encoder().encode


class Interner:
    def __init__(self) -> None:
        self._specs: dict[bytes, PodSpec] = {}
        self._statuses: dict[bytes, PodStatus] = {}
        self._heads: dict[bytes, tuple[dict[str, str], list[OwnerReference]]] = {}

    def intern_object(self, subject: Object) -> bool:
        """Drop what placement does not read and share equal parts. Return True if its spec or status is new.

        Raises OverflowError for an object with a number beyond 64 bits.
        """
        read = _READ.get(type(subject), ())
        annotations = subject.metadata.annotations
        subject.metadata.annotations = {key: intern(annotations[key]) for key in read if key in annotations}
        if isinstance(subject, Pod):
            return self._intern_pod(subject)
        if isinstance(subject, ScaledWorkload):
            subject.metadata.managed_fields = []
        if isinstance(subject, Node):
            for image in subject.status.images:
                image.names = [intern(name) for name in image.names]
            for condition in subject.status.conditions:
                condition.message = SHUTTING_DOWN if SHUTTING_DOWN in condition.message else ""
        _encode(subject)
        return True

    def _intern_pod(self, pod: Pod) -> bool:
        count_before = len(self._specs) + len(self._statuses)
        self._share_head(pod.metadata)
        pod.spec = self._share_spec(pod.spec)
        pod.status = self._share_status(pod.status)
        return len(self._specs) + len(self._statuses) > count_before

    def _share_head(self, meta: ObjectMeta) -> None:
        meta.namespace = intern(meta.namespace)
        meta.generate_name = intern(meta.generate_name)
        head = (meta.labels, meta.owner_references)
        meta.labels, meta.owner_references = self._heads.setdefault(_encode(head), head)

    def _share_spec(self, spec: PodSpec) -> PodSpec:
        node_name, spec.node_name = intern(spec.node_name), ""
        spec.volumes = [volume for volume in spec.volumes if _is_relevant(volume)]
        shared = copy(self._specs.setdefault(_encode(spec), spec))
        shared.node_name = node_name
        return shared

    def _share_status(self, status: PodStatus) -> PodStatus:
        start_time, status.start_time = status.start_time, None
        shared = self._statuses.setdefault(_encode(status), status)
        if start_time is None:
            return shared
        shared = copy(shared)
        shared.start_time = start_time
        return shared


def _is_relevant(volume: Volume) -> bool:
    """Tell whether placement reads the volume. Others hold only a name, often one per pod (kube-api-access-x7k2p)."""
    return volume != Volume(name=volume.name)
