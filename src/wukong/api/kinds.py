"""The one table of kinds: everything that differs from kind to kind, in one entry per group and kind.

    KINDS.find("Deployment.apps")        an entry, or None
    KINDS.of_struct(Deployment)          the entry whose objects this struct reads
    PODS, DEPLOYMENTS, …                 the Resource of an entry, for whoever speaks to a cluster

Whoever needs a list of kinds (what a snapshot holds, what the embedded cluster serves, what is read into structs) makes
it from this table; nobody else lists kinds. A new kind is one more entry, here or, for a kind of somebody else's, by
`KINDS.add`. Reading files is not done here (see wukong.cluster.files).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec

from wukong.api.apps import ControllerRevision, DaemonSet, Deployment, PodDisruptionBudget, ReplicaSet, StatefulSet
from wukong.api.batch import Job
from wukong.api.core import (
    Namespace,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PriorityClass,
    ReplicationController,
    Service,
)
from wukong.api.meta import Object
from wukong.api.placement import GROUP, VERSION, ClusterPlacementPolicy, PlacementPolicy
from wukong.api.resources import Resource, group_kind, group_of, plural_of
from wukong.api.usage import USAGE_GROUP, NodeUsage

# Whose kind it is. "kubernetes": every cluster has it. "ours": where our CRD is installed. "foreign": where somebody
# else's CRD is installed. "internal": no API server has it; what comes from outside the cluster is held in such kinds.
Origin = Literal["kubernetes", "ours", "foreign", "internal"]
MergeKeys = Mapping[
    str, tuple[str, ...]
]  # a field, or parent.field → the keys by which the items of its list are merged


class SnapshotFields(msgspec.Struct, frozen=True):
    """What a snapshot keeps of an object: the fields of its struct, and these paths ([] goes through a list)."""

    more: tuple[str, ...] = ()
    template_in: str = ""  # where a pod template stands that the struct does not read: `spec`, `data.spec`


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of the table. Its group, version, plural and scope are in `resource`."""

    resource: Resource
    struct: type[Object] = Object
    origin: Origin = "kubernetes"
    decides: bool = False  # placement reads it: it is in `Objects`, in snapshots, and captured from clusters
    snapshot: SnapshotFields | None = None  # None: `wukong snapshot` does not hold it
    loads: bool = False  # a forecast loads it from a snapshot into the embedded cluster
    is_manifest: bool = True  # people write it; False for records that controllers keep
    is_workload: bool = False  # a story tells how its pods fare
    has_pod_template: bool = False  # in spec.template of its struct
    has_status: bool = True  # as a subresource
    has_scale: bool = False
    has_generation: bool = False
    field_selectors: tuple[str, ...] = ()  # besides metadata.name and metadata.namespace
    merge_keys: MergeKeys = {}  # besides those that all kinds share (embedded/store/patch/merge_keys.py)

    @property
    def group_kind(self) -> str:
        return self.resource.group_kind

    @property
    def is_built_in(self) -> bool:
        return self.origin == "kubernetes"


class KindTable:
    """Entries by group and kind, in the order they were added."""

    def __init__(self) -> None:
        self._entries: dict[str, Kind] = {}
        self._by_struct: dict[type[Object], Kind] = {}
        self._group_kinds: dict[type[Object], str] = {}  # of structs asked for so far, derived ones too

    def add(self, entry: Kind) -> Resource:
        """Add an entry and return where its kind lives. A group and kind, and a struct, may be there once."""
        if entry.group_kind in self._entries:
            raise ValueError(f"the table of kinds has {entry.group_kind} already")
        if entry.struct in self._by_struct:
            raise ValueError(f"{entry.struct.__name__} reads {self._by_struct[entry.struct].group_kind} already")
        self._entries[entry.group_kind] = entry
        if entry.struct is not Object:
            self._by_struct[entry.struct] = entry
        return entry.resource

    def remove(self, entry: Kind) -> None:
        del self._entries[entry.group_kind]
        self._by_struct.pop(entry.struct, None)
        self._group_kinds.clear()

    def __iter__(self) -> Iterator[Kind]:
        return iter(tuple(self._entries.values()))

    def __getitem__(self, group_kind: str) -> Kind:
        return self._entries[group_kind]

    def find(self, group_kind: str) -> Kind | None:
        return self._entries.get(group_kind)

    def of_resource(self, resource: Resource) -> Kind | None:
        return self._entries.get(resource.group_kind)

    def of_document(self, kind: str, api_version: str) -> Kind | None:
        """The entry that a document's kind and apiVersion mean. Without an apiVersion, the first kind of that name."""
        if api_version:
            return self._entries.get(group_kind(kind, group_of(api_version)))
        return next(self.find_by_name(kind), None)

    def group_kind_named(self, kind: str, api_version: str) -> str:
        """The group and kind that a document or an owner reference names, whether the table has it or not."""
        entry = self.of_document(kind, api_version)
        return entry.group_kind if entry is not None else group_kind(kind, group_of(api_version))

    def title_of(self, resource: Resource) -> str:
        """What a kind is called in logs and metrics: `Deployment`, and with its group where it is somebody else's."""
        entry = self.of_resource(resource)
        return resource.group_kind if entry is not None and entry.origin == "foreign" else resource.kind

    def resource_named(self, kind: str) -> Resource:
        """Where the first kind of this name lives. KeyError if there is none."""
        entry = next(self.find_by_name(kind), None)
        if entry is None:
            raise KeyError(kind)
        return entry.resource

    def find_by_name(self, kind: str) -> Iterator[Kind]:
        """All entries of this kind, whatever their group."""
        return (entry for entry in self if entry.resource.kind == kind)

    def of_struct(self, struct: type[Object]) -> Kind | None:
        """The entry whose objects this struct, or one it derives from, reads."""
        return next((self._by_struct[base] for base in struct.__mro__ if base in self._by_struct), None)

    def group_kind_of(self, struct: type[Object]) -> str:
        """The group and kind of the objects that a struct reads; the struct's name where the table has none."""
        name = self._group_kinds.get(struct)
        if name is None:
            entry = self.of_struct(struct)
            name = self._group_kinds[struct] = entry.group_kind if entry is not None else struct.__name__
        return name

    def deciding(self) -> list[Kind]:
        """The kinds that placement reads."""
        return [entry for entry in self if entry.decides]

    def workloads(self) -> list[Kind]:
        """The kinds whose pods a story tells of."""
        return [entry for entry in self if entry.is_workload]

    def manifests(self) -> list[Kind]:
        """The kinds that people write and that the embedded cluster acts on."""
        return [entry for entry in self if entry.loads and entry.is_manifest]


KINDS = KindTable()


def _resource(
    kind: str, group: str = "", *, version: str = "v1", is_namespaced: bool = True, plural: str = ""
) -> Resource:
    return Resource(kind=kind, version=version, group=group, plural=plural or plural_of(kind), namespaced=is_namespaced)


def _cluster_scoped(kind: str, group: str = "", **more: str) -> Resource:
    return _resource(kind, group, is_namespaced=False, **more)


_RESTART_POLICY = "spec.template.spec.restartPolicy"

NODES = KINDS.add(
    Kind(
        resource=_cluster_scoped("Node"),
        struct=Node,
        decides=True,
        loads=True,
        snapshot=SnapshotFields(("spec.taints[].timeAdded", "status.conditions[].lastTransitionTime")),
        field_selectors=("spec.unschedulable",),
    )
)
PODS = KINDS.add(
    Kind(
        resource=_resource("Pod"),
        struct=Pod,
        decides=True,
        loads=True,
        snapshot=SnapshotFields(
            (
                "spec.restartPolicy",
                "spec.readinessGates",
                "status.containerStatuses[].state.waiting.reason",
                "status.containerStatuses[].ready",
            )
        ),
        has_generation=True,
        field_selectors=(
            *("spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName"),
            *("spec.hostNetwork", "status.phase", "status.podIP", "status.nominatedNodeName"),
        ),
    )
)
NAMESPACES = KINDS.add(
    Kind(
        resource=_cluster_scoped("Namespace"),
        struct=Namespace,
        decides=True,
        loads=True,
        snapshot=SnapshotFields(("spec.finalizers", "status.phase")),
        field_selectors=("status.phase",),
    )
)
SERVICES = KINDS.add(
    Kind(
        resource=_resource("Service"),
        struct=Service,
        decides=True,
        loads=True,
        snapshot=SnapshotFields(),
        field_selectors=("spec.clusterIP", "spec.type"),
        merge_keys={"spec.ports": ("port", "protocol")},
    )
)
REPLICATION_CONTROLLERS = KINDS.add(
    Kind(
        resource=_resource("ReplicationController"),
        struct=ReplicationController,
        decides=True,
        loads=True,  # its pods stay; nobody here plays its controller, so it is no workload of a story
        snapshot=SnapshotFields(("status",)),
        has_pod_template=True,
        has_scale=True,
        has_generation=True,
        field_selectors=("status.replicas",),
    )
)
REPLICA_SETS = KINDS.add(
    Kind(
        resource=_resource("ReplicaSet", "apps"),
        struct=ReplicaSet,
        decides=True,
        loads=True,
        snapshot=SnapshotFields((_RESTART_POLICY, "status")),
        is_workload=True,
        has_pod_template=True,
        has_scale=True,
        has_generation=True,
        field_selectors=("status.replicas",),
    )
)
STATEFUL_SETS = KINDS.add(
    Kind(
        resource=_resource("StatefulSet", "apps"),
        struct=StatefulSet,
        decides=True,
        loads=True,
        snapshot=SnapshotFields(
            (_RESTART_POLICY, "spec.serviceName", "spec.ordinals", "spec.revisionHistoryLimit", "status")
        ),
        is_workload=True,
        has_pod_template=True,
        has_scale=True,
        has_generation=True,
    )
)
DEPLOYMENTS = KINDS.add(
    Kind(
        resource=_resource("Deployment", "apps"),
        struct=Deployment,
        decides=True,
        loads=True,
        snapshot=SnapshotFields((_RESTART_POLICY, "spec.revisionHistoryLimit", "status")),
        is_workload=True,
        has_pod_template=True,
        has_scale=True,
        has_generation=True,
    )
)
DAEMON_SETS = KINDS.add(
    Kind(
        resource=_resource("DaemonSet", "apps"),
        struct=DaemonSet,
        decides=True,
        loads=True,
        snapshot=SnapshotFields((_RESTART_POLICY, "spec.revisionHistoryLimit", "status")),
        is_workload=True,
        has_pod_template=True,
        has_generation=True,
    )
)
POD_DISRUPTION_BUDGETS = KINDS.add(
    Kind(
        resource=_resource("PodDisruptionBudget", "policy"),
        struct=PodDisruptionBudget,
        decides=True,
        loads=True,
        snapshot=SnapshotFields(("status",)),
        has_generation=True,
    )
)
PRIORITY_CLASSES = KINDS.add(
    Kind(
        resource=_cluster_scoped("PriorityClass", "scheduling.k8s.io"),
        struct=PriorityClass,
        decides=True,
        loads=True,
        snapshot=SnapshotFields(),
        has_status=False,
        has_generation=True,
    )
)
PERSISTENT_VOLUME_CLAIMS = KINDS.add(
    Kind(
        resource=_resource("PersistentVolumeClaim"),
        struct=PersistentVolumeClaim,
        decides=True,
        loads=True,
        snapshot=SnapshotFields(),
    )
)
PERSISTENT_VOLUMES = KINDS.add(
    Kind(
        resource=_cluster_scoped("PersistentVolume"),
        struct=PersistentVolume,
        decides=True,
        loads=True,
        snapshot=SnapshotFields(),
    )
)
PLACEMENT_POLICIES = KINDS.add(
    Kind(
        resource=_resource("PlacementPolicy", GROUP, version=VERSION),
        struct=PlacementPolicy,
        origin="ours",
        decides=True,
        loads=True,
        snapshot=SnapshotFields(),
    )
)
CLUSTER_PLACEMENT_POLICIES = KINDS.add(
    Kind(
        resource=_cluster_scoped("ClusterPlacementPolicy", GROUP, version=VERSION),
        struct=ClusterPlacementPolicy,
        origin="ours",
        decides=True,
        loads=True,
        snapshot=SnapshotFields(),
    )
)
JOBS = KINDS.add(
    Kind(
        resource=_resource("Job", "batch"),
        struct=Job,
        loads=True,
        snapshot=SnapshotFields(
            (
                *("spec.parallelism", "spec.completions", "spec.backoffLimit", "spec.suspend", "spec.selector"),
                *(_RESTART_POLICY, "status"),
            ),
            template_in="spec",
        ),
        is_workload=True,
        has_generation=True,
    )
)
CONTROLLER_REVISIONS = KINDS.add(
    Kind(
        resource=_resource("ControllerRevision", "apps"),
        struct=ControllerRevision,
        loads=True,
        is_manifest=False,
        snapshot=SnapshotFields(("revision", "data.spec.template.spec.restartPolicy"), template_in="data.spec"),
        has_status=False,
    )
)
CONFIG_MAPS = KINDS.add(Kind(resource=_resource("ConfigMap"), has_status=False))
SECRETS = KINDS.add(Kind(resource=_resource("Secret"), has_status=False, field_selectors=("type",)))
SERVICE_ACCOUNTS = KINDS.add(Kind(resource=_resource("ServiceAccount"), has_status=False))
CUSTOM_RESOURCE_DEFINITIONS = KINDS.add(
    Kind(resource=_cluster_scoped("CustomResourceDefinition", "apiextensions.k8s.io"), has_generation=True)
)
LEASES = KINDS.add(Kind(resource=_resource("Lease", "coordination.k8s.io"), has_status=False, is_manifest=False))
EVENTS = KINDS.add(
    Kind(
        resource=_resource("Event", "events.k8s.io"),
        has_status=False,
        is_manifest=False,
        field_selectors=(
            *("regarding.kind", "regarding.namespace", "regarding.name", "regarding.uid"),
            *("reason", "type", "reportingController"),
        ),
    )
)
NODE_USAGES = KINDS.add(
    Kind(
        resource=_cluster_scoped("NodeUsage", USAGE_GROUP, version="v1alpha1"),
        struct=NodeUsage,
        origin="internal",
        is_manifest=False,
        has_status=False,
    )
)
# Served by an aggregated API server, where there is one: nothing of it is stored, mirrored or loaded.
NODE_METRICS = _cluster_scoped("NodeMetrics", "metrics.k8s.io", version="v1beta1", plural="nodes")


def group_kind_of(subject: Object) -> str:
    """The group and kind of an object. Items of a typed list carry no kind; their structs stand in the table."""
    struct = type(subject)
    if struct is Object and subject.kind:
        return group_kind(subject.kind, group_of(subject.api_version))
    return KINDS.group_kind_of(struct)
