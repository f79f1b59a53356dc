"""The objects of the mirror in an embedded world: the structs of wukong.api with their statuses and whole documents.

The actors need what placement does not: statuses, and templates copied field by field whether we model the field or
not. Each struct is named after its kind and derives from the one of wukong.api, so that every controller which asks
the state for a Pod gets one. The world reads documents into them and the actors use them; they are never written back.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any, cast

import msgspec
from msgspec import field

from wukong.api import apps, batch, core, kubevirt
from wukong.api.kinds import KINDS
from wukong.api.meta import Object, ObjectMeta, OwnerReference
from wukong.api.unreadable import READ_ERRORS, Unreadable, read_document
from wukong.ports import Document


class WorkloadStatus(apps.ReplicaStatus):
    """The fields that statuses of workloads have; each kind uses some of them."""

    fully_labeled_replicas: int = 0
    ready_replicas: int = 0
    unavailable_replicas: int = 0
    terminating_replicas: int | None = None
    current_replicas: int = 0
    current_revision: str = ""
    collision_count: int | None = None
    conditions: list[Document] = []


class Pod(core.Pod):
    document: Document = {}


class Node(core.Node):
    document: Document = {}


def _read_managed_fields(workload: ReplicaSet | Deployment) -> list[apps.ManagedFieldsEntry]:
    """Worked out only when somebody asks: see store/ownership/managed_fields.py."""
    entries = workload.document.get("metadata", {}).get("managedFields")
    return msgspec.convert(list(entries or ()), list[apps.ManagedFieldsEntry])


class ReplicaSet(apps.ReplicaSet):
    metadata: ObjectMeta = field(default_factory=ObjectMeta)  # type: ignore[assignment]
    status: WorkloadStatus = field(default_factory=WorkloadStatus)
    document: Document = {}

    @property
    def managed_fields(self) -> list[apps.ManagedFieldsEntry]:
        return _read_managed_fields(self)


class Deployment(apps.Deployment):
    metadata: ObjectMeta = field(default_factory=ObjectMeta)  # type: ignore[assignment]
    status: WorkloadStatus = field(default_factory=WorkloadStatus)
    document: Document = {}

    @property
    def managed_fields(self) -> list[apps.ManagedFieldsEntry]:
        return _read_managed_fields(self)


class StatefulSet(apps.StatefulSet):
    status: WorkloadStatus = field(default_factory=WorkloadStatus)
    document: Document = {}


class DaemonSet(apps.DaemonSet):
    document: Document = {}


class PodDisruptionBudget(apps.PodDisruptionBudget):
    document: Document = {}


class Namespace(core.Namespace):
    document: Document = {}


class ControllerRevision(apps.ControllerRevision):
    document: Document = {}


class Job(batch.Job):
    document: Document = {}


class VirtualMachine(kubevirt.VirtualMachine):
    document: Document = {}


class VirtualMachineInstance(kubevirt.VirtualMachineInstance):
    document: Document = {}


class VirtualMachineInstanceMigration(kubevirt.VirtualMachineInstanceMigration):
    document: Document = {}


_WHOLE_STRUCTS = (
    *(Pod, Node, ReplicaSet, Deployment, StatefulSet, DaemonSet, PodDisruptionBudget, Namespace),
    *(ControllerRevision, Job),
    *(VirtualMachine, VirtualMachineInstance, VirtualMachineInstanceMigration),
)


@cache
def whole_struct_of(struct: type[Object]) -> type[Object]:
    """The struct that also holds the document of an object: one of those above, or a new one like them."""
    for whole in _WHOLE_STRUCTS:
        if issubclass(whole, struct) and whole.__name__ == struct.__name__:
            return whole
    fields: list[tuple[str, Any, Any]] = [("document", Document, {})]
    return cast(type[Object], msgspec.defstruct(struct.__name__, fields, bases=(struct,), rename="camel", kw_only=True))


def read(group_kind: str, document: Document, struct: type[Object] | None = None) -> Object:
    """Read a document into the object that the mirror holds, or an Unreadable.

    `struct` is for kinds the table of kinds does not have.
    """
    entry = KINDS.find(group_kind)
    target = whole_struct_of(entry.struct if entry is not None else struct or Object)
    subject = read_document(document, target)
    subject.kind = group_kind.partition(".")[0]
    if not isinstance(subject, Unreadable):
        subject.document = document  # type: ignore[attr-defined]
    return subject


def read_all(group_kind: str, documents: Iterable[Document], struct: type[Object] | None = None) -> list[Object]:
    """Read many documents of a kind. Pods whose specs share what they hold share what is read of them, too."""
    if group_kind != "Pod" or (struct is not None and not issubclass(Pod, struct)):
        return [read(group_kind, document, struct) for document in documents]
    reader = _PodReader()
    return [reader.read(document) for document in documents]


class _PodReader:
    """Reads many pods. What their documents share, as the very same objects, is read once, and shared by the pods."""

    def __init__(self) -> None:
        # what is read of a spec, values by their ids, but for what each pod may have of its own → a pod that has it
        self._by_spec: dict[tuple[object, ...], Pod] = {}
        # field and id of a value → the value, so that nothing else gets its id, and what was read of it
        self._values: dict[tuple[str, int], tuple[Any, Any]] = {}
        # fields and values of a status, lists by their ids → the same, so that nothing else gets these ids
        self._statuses: dict[tuple[object, ...], tuple[Document, core.PodStatus]] = {}

    def read(self, document: Document) -> Object:
        spec: Document = document.get("spec") or {}
        place = tuple([(name, id(spec[name])) for name in spec if name in _SPEC_FIELDS])
        alike = self._by_spec.get(place)
        if alike is not None:
            pod = self._read_like(alike, document, spec)
            if pod is not None:
                return pod
        subject = read("Pod", document)
        if isinstance(subject, Pod):
            self._by_spec[place] = subject
        return subject

    def _read_like(self, alike: Pod, document: Document, spec: Document) -> Pod | None:
        """Read a pod with the spec of another but for node and affinity; None if anything about it is unusual."""
        meta, status, version = document.get("metadata"), document.get("status", _EMPTY), document.get("apiVersion", "")
        node_name, affinity = spec.get("nodeName", ""), spec.get("affinity")
        are_usual = type(meta) is dict and type(status) is dict and type(version) is str and type(node_name) is str
        if not are_usual or type(document.get("kind", "")) is not str:
            return None
        assert meta is not None
        try:
            metadata, read_status = self._read_metadata(meta), self._read_status(status)
            read_affinity = None if affinity is None else self._read_value("affinity", affinity, core.Affinity)
        except READ_ERRORS:
            return None
        if not metadata.name:
            return None
        return Pod(
            kind="Pod",
            api_version=version,
            metadata=metadata,
            spec=msgspec.structs.replace(alike.spec, node_name=node_name, affinity=read_affinity),
            status=read_status,
            document=document,
        )

    def _read_metadata(self, document: Document) -> ObjectMeta:
        own = {name: value for name, value in document.items() if name not in _SHARED_METADATA}
        metadata = msgspec.convert(own, ObjectMeta)
        for name, (attribute, type_) in _SHARED_METADATA.items():
            if name in document:
                setattr(metadata, attribute, self._read_value(name, document[name], type_))
        return metadata

    def _read_value(self, name: str, value: Any, type_: Any) -> Any:
        place = (name, id(value))
        known = self._values.get(place)
        if known is None:
            known = self._values[place] = value, msgspec.convert(value, type_)
        return known[1]

    def _read_status(self, document: Document) -> core.PodStatus:
        place = (*document, *(value if type(value) is str else id(value) for value in document.values()))
        known = self._statuses.get(place)
        if known is None:
            known = self._statuses[place] = document, msgspec.convert(document, core.PodStatus)
        return known[1]


_EMPTY: Document = {}
_SPEC_FIELDS = frozenset(field.encode_name for field in msgspec.structs.fields(core.PodSpec)) - {"nodeName", "affinity"}
_SHARED_METADATA: dict[str, tuple[str, Any]] = {  # the attribute of each in ObjectMeta, and its type
    "labels": ("labels", dict[str, str]),
    "annotations": ("annotations", dict[str, str]),
    "ownerReferences": ("owner_references", list[OwnerReference]),
}


def template_of(workload: Object) -> Document:
    """The pod template of a workload, whole."""
    document: Document = getattr(workload, "document", {})
    template: Document = (document.get("spec") or {}).get("template") or {}
    return template
