"""The one table of kinds: everything that differs from kind to kind, in one entry per group and kind.

    KINDS.find("Deployment.apps")        an entry, or None
    KINDS.of_struct(Deployment)          the entry whose objects this struct reads
    PODS, DEPLOYMENTS, …                 the Resource of an entry, for whoever speaks to a cluster

Whoever needs a list of kinds (what a snapshot holds, what the embedded cluster serves, what is read into structs) makes
it from this table; nobody else lists kinds. A new kind is one more entry, here or, for a kind of somebody else's, by
`KINDS.add`. Reading files is not done here (see wukong.cluster.files).
"""

from __future__ import annotations

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
from wukong.api.kind_table import Kind, KindTable, SnapshotFields
from wukong.api.kubevirt import (
    KUBEVIRT_GROUP,
    VirtualMachine,
    VirtualMachineInstance,
    VirtualMachineInstanceMigration,
)
from wukong.api.meta import Object
from wukong.api.placement import GROUP, VERSION, ClusterPlacementPolicy, PlacementPolicy
from wukong.api.resources import Resource, group_kind, group_of, plural_of
from wukong.api.usage import USAGE_GROUP, NodeUsage
from wukong.api.vm import VM_GROUP, VM_VERSION, Wukong

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
WUKONGS = KINDS.add(
    Kind(
        resource=_resource("Wukong", VM_GROUP, version=VM_VERSION),
        struct=Wukong,
        origin="ours",
        decides=True,
        loads=True,
        snapshot=SnapshotFields(),
    )
)
VIRTUAL_MACHINES = KINDS.add(
    Kind(
        resource=_resource("VirtualMachine", KUBEVIRT_GROUP),
        struct=VirtualMachine,
        origin="foreign",
        decides=True,
        loads=True,
        snapshot=SnapshotFields(("status",)),
        has_generation=True,
    )
)
VIRTUAL_MACHINE_INSTANCES = KINDS.add(
    Kind(
        resource=_resource("VirtualMachineInstance", KUBEVIRT_GROUP),
        struct=VirtualMachineInstance,
        origin="foreign",
        decides=True,
        loads=True,
        snapshot=SnapshotFields(("status",)),
        is_manifest=False,
        has_status=False,  # its definition has no such subresource: KubeVirt writes labels and status together
        has_generation=True,
    )
)
VIRTUAL_MACHINE_INSTANCE_MIGRATIONS = KINDS.add(
    Kind(
        resource=_resource("VirtualMachineInstanceMigration", KUBEVIRT_GROUP),
        struct=VirtualMachineInstanceMigration,
        origin="foreign",
        decides=True,
        loads=True,
        snapshot=SnapshotFields(("status",)),
        has_generation=True,
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
