"""The core API group: nodes, pods and what pods are made of, namespaces, services, volumes, priorities.

Read by the engine, the rules and everything above. Only what decides placement is modelled.
"""

from __future__ import annotations

from typing import Literal

from msgspec import field

from wukong.api.meta import Base, LabelSelector, Object, ObjectMeta

Quantities = dict[str, str | int | float]
NodeOperator = Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
NEVER_MOVE = "novasphere.dev/never-move"  # an annotation of a pod: nobody of ours takes it away


class Taint(Base):
    key: str
    value: str = ""
    effect: str = ""


class NodeSpec(Base):
    taints: list[Taint] = []
    unschedulable: bool = False


class ContainerImage(Base):
    names: list[str] = []
    size_bytes: int = 0


class NodeCondition(Base):
    type: str
    status: str = ""
    reason: str = ""
    message: str = ""


class NodeSystemInfo(Base):
    kubelet_version: str = ""


class NodeStatus(Base):
    capacity: Quantities = {}
    allocatable: Quantities = {}
    images: list[ContainerImage] = []
    conditions: list[NodeCondition] = []
    node_info: NodeSystemInfo = field(default_factory=NodeSystemInfo)


class Node(Object):
    spec: NodeSpec = field(default_factory=NodeSpec)
    status: NodeStatus = field(default_factory=NodeStatus)


class ResourceRequirements(Base):
    requests: Quantities = {}
    limits: Quantities = {}


class ContainerPort(Base):
    container_port: int = 0
    host_port: int = 0
    host_ip: str = field(name="hostIP", default="")
    protocol: str = "TCP"


class Container(Base):
    name: str = ""
    image: str = ""
    resources: ResourceRequirements = field(default_factory=ResourceRequirements)
    ports: list[ContainerPort] = []
    restart_policy: str | None = None  # "Always" on an init container makes it a sidecar


class NodeSelectorRequirement(Base):
    key: str
    operator: NodeOperator
    values: list[str] = []


class NodeSelectorTerm(Base):
    match_expressions: list[NodeSelectorRequirement] = []
    match_fields: list[NodeSelectorRequirement] = []


class NodeSelector(Base):
    node_selector_terms: list[NodeSelectorTerm] = []


class PreferredSchedulingTerm(Base):
    weight: int
    preference: NodeSelectorTerm


class NodeAffinity(Base):
    required: NodeSelector | None = field(name="requiredDuringSchedulingIgnoredDuringExecution", default=None)
    preferred: list[PreferredSchedulingTerm] = field(
        name="preferredDuringSchedulingIgnoredDuringExecution", default_factory=list
    )


class PodAffinityTerm(Base):
    topology_key: str
    label_selector: LabelSelector | None = None
    namespaces: list[str] = []
    namespace_selector: LabelSelector | None = None
    match_label_keys: list[str] = []
    mismatch_label_keys: list[str] = []


class WeightedPodAffinityTerm(Base):
    weight: int
    pod_affinity_term: PodAffinityTerm


class PodAffinity(Base):
    """Both podAffinity and podAntiAffinity have this shape."""

    required: list[PodAffinityTerm] = field(name="requiredDuringSchedulingIgnoredDuringExecution", default_factory=list)
    preferred: list[WeightedPodAffinityTerm] = field(
        name="preferredDuringSchedulingIgnoredDuringExecution", default_factory=list
    )


class Affinity(Base):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class Toleration(Base):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class TopologySpreadConstraint(Base):
    max_skew: int
    topology_key: str
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"] = "DoNotSchedule"
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: Literal["Honor", "Ignore"] = "Honor"
    node_taints_policy: Literal["Honor", "Ignore"] = "Ignore"
    match_label_keys: list[str] = []


class VolumeClaimSource(Base):
    claim_name: str


class ImageVolume(Base):
    reference: str = ""


class GcePersistentDisk(Base):
    pd_name: str = ""
    read_only: bool = False


class AwsElasticBlockStore(Base):
    volume_id: str = field(name="volumeID", default="")


class AzureDisk(Base):
    disk_uri: str = field(name="diskURI", default="")


class CinderVolume(Base):
    volume_id: str = field(name="volumeID", default="")


class RbdImage(Base):
    monitors: list[str] = []
    pool: str = ""
    image: str = ""
    read_only: bool = False


class IscsiDisk(Base):
    iqn: str = ""
    read_only: bool = False


class EphemeralVolume(Base):
    """A volume whose claim is made for its pod, and goes with it."""

    volume_claim_template: PersistentVolumeClaimTemplate | None = None


class Volume(Base):
    """Claims bind pods to nodes, some disks go to one pod at a time, images count for locality; others have a name."""

    name: str = ""
    persistent_volume_claim: VolumeClaimSource | None = None
    image: ImageVolume | None = None
    ephemeral: EphemeralVolume | None = None
    gce_persistent_disk: GcePersistentDisk | None = field(name="gcePersistentDisk", default=None)
    aws_elastic_block_store: AwsElasticBlockStore | None = field(name="awsElasticBlockStore", default=None)
    azure_disk: AzureDisk | None = field(name="azureDisk", default=None)
    cinder: CinderVolume | None = None
    rbd: RbdImage | None = None
    iscsi: IscsiDisk | None = None
    csi: dict[str, object] | None = None


class SchedulingGate(Base):
    name: str = ""


class ResourceClaim(Base):
    name: str = ""


class PodSpec(Base):
    node_name: str = ""
    scheduler_name: str = ""
    containers: list[Container] = []
    init_containers: list[Container] = []
    overhead: Quantities = {}
    resources: ResourceRequirements | None = None
    node_selector: dict[str, str] = {}
    affinity: Affinity | None = None
    tolerations: list[Toleration] = []
    topology_spread_constraints: list[TopologySpreadConstraint] = []
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str | None = None
    host_network: bool = False
    volumes: list[Volume] = []
    scheduling_gates: list[SchedulingGate] = []
    resource_claims: list[ResourceClaim] = []
    runtime_class_name: str | None = None
    termination_grace_period_seconds: int | None = None


class PodCondition(Base):
    type: str
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class ContainerStatus(Base):
    name: str = ""
    allocated_resources: Quantities = {}
    resources: ResourceRequirements | None = None


class PodStatus(Base):
    phase: str = ""
    start_time: str | None = None
    nominated_node_name: str = ""
    conditions: list[PodCondition] = []
    container_statuses: list[ContainerStatus] = []
    init_container_statuses: list[ContainerStatus] = []
    # Not Kubernetes': how long it took from its node to ready, measured by the mirror, which leaves out the times.
    start_seconds: float | None = None


class Pod(Object):
    spec: PodSpec = field(default_factory=PodSpec)
    status: PodStatus = field(default_factory=PodStatus)

    @property
    def is_finished(self) -> bool:
        return self.status.phase in ("Succeeded", "Failed")

    @property
    def is_terminating(self) -> bool:
        return self.metadata.deletion_timestamp is not None


class PodTemplateSpec(Base):
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: PodSpec = field(default_factory=PodSpec)


class Namespace(Object):
    pass


class ServicePort(Base):
    name: str = ""
    port: int = 0
    protocol: str = "TCP"
    target_port: int | str | None = None
    app_protocol: str | None = None
    node_port: int = 0


class ServiceSpec(Base):
    selector: dict[str, str] | None = None
    type: str = ""
    ports: list[ServicePort] = []
    cluster_ip: str = field(name="clusterIP", default="")
    ip_families: list[str] = []
    publish_not_ready_addresses: bool = False
    external_traffic_policy: str = ""


class Service(Object):
    spec: ServiceSpec = field(default_factory=ServiceSpec)


class ReplicationControllerSpec(Base):
    replicas: int | None = None
    selector: dict[str, str] = {}
    template: PodTemplateSpec | None = None


class ReplicationController(Object):
    spec: ReplicationControllerSpec = field(default_factory=ReplicationControllerSpec)


class VolumeNodeAffinity(Base):
    required: NodeSelector | None = None


class ClaimReference(Base):
    """The claim that a volume is bound to, or kept for: then it has no uid."""

    namespace: str = ""
    name: str = ""
    uid: str = ""


class CsiVolumeSource(Base):
    driver: str = ""
    volume_handle: str = ""


class PersistentVolumeSpec(Base):
    node_affinity: VolumeNodeAffinity | None = None
    storage_class_name: str = ""
    capacity: Quantities = {}
    access_modes: list[str] = []
    volume_mode: str | None = None
    claim_ref: ClaimReference | None = None
    volume_attributes_class_name: str | None = None
    persistent_volume_reclaim_policy: str = ""
    csi: CsiVolumeSource | None = None
    gce_persistent_disk: GcePersistentDisk | None = field(name="gcePersistentDisk", default=None)
    aws_elastic_block_store: AwsElasticBlockStore | None = field(name="awsElasticBlockStore", default=None)
    azure_disk: AzureDisk | None = field(name="azureDisk", default=None)
    cinder: CinderVolume | None = None


class PersistentVolumeStatus(Base):
    phase: str = ""


class PersistentVolume(Object):
    spec: PersistentVolumeSpec = field(default_factory=PersistentVolumeSpec)
    status: PersistentVolumeStatus = field(default_factory=PersistentVolumeStatus)


class PersistentVolumeClaimSpec(Base):
    volume_name: str = ""
    storage_class_name: str | None = None
    access_modes: list[str] = []
    volume_mode: str | None = None
    resources: ResourceRequirements = field(default_factory=ResourceRequirements)
    selector: LabelSelector | None = None
    volume_attributes_class_name: str | None = None


class ClaimTemplateMeta(Base):
    name: str = ""
    labels: dict[str, str] = {}


class PersistentVolumeClaimTemplate(Base):
    metadata: ClaimTemplateMeta = field(default_factory=ClaimTemplateMeta)
    spec: PersistentVolumeClaimSpec = field(default_factory=PersistentVolumeClaimSpec)


class PersistentVolumeClaimStatus(Base):
    phase: str = ""


class PersistentVolumeClaim(Object):
    spec: PersistentVolumeClaimSpec = field(default_factory=PersistentVolumeClaimSpec)
    status: PersistentVolumeClaimStatus = field(default_factory=PersistentVolumeClaimStatus)


class PriorityClass(Object):
    value: int = 0
    global_default: bool = False
    preemption_policy: str | None = None
