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
from wukong.api.meta import Base, Object
from wukong.api.unreadable import Unreadable, read_document
from wukong.ports import Document


class WorkloadStatus(Base):
    """The fields that statuses of workloads have; each kind uses some of them."""

    observed_generation: int = 0
    replicas: int = 0
    fully_labeled_replicas: int = 0
    updated_replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    unavailable_replicas: int = 0
    terminating_replicas: int | None = None
    current_replicas: int = 0
    current_revision: str = ""
    update_revision: str = ""
    collision_count: int | None = None
    conditions: list[Document] = []


class Pod(core.Pod):
    document: Document = {}


class Node(core.Node):
    document: Document = {}


class ReplicaSet(apps.ReplicaSet):
    status: WorkloadStatus = field(default_factory=WorkloadStatus)
    document: Document = {}


class Deployment(apps.Deployment):
    status: WorkloadStatus = field(default_factory=WorkloadStatus)
    document: Document = {}


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
    pods: list[Object] = []
    known: dict[tuple[object, ...], Pod] = {}  # the values of a spec but for nodeName, by identity → a pod that has it
    for document in documents:
        spec: Document = document.get("spec") or {}
        rest = {**spec}
        rest.pop("nodeName", None)
        place = (*rest, *map(id, rest.values()))
        alike = known.get(place)
        if alike is None:
            pod = read(group_kind, document, struct)
            if isinstance(pod, Pod):
                known[place] = pod
        else:
            pod = _read_around_spec(document, alike, spec.get("nodeName") or "")
        pods.append(pod)
    return pods


def _read_around_spec(document: Document, before: Pod, node_name: str) -> Object:
    """Read everything but the spec, which is taken from a pod that has the same but for its node."""
    pod = read_document({name: value for name, value in document.items() if name != "spec"}, Pod)
    if not isinstance(pod, Unreadable):
        pod.kind, pod.document = "Pod", document
        pod.spec = msgspec.structs.replace(before.spec, node_name=node_name)
    return pod


def template_of(workload: Object) -> Document:
    """The pod template of a workload, whole."""
    document: Document = getattr(workload, "document", {})
    template: Document = (document.get("spec") or {}).get("template") or {}
    return template
