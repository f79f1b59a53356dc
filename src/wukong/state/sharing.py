"""Keeps one copy of what many mirrored objects have alike, and none of what nobody reads: 150,000 pods fit into 1 GiB.

The pods of one workload differ in name, node and times, and in little else; nodes hold the same images. Called by State
for every object that it takes in, right before anybody else sees it. Afterwards objects share parts, which is one more
reason never to change them in place. Objects that hold their documents (in the embedded cluster) stay as they are.

Of a pod are kept annotations of 1 KiB together, ours and Kubernetes' mark of static pods first: anybody may write
hundreds of kilobytes there. Of the conditions of a pod that is placed, times and texts are left out, but for the texts
that our scheduler writes; one that waits, or has been bound just now (RecentBindings reads when), keeps all of them.
How long the pod took to start is read from those times first.
Volumes of which placement reads nothing are left out; most have a name of their own in every pod.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from hashlib import blake2b
from sys import getrefcount, intern
from typing import Any, Generic, TypeVar

import msgspec

from wukong.api.core import ContainerImage, Node, Pod, PodCondition, PodSpec, PodStatus, Volume
from wukong.api.meta import Object, ObjectMeta, OwnerReference
from wukong.semantics.start_time import measure_pod_start

T = TypeVar("T")
_OURS = "novasphere.dev"
_TEXTS_READ = ("PodScheduled", "DisruptionTarget")  # the scheduler looks whether it would write the same
_STATIC_POD = "kubernetes.io/config.mirror"
_MOST_ANNOTATED = 1024  # characters
_FEWEST_CHECKED = 1024
_encode = msgspec.msgpack.Encoder().encode
_Head = tuple[dict[str, str], list[OwnerReference]]


class SharedParts(Generic[T]):
    """One value for all that are equal. Values that nobody uses any more are dropped now and then.

    `part_in_use` names the part of a value that objects refer to; it is used while somebody beside the value does.
    """

    def __init__(self, part_in_use: Callable[[T], object]) -> None:
        self._by_digest: dict[bytes, T] = {}
        self._part_in_use = part_in_use
        self._checked_at = _FEWEST_CHECKED

    def __len__(self) -> int:
        return len(self._by_digest)

    def share(self, value: T) -> T:
        """The value that is equal to this one. Raises OverflowError for numbers beyond 64 bits."""
        # A digest, for the encoded value would weigh as much as the value.
        digest = blake2b(_encode(value), digest_size=16).digest()
        shared = self._by_digest.get(digest)
        if shared is None:
            if len(self._by_digest) >= self._checked_at:
                self._drop_unused()
            shared = self._by_digest[digest] = value
        return shared

    def _drop_unused(self) -> None:
        # Two references to an unused part: its value's, and the argument of getrefcount.
        used = {digest: value for digest, value in self._by_digest.items() if getrefcount(self._part_in_use(value)) > 2}
        self._by_digest = used
        self._checked_at = max(_FEWEST_CHECKED, 2 * len(used))


class PartSharer:
    def __init__(self) -> None:
        self._annotations: SharedParts[tuple[dict[str, str]]] = SharedParts(lambda annotations: annotations[0])
        self._heads: SharedParts[_Head] = SharedParts(lambda head: head[0])
        self._specs: SharedParts[PodSpec] = SharedParts(lambda spec: spec.containers)
        self._statuses: SharedParts[PodStatus] = SharedParts(lambda status: status.conditions)
        self._images: SharedParts[ContainerImage] = SharedParts(lambda image: image.names)

    def share(self, subject: Object, before: Object | None) -> None:
        """Share what this object has in common with others, and with itself `before`. It gets other parts; the parts
        that it has, which others may have as well, stay as they are."""
        subject.metadata.namespace = intern(subject.metadata.namespace)
        if type(subject) is Pod:
            self._share_pod(subject, before if isinstance(before, Pod) else None)
        elif isinstance(subject, Pod):
            subject.spec.node_name = intern(subject.spec.node_name)
        elif type(subject) is Node:
            subject.status = copy(subject.status)
            subject.status.images = [self._images.share(image) for image in subject.status.images]

    def _share_pod(self, pod: Pod, before: Pod | None) -> None:
        pod.kind, pod.api_version = intern(pod.kind), intern(pod.api_version)
        pod.metadata, pod.spec, pod.status = copy(pod.metadata), copy(pod.spec), copy(pod.status)
        self._share_metadata(pod.metadata, None if before is None else before.metadata)
        pod.spec.volumes = [volume for volume in pod.spec.volumes if volume != Volume(name=volume.name)]
        was_waiting = before is not None and not before.spec.node_name
        pod.status = self._share_status(pod.status, is_whole=was_waiting or not pod.spec.node_name)
        if before is not None and pod.spec == before.spec:
            pod.spec = before.spec
        else:
            pod.spec = self._share_spec(pod.spec)

    def _share_metadata(self, meta: ObjectMeta, before: ObjectMeta | None) -> None:
        annotations = _reduce_annotations(meta.annotations)
        meta.annotations = self._annotations.share((annotations,))[0] if annotations else _NONE
        meta.finalizers = meta.finalizers or _EMPTY
        meta.generate_name = intern(meta.generate_name)
        if before is not None and before.uid == meta.uid:
            meta.uid, meta.name, meta.creation_timestamp = before.uid, before.name, before.creation_timestamp
            if meta.labels == before.labels and meta.owner_references == before.owner_references:
                meta.labels, meta.owner_references = before.labels, before.owner_references
                return
        head = (meta.labels, meta.owner_references)
        meta.labels, meta.owner_references = self._heads.share(head)

    def _share_spec(self, spec: PodSpec) -> PodSpec:
        node_name, spec.node_name = intern(spec.node_name), ""
        shared = copy(self._specs.share(spec))
        shared.node_name = node_name
        return shared

    def _share_status(self, status: PodStatus, *, is_whole: bool) -> PodStatus:
        start_time, start_seconds = status.start_time, status.start_seconds
        status.start_time = status.start_seconds = None
        if (seconds := measure_pod_start(status.conditions)) is not None:
            start_seconds = seconds
        if not is_whole:
            status.conditions = [_reduce_condition(condition) for condition in status.conditions]
        shared = copy(self._statuses.share(status))
        shared.start_time, shared.start_seconds = start_time, start_seconds
        return shared


_NONE: dict[str, Any] = {}
_EMPTY: list[Any] = []


def _reduce_annotations(annotations: dict[str, str]) -> dict[str, str]:
    """Those that we read, and others as long as all together are not too large."""
    size = sum(len(name) + len(value) for name, value in annotations.items())
    if size <= _MOST_ANNOTATED:
        return annotations
    kept: dict[str, str] = {}
    size = 0
    for name, value in sorted(annotations.items(), key=lambda entry: not _is_read(entry[0])):
        if size + len(name) + len(value) <= _MOST_ANNOTATED:
            size += len(name) + len(value)
            kept[name] = value
    return kept


def _is_read(annotation: str) -> bool:
    return annotation == _STATIC_POD or annotation.partition("/")[0].endswith(_OURS)


def _reduce_condition(condition: PodCondition) -> PodCondition:
    message = condition.message if condition.type in _TEXTS_READ else ""
    return PodCondition(type=condition.type, status=condition.status, reason=condition.reason, message=message)
