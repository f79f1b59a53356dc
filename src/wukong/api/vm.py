"""The group vm.novasphere.dev: Wukong, one or several virtual machines and how they are to be placed.

Read by placement.vm, which makes KubeVirt's VirtualMachines of it, and by the `vm` controller; api.crds makes the
CustomResourceDefinition. What the API server is to refuse stands beside each field. Reading is lenient all the same, as
in api.placement: what is wrong with a Wukong that got past the API server is said in its condition Accepted.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from msgspec import Meta, field

from wukong.api.core import (
    NodeSelectorTerm,
    PodAffinityTerm,
    PreferredSchedulingTerm,
    Toleration,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from wukong.api.meta import Base, Object
from wukong.api.placement import POLICY_BYTES, Condition, Scheduling

VM_GROUP = "vm.novasphere.dev"
VM_VERSION = "v1alpha1"
NAME_LABEL = "wukong.novasphere.dev/name"  # on the template: which Wukong a VM, its instance and its pods are of
RUN_STRATEGIES = ("Always", "Halted", "Manual", "RerunOnFailure", "Once")
EVICTION_STRATEGIES = ("LiveMigrate", "LiveMigrateIfPossible", "External", "None")
RESTART_POLICIES = ("Never", "WhenSafe")
_ANYTHING = Meta(extra_json_schema={"x-kubernetes-preserve-unknown-fields": True})


class HighAvailability(Base):
    """The short way to keep the virtual machines of one Wukong apart."""

    anti_affinity: Annotated[
        bool, Meta(description="No two on one node. scheduling.podAntiAffinity, where it is given, counts instead.")
    ] = False


class PodAffinitySpec(Base):
    """Near, or apart from, pods with certain labels, within a topology domain."""

    required: list[PodAffinityTerm] = []
    preferred: list[WeightedPodAffinityTerm] = []


class NodeAffinitySpec(Base):
    """By the labels of nodes. One of the required terms must hold (they are alternatives)."""

    required: list[NodeSelectorTerm] = []
    preferred: list[PreferredSchedulingTerm] = []


class VmScheduling(Scheduling):
    """Where these virtual machines run."""

    pod_affinity: PodAffinitySpec | None = None
    pod_anti_affinity: PodAffinitySpec | None = None
    node_selector: dict[str, str] = {}
    node_affinity: NodeAffinitySpec | None = None
    tolerations: list[Toleration] = []
    topology_spread_constraints: list[TopologySpreadConstraint] = []


class ContainerDisk(Base):
    image: str


class DataVolume(Base):
    name: str


class ClaimDisk(Base):
    claim_name: str


class CloudInit(Base):
    """What cloud-init finds on its disk (NoCloud)."""

    user_data: str = ""
    network_data: str = ""


class Disk(Base):
    """A disk: exactly one of the sources."""

    name: str
    bus: str = "virtio"
    container_disk: ContainerDisk | None = None
    data_volume: DataVolume | None = None
    claim: ClaimDisk | None = None
    cloud_init: CloudInit | None = None


class Network(Base):
    """A network: the pod network (masquerade), or one of Multus (bridge) where `multus` names it."""

    name: str
    multus: str = ""


class Gpu(Base):
    """A device that a device plugin offers, such as nvidia.com/A100."""

    name: str
    device_name: str


class WukongSpec(Base):
    cpu: int = 1
    memory: str | int = "1Gi"
    replicas: int | None = None
    run_strategy: str = "Always"
    labels: dict[str, str] = {}
    high_availability: HighAvailability | None = None
    scheduling: VmScheduling | None = None
    disks: list[Disk] = []
    networks: list[Network] = []
    gpus: list[Gpu] = []
    eviction_strategy: str = "LiveMigrateIfPossible"
    readiness_probe: Annotated[dict[str, Any] | None, _ANYTHING] = None
    liveness_probe: Annotated[dict[str, Any] | None, _ANYTHING] = None
    termination_grace_period_seconds: int | None = None
    restart_policy: str = "Never"
    vm_template: Annotated[dict[str, Any], _ANYTHING] = {}


class VmStatus(Base):
    """How one virtual machine stands."""

    name: str
    phase: str = ""
    node: str = ""
    ready: bool = False
    migratable: bool | None = None
    restart_required: bool = False
    reason: str = ""
    message: str = ""


class WukongStatus(Base):
    observed_generation: int = 0
    replicas: int = 0
    ready_replicas: int = 0
    node: str = ""  # of the only virtual machine, or how many nodes there are
    reason: str = ""
    vms: list[VmStatus] = []
    conditions: list[Condition] = []


class Wukong(Object):
    """One or several virtual machines, alike, and how they are placed."""

    most_bytes: ClassVar[int] = POLICY_BYTES

    spec: WukongSpec = field(default_factory=WukongSpec)
    status: WukongStatus = field(default_factory=WukongStatus)


def vm_names_of(wukong: Wukong) -> list[str]:
    """The names of the VirtualMachines that it asks for: its own, or numbered ones where it says `replicas`."""
    name, replicas = wukong.metadata.name, wukong.spec.replicas
    return [name] if replicas is None else [f"{name}-{index}" for index in range(replicas)]
