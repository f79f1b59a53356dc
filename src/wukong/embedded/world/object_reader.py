"""Reads the documents of a history into objects, each part once: what two documents share is read once for both.

A write shares what it does not touch with what was stored before, as the very same objects, and pods made alike share
their spec. So do the objects read from them here; they are never changed in place. Used by the world.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from wukong.api.core import PodSpec
from wukong.api.meta import Object, ObjectMeta
from wukong.embedded.world import objects
from wukong.embedded.world.objects import Pod
from wukong.ports import Document

_MAX_SPECS = 1024
# What the store itself writes into the metadata of an object that nobody edits.
_WRITTEN_BY_STORE = frozenset(
    {"resourceVersion", "generation", "managedFields", "deletionTimestamp", "deletionGracePeriodSeconds"}
)


class ObjectReader:
    def __init__(self) -> None:
        self._specs: dict[int, tuple[Document, PodSpec]] = {}  # by the id of the spec's document, which is kept with it
        self._latest: ObjectMeta | None = None  # of the pod that was read last

    def read(
        self, group_kind: str, document: Document, struct: type[Object] | None = None, before: Object | None = None
    ) -> Object:
        """Return what `objects.read` returns. `before` is the same object as it was read last, if it was."""
        if before is not None and before.metadata.uid == document["metadata"].get("uid"):
            subject = _read_changes(document, before)
            if subject is not None:
                return subject
        elif group_kind == "Pod":
            pod = self._read_new_pod(document)
            self._share_head(pod.metadata)
            return pod
        return objects.read(group_kind, document, struct)

    def _read_new_pod(self, document: Document) -> Object:
        spec = document.get("spec")
        known = self._specs.get(id(spec))
        if known is None:
            pod = objects.read("Pod", document)
            if spec is not None and isinstance(pod, Pod):
                if len(self._specs) >= _MAX_SPECS:
                    self._specs.clear()
                self._specs[id(spec)] = spec, pod.spec
            return pod
        pod = objects.read("Pod", {name: part for name, part in document.items() if name != "spec"})
        if isinstance(pod, Pod):
            pod.spec, pod.document = known[1], document
        return pod

    def _share_head(self, meta: ObjectMeta) -> None:
        """Share labels and owners with the pod before: pods come by the dozen, and are looked at once."""
        latest = self._latest
        if latest is None or meta.labels != latest.labels or meta.owner_references != latest.owner_references:
            self._latest = meta
        else:
            meta.labels, meta.owner_references = latest.labels, latest.owner_references


class _Part(NamedTuple):
    """A part of a document, such as its status, and the field of the struct that holds it."""

    name: str
    field: str
    type: Any


@cache
def _parts_of(struct: type[Object]) -> tuple[_Part, ...]:
    own = ("kind", "api_version", "metadata", "document")
    fields = msgspec.structs.fields(struct)
    return tuple(_Part(field.encode_name, field.name, field.type) for field in fields if field.name not in own)


def _read_changes(document: Document, before: Object) -> Object | None:
    """Read what differs from the version before, and share the rest; None if it has to be read as a whole."""
    known: Document = before.document  # type: ignore[attr-defined]
    subject = replace(before)
    try:
        subject.metadata = _read_metadata(document["metadata"], known["metadata"], before.metadata)
        for name, field, type_ in _parts_of(type(before)):
            part, known_part = document.get(name), known.get(name)
            if part is known_part:
                continue
            if part is None:
                return None
            bound = _bind_spec(part, known_part, getattr(before, field)) if type_ is PodSpec else None
            setattr(subject, field, msgspec.convert(part, type_) if bound is None else bound)
    except msgspec.ValidationError:
        return None
    subject.document = document  # type: ignore[attr-defined]
    return subject


def _read_metadata(document: Document, known: Document, before: ObjectMeta) -> ObjectMeta:
    if document is known:
        return before
    if not known.keys() <= document.keys():
        return msgspec.convert(document, ObjectMeta)
    for name, value in document.items():
        if name not in _WRITTEN_BY_STORE and value is not known.get(name):
            return msgspec.convert(document, ObjectMeta)
    meta = replace(before)
    meta.resource_version = document["resourceVersion"]
    meta.generation = document.get("generation", 0)
    meta.deletion_timestamp = document.get("deletionTimestamp")
    return meta


def _bind_spec(document: Document, known: Document | None, before: PodSpec) -> PodSpec | None:
    """Read the spec of a pod that has been bound: only its node is new. None if it differs in more than that."""
    if known is None or "nodeName" in known or "nodeName" not in document or len(document) != len(known) + 1:
        return None
    for name, value in known.items():
        if document.get(name) is not value:
            return None
    spec = replace(before)
    spec.node_name = document["nodeName"]
    return spec
