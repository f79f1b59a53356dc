"""The objects of the mirror in an embedded world: the structs of wukong.api with their statuses and whole documents.

The actors need what placement does not: statuses, and templates copied field by field whether we model the field or
not. Each struct is called after its kind and derives from the one of wukong.api, so that every controller which asks
the state for a Pod is given one. Read by `world`, used by the actors; never written back.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
from msgspec import field

from wukong.api import apps, core
from wukong.api.kinds import KINDS
from wukong.api.meta import Base, LabelSelector, Object
from wukong.api.resources import Resource
from wukong.ports import Document

O = TypeVar("O", bound=Object)  # noqa: E741
CONTROLLER_REVISIONS = Resource(kind="ControllerRevision", group="apps", plural="controllerrevisions")
JOBS = Resource(kind="Job", group="batch", plural="jobs")


class Counts(Base):
    """What the statuses of workloads say; each kind uses some of it."""

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
    status: Counts = field(default_factory=Counts)
    document: Document = {}


class Deployment(apps.Deployment):
    status: Counts = field(default_factory=Counts)
    document: Document = {}


class StatefulSet(apps.StatefulSet):
    status: Counts = field(default_factory=Counts)
    document: Document = {}


class DaemonSet(apps.DaemonSet):
    document: Document = {}


class PodDisruptionBudget(apps.PodDisruptionBudget):
    document: Document = {}


class Namespace(core.Namespace):
    document: Document = {}


class ControllerRevision(Object):
    data: Document = {}
    revision: int = 0
    document: Document = {}


class JobSpec(Base):
    parallelism: int | None = None
    completions: int | None = None
    backoff_limit: int | None = None
    selector: LabelSelector | None = None
    suspend: bool = False


class Job(Object):
    spec: JobSpec = field(default_factory=JobSpec)
    document: Document = {}


WHOLE: dict[str, type[Object]] = {
    struct.__name__: struct
    for struct in (
        *(Pod, Node, ReplicaSet, Deployment, StatefulSet, DaemonSet, PodDisruptionBudget, Namespace),
        *(ControllerRevision, Job),
    )
}

MORE_KINDS = {kind: struct for kind, struct in WHOLE.items() if kind not in KINDS}  # those wukong.api does not have


def read(kind: str, document: Document, struct: type[Object] | None = None, before: Object | None = None) -> Object:
    """The object as the mirror holds it. `struct` is for kinds that are neither here nor in wukong.api.

    `before` is what was read of it last: a spec that is the same in both documents is not read again.
    """
    chosen = WHOLE.get(kind) or struct or KINDS.get(kind, Object)
    if isinstance(before, Pod) and before.document.get("spec") is document.get("spec") and chosen is Pod:
        return _with_spec(document, before)
    try:
        found = msgspec.convert(document, chosen)
    except msgspec.ValidationError:
        found = msgspec.convert(without_nulls(document), chosen)  # only then pay for the slow way
    found.kind = kind
    if kind in WHOLE:
        found.document = document  # type: ignore[attr-defined]
    return found


def _with_spec(document: Document, before: Pod) -> Pod:
    rest = {name: value for name, value in document.items() if name != "spec"}
    try:
        found = msgspec.convert(rest, Pod)
    except msgspec.ValidationError:
        found = msgspec.convert(without_nulls(rest), Pod)
    found.kind, found.spec, found.document = "Pod", before.spec, document
    return found


def without_nulls(value: Any) -> Any:
    """Kubernetes reads null as an absent field."""
    if isinstance(value, dict):
        return {name: without_nulls(entry) for name, entry in value.items() if entry is not None}
    if isinstance(value, list):
        return [without_nulls(entry) for entry in value if entry is not None]
    return value


def template_of(workload: Object) -> Document:
    """The pod template of a workload, whole."""
    document: Document = getattr(workload, "document", {})
    template: Document = (document.get("spec") or {}).get("template") or {}
    return template
