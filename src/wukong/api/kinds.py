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
from wukong.api.autoscaling import HorizontalPodAutoscaler, PodMetrics, WorkloadUsage
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
from wukong.api.discovery import EndpointSlice
from wukong.api.kind_table import Kind, KindTable, SnapshotFields, make_cluster_resource, make_resource
from wukong.api.kubevirt import KUBEVIRT_GROUP, VirtualMachine, VirtualMachineInstance, VirtualMachineInstanceMigration
from wukong.api.ledger import LEDGER_GROUP, WorkloadRecord
from wukong.api.meta import Object
from wukong.api.node_groups import CLOUD_GROUP, NodeRequest
from wukong.api.node_notices import NodeNotice
from wukong.api.placement import GROUP, VERSION, ClusterPlacementPolicy, PlacementPolicy
from wukong.api.quota import LimitRange, ResourceQuota
from wukong.api.resources import Resource, group_kind, group_of
from wukong.api.rollout import ROLLOUT_FIELDS, Rollout
from wukong.api.spot import Move
from wukong.api.storage import CSIDriver, CSINode, CSIStorageCapacity, StorageClass, VolumeAttachment
from wukong.api.usage import USAGE_GROUP, NodeUsage
from wukong.api.vm import VM_GROUP, VM_VERSION, Wukong

KINDS = KindTable()
KARPENTER_GROUP = "karpenter.sh"


def _add_internal(resource: Resource, struct: type[Object]) -> Resource:
    """A kind that no API server has: nobody writes a manifest of it, and it has no status."""
    return KINDS.add(Kind(resource=resource, struct=struct, origin="internal", is_manifest=False, has_status=False))


_RESTART_POLICY = "spec.template.spec.restartPolicy"

NODES = KINDS.add(
    Kind(
        resource=make_cluster_resource("Node"),
        struct=Node,
        decides=True,
        loads=True,
        snapshot=SnapshotFields(("spec.taints[].timeAdded", "status.conditions[].lastTransitionTime")),
        field_selectors=("spec.unschedulable",),
    )
)
PODS = KINDS.add(
    Kind(
        resource=make_resource("Pod"),
        struct=Pod,
        decides=True,
        loads=True,
        snapshot=SnapshotFields(
            (
                "spec.restartPolicy",
                "spec.activeDeadlineSeconds",
                "spec.readinessGates",
                "status.containerStatuses[].state.waiting.reason",
                "status.containerStatuses[].ready",
                "status.containerStatuses[].state.terminated.finishedAt",  # from which plans learn
                "spec.containers[].lifecycle.preStop.sleep.seconds",
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
        resource=make_cluster_resource("Namespace"),
        struct=Namespace,
        decides=True,
        loads=True,
        snapshot=SnapshotFields(("spec.finalizers", "status.phase")),
        field_selectors=("status.phase",),
    )
)
SERVICES = KINDS.add(
    Kind(
        resource=make_resource("Service"),
        struct=Service,
        decides=True,
        loads=True,
        snapshot=SnapshotFields(),
        field_selectors=("spec.clusterIP", "spec.type"),
    )
)
REPLICATION_CONTROLLERS = KINDS.add(
    Kind(
        resource=make_resource("ReplicationController"),
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
        resource=make_resource("ReplicaSet", "apps"),
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
        resource=make_resource("StatefulSet", "apps"),
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
        resource=make_resource("Deployment", "apps"),
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
        resource=make_resource("DaemonSet", "apps"),
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
        resource=make_resource("PodDisruptionBudget", "policy"),
        struct=PodDisruptionBudget,
        decides=True,
        loads=True,
        snapshot=SnapshotFields(("status",)),
        has_generation=True,
    )
)
PRIORITY_CLASSES = KINDS.add(
    Kind(
        resource=make_cluster_resource("PriorityClass", "scheduling.k8s.io"),
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
        resource=make_resource("PersistentVolumeClaim"),
        struct=PersistentVolumeClaim,
        decides=True,
        loads=True,
        snapshot=SnapshotFields(("spec.resources",)),  # quotas count what is asked for
    )
)
PERSISTENT_VOLUMES = KINDS.add(
    Kind(
        resource=make_cluster_resource("PersistentVolume"),
        struct=PersistentVolume,
        decides=True,
        loads=True,
        snapshot=SnapshotFields(),
    )
)
STORAGE_CLASSES = KINDS.add(
    Kind(
        resource=make_cluster_resource("StorageClass", "storage.k8s.io"),
        struct=StorageClass,
        decides=True,
        loads=True,
        snapshot=SnapshotFields(),
        has_status=False,
    )
)
CSI_NODES = KINDS.add(
    Kind(
        resource=make_cluster_resource("CSINode", "storage.k8s.io"),
        struct=CSINode,
        decides=True,
        loads=True,
        is_manifest=False,
        snapshot=SnapshotFields(),
        has_status=False,
    )
)
CSI_DRIVERS = KINDS.add(
    Kind(
        resource=make_cluster_resource("CSIDriver", "storage.k8s.io"),
        struct=CSIDriver,
        decides=True,
        loads=True,
        snapshot=SnapshotFields(),
        has_status=False,
    )
)
CSI_STORAGE_CAPACITIES = KINDS.add(
    Kind(
        resource=make_resource("CSIStorageCapacity", "storage.k8s.io"),
        struct=CSIStorageCapacity,
        decides=True,
        loads=True,
        is_manifest=False,
        snapshot=SnapshotFields(),
        has_status=False,
    )
)
# Decides how many volumes a node still takes. Nobody here plays who attaches and detaches, so no forecast loads it.
VOLUME_ATTACHMENTS = KINDS.add(
    Kind(
        resource=make_cluster_resource("VolumeAttachment", "storage.k8s.io"),
        struct=VolumeAttachment,
        decides=True,
        is_manifest=False,
        snapshot=SnapshotFields(),
    )
)
PLACEMENT_POLICIES = KINDS.add(
    Kind(
        resource=make_resource("PlacementPolicy", GROUP, version=VERSION),
        struct=PlacementPolicy,
        origin="ours",
        decides=True,
        loads=True,
        snapshot=SnapshotFields(),
    )
)
CLUSTER_PLACEMENT_POLICIES = KINDS.add(
    Kind(
        resource=make_cluster_resource("ClusterPlacementPolicy", GROUP, version=VERSION),
        struct=ClusterPlacementPolicy,
        origin="ours",
        decides=True,
        loads=True,
        snapshot=SnapshotFields(),
    )
)
# One that is under way when a snapshot is taken: a forecast goes on from there where it has the component.
MOVES = KINDS.add(
    Kind(
        resource=make_resource("Move", GROUP, version=VERSION),
        struct=Move,
        origin="ours",
        loads=True,
        is_manifest=False,
        snapshot=SnapshotFields(("spec", "status")),
    )
)
# What became of notices is for people to read: no snapshot has it, no forecast goes by it.
_NODE_NOTICE = make_cluster_resource("NodeNotice", GROUP, version=VERSION)
NODE_NOTICES = KINDS.add(Kind(resource=_NODE_NOTICE, struct=NodeNotice, origin="ours", is_manifest=False))
ROLLOUTS = KINDS.add(
    Kind(
        resource=make_resource("Rollout", GROUP, version=VERSION),
        struct=Rollout,
        origin="ours",
        loads=True,
        snapshot=SnapshotFields((*ROLLOUT_FIELDS, "status"), template_in="spec"),
        is_workload=True,
        has_scale=True,
    )
)
WUKONGS = KINDS.add(
    Kind(
        resource=make_resource("Wukong", VM_GROUP, version=VM_VERSION),
        struct=Wukong,
        origin="ours",
        decides=True,
        loads=True,
        snapshot=SnapshotFields(),
    )
)
VIRTUAL_MACHINES = KINDS.add(
    Kind(
        resource=make_resource("VirtualMachine", KUBEVIRT_GROUP),
        struct=VirtualMachine,
        origin="foreign",
        decides=True,
        loads=True,
        snapshot=SnapshotFields(("status",)),
        is_workload=True,
        has_generation=True,
    )
)
VIRTUAL_MACHINE_INSTANCES = KINDS.add(
    Kind(
        resource=make_resource("VirtualMachineInstance", KUBEVIRT_GROUP),
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
        resource=make_resource("VirtualMachineInstanceMigration", KUBEVIRT_GROUP),
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
        resource=make_resource("Job", "batch"),
        struct=Job,
        loads=True,
        snapshot=SnapshotFields(
            (
                *("spec.parallelism", "spec.completions", "spec.backoffLimit", "spec.suspend", "spec.selector"),
                *("spec.completionMode", "spec.manualSelector"),
                *(_RESTART_POLICY, "status"),
            ),
            template_in="spec",
        ),
        is_workload=True,
        has_generation=True,
    )
)
RESOURCE_QUOTAS = KINDS.add(
    Kind(
        resource=make_resource("ResourceQuota"),
        struct=ResourceQuota,
        loads=True,
        snapshot=SnapshotFields(),
        has_strict_types=True,
    )
)
LIMIT_RANGES = KINDS.add(
    Kind(
        resource=make_resource("LimitRange"),
        struct=LimitRange,
        loads=True,
        snapshot=SnapshotFields(),
        has_strict_types=True,
        has_status=False,
    )
)
HORIZONTAL_POD_AUTOSCALERS = KINDS.add(
    Kind(
        resource=make_resource("HorizontalPodAutoscaler", "autoscaling", version="v2"),
        struct=HorizontalPodAutoscaler,
        loads=True,
        snapshot=SnapshotFields(("status",)),
        has_strict_types=True,
    )
)
CONTROLLER_REVISIONS = KINDS.add(
    Kind(
        resource=make_resource("ControllerRevision", "apps"),
        struct=ControllerRevision,
        loads=True,
        is_manifest=False,
        snapshot=SnapshotFields(("revision", "data.spec.template.spec.restartPolicy"), template_in="data.spec"),
        has_status=False,
    )
)
CONFIG_MAPS = KINDS.add(Kind(resource=make_resource("ConfigMap"), has_status=False))
SECRETS = KINDS.add(Kind(resource=make_resource("Secret"), has_status=False, field_selectors=("type",)))
SERVICE_ACCOUNTS = KINDS.add(Kind(resource=make_resource("ServiceAccount"), has_status=False))
CUSTOM_RESOURCE_DEFINITIONS = KINDS.add(
    Kind(resource=make_cluster_resource("CustomResourceDefinition", "apiextensions.k8s.io"), has_generation=True)
)
# Karpenter's: what plans read node groups from. Nobody here plays its controllers, so they are not loaded.
NODE_POOLS = KINDS.add(
    Kind(
        resource=make_cluster_resource("NodePool", KARPENTER_GROUP),
        origin="foreign",
        snapshot=SnapshotFields(
            (
                *("spec.limits", "spec.weight", "spec.disruption", "spec.template.metadata.labels"),
                *("spec.template.spec.requirements", "spec.template.spec.taints", "spec.template.spec.startupTaints"),
            )
        ),
    )
)
NODE_CLAIMS = KINDS.add(
    Kind(
        resource=make_cluster_resource("NodeClaim", KARPENTER_GROUP),
        origin="foreign",
        is_manifest=False,
        snapshot=SnapshotFields(("status.capacity", "status.allocatable")),
    )
)
ENDPOINT_SLICES = KINDS.add(
    Kind(
        resource=make_resource("EndpointSlice", "discovery.k8s.io"),
        struct=EndpointSlice,
        has_status=False,
        has_generation=True,
        is_manifest=False,
    )
)
LEASES = KINDS.add(Kind(resource=make_resource("Lease", "coordination.k8s.io"), has_status=False, is_manifest=False))
EVENTS = KINDS.add(
    Kind(
        resource=make_resource("Event", "events.k8s.io"),
        has_status=False,
        is_manifest=False,
        field_selectors=(
            *("regarding.kind", "regarding.namespace", "regarding.name", "regarding.uid"),
            *("reason", "type", "reportingController"),
        ),
    )
)
NODE_USAGES = _add_internal(make_cluster_resource("NodeUsage", USAGE_GROUP, version="v1alpha1"), NodeUsage)
WORKLOAD_USAGES = _add_internal(make_resource("WorkloadUsage", USAGE_GROUP, version="v1alpha1"), WorkloadUsage)
# What a metrics-server would tell of single pods; in an embedded cluster whoever plays one writes it.
POD_METRICS = _add_internal(make_resource("PodMetrics", "metrics.k8s.io", version="v1beta1", plural="pods"), PodMetrics)
# A machine that a cloud was asked for and that still boots; in an embedded cluster its autoscaler writes it.
NODE_REQUESTS = _add_internal(make_cluster_resource("NodeRequest", CLOUD_GROUP, version="v1alpha1"), NodeRequest)
# What the ledger of replicas says of a workload; not namespaced, for it outlives the workload's namespace.
WORKLOAD_RECORDS = _add_internal(
    make_cluster_resource("WorkloadRecord", LEDGER_GROUP, version="v1alpha1"), WorkloadRecord
)
# Served by an aggregated API server, where there is one: nothing of it is stored, mirrored or loaded.
NODE_METRICS = make_cluster_resource("NodeMetrics", "metrics.k8s.io", version="v1beta1", plural="nodes")


def group_kind_of(subject: Object) -> str:
    """The group and kind of an object. Items of a typed list carry no kind; their structs stand in the table."""
    struct = type(subject)
    if struct is Object and subject.kind:
        return group_kind(subject.kind, group_of(subject.api_version))
    return KINDS.group_kind_of(struct)
