"""The group vm.novasphere.dev: Wukong, one or several virtual machines and how they are to be placed.

Read by placement.vm, which makes KubeVirt's VirtualMachines of it, and by the `vm` controller; api.crds makes the
CustomResourceDefinition. What the API server is to refuse stands beside each field. Reading is lenient all the same, as
in api.placement: what is wrong with a Wukong that got past the API server is said in its condition Accepted.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from msgspec import Meta, field

from wukong.api.field_schemas import ANYTHING, RULES, chooses, lists, lists_by_name, rule, says, schema
from wukong.api.meta import Base, Object
from wukong.api.placement import POLICY_BYTES, Scheduling
from wukong.api.pod_affinity import NodeAffinitySpec, PodAffinitySpec, SpreadConstraints, Tolerations
from wukong.api.policy_parts import HIGHEST_PRIORITY
from wukong.api.policy_status import Condition
from wukong.api.shared_schemas import LABEL_VALUE, SUBDOMAIN

VM_GROUP = "vm.novasphere.dev"
VM_VERSION = "v1alpha1"
NAME_LABEL = "wukong.novasphere.dev/name"  # on the template: which Wukong a VM, its instance and its pods are of
RUN_STRATEGIES = ("Always", "Halted", "Manual", "RerunOnFailure", "Once")
EVICTION_STRATEGIES = ("LiveMigrate", "LiveMigrateIfPossible", "External", "None")
RESTART_POLICIES = ("Never", "WhenSafe")
BUSES = ("virtio", "sata", "scsi", "usb")
LONGEST_NAME = 63  # of a VM: it is the value of a label, and the guest's hostname
MOST_REPLICAS = 1000  # <name>-999 is the last, so with replicas a name has four characters less
MOST_CPUS = 512
LEAST_MEMORY = "1Mi"
DNS_LABEL = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
_Name = Annotated[str, schema(minLength=1, maxLength=63, pattern=DNS_LABEL)]
_Text = Annotated[str, schema(maxLength=2048)]


class HighAvailability(Base):
    """The short way to keep the virtual machines of one Wukong apart."""

    anti_affinity: Annotated[
        bool, Meta(description="No two on one node. scheduling.podAntiAffinity, where it is given, counts instead.")
    ] = False


class VmScheduling(Scheduling):
    """Where these virtual machines run."""

    pod_affinity: Annotated[
        PodAffinitySpec | None, Meta(description="In the same domain as pods, or virtual machines, with these labels.")
    ] = None
    pod_anti_affinity: Annotated[
        PodAffinitySpec | None,
        Meta(
            description="In another domain than pods, or virtual machines, with these labels. Counts instead of "
            "highAvailability.antiAffinity, even where it is empty."
        ),
    ] = None
    node_selector: Annotated[
        dict[str, str],
        says(
            "Labels that a node must have.",
            maxProperties=32,
            additionalProperties={"type": "string", **LABEL_VALUE},
        ),
    ] = {}
    node_affinity: NodeAffinitySpec | None = None
    tolerations: Tolerations = []
    topology_spread_constraints: SpreadConstraints = []


class ContainerDisk(Base):
    """A disk image in a container image. What is written to it is gone with the pod."""

    image: Annotated[
        str,
        says(
            "The container image, such as quay.io/containerdisks/fedora:41.",
            minLength=1,
            maxLength=1024,
            pattern="^[!-~]+$",
        ),
    ]


class DataVolume(Base):
    """A DataVolume of CDI, in the same namespace."""

    name: Annotated[str, says("Its name.", minLength=1, maxLength=253, pattern=SUBDOMAIN)]


class ClaimDisk(Base):
    """A PersistentVolumeClaim in the same namespace."""

    claim_name: Annotated[str, says("Its name.", minLength=1, maxLength=253, pattern=SUBDOMAIN)]


class CloudInit(Base):
    """What cloud-init finds on its disk (NoCloud). KubeVirt takes at most 2048 bytes of each."""

    user_data: Annotated[_Text, Meta(description="cloud-config, or a script.")] = ""
    network_data: Annotated[_Text, Meta(description="The network configuration.")] = ""


_CloudInit = Annotated[
    CloudInit,
    schema(
        **{
            RULES: [
                rule(
                    "has(self.userData) && self.userData != '' || has(self.networkData) && self.networkData != ''",
                    "expected userData, networkData or both",
                )
            ]
        }
    ),
]


class Disk(Base):
    """A disk: exactly one of the sources."""

    name: Annotated[_Name, Meta(description="Unique among the disks of a Wukong.")]
    bus: Annotated[str, chooses("How the guest sees it; virtio if absent.", BUSES)] = "virtio"
    container_disk: ContainerDisk | None = None
    data_volume: DataVolume | None = None
    claim: ClaimDisk | None = None
    cloud_init: _CloudInit | None = None


_Disk = Annotated[
    Disk,
    schema(
        **{
            RULES: [
                rule(
                    "[has(self.containerDisk), has(self.dataVolume), has(self.claim), has(self.cloudInit)]"
                    ".filter(given, given).size() == 1",
                    "expected exactly one of containerDisk, dataVolume, claim and cloudInit",
                )
            ]
        }
    ),
]


class Network(Base):
    """A network: the pod network (masquerade), or one of Multus (bridge) where `multus` names it."""

    name: Annotated[_Name, Meta(description="Unique among the networks of a Wukong.")]
    multus: Annotated[
        str,
        says(
            "The NetworkAttachmentDefinition, as name or namespace/name; the pod network if absent.",
            maxLength=317,
            pattern=r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?/)?[a-z0-9]([-a-z0-9.]*[a-z0-9])?$|^$",
        ),
    ] = ""


class Gpu(Base):
    """A device that a device plugin offers and KubeVirt permits, such as nvidia.com/A100."""

    name: Annotated[_Name, Meta(description="Unique among the gpus of a Wukong.")]
    device_name: Annotated[
        str,
        says(
            "The resource that the device plugin offers, such as nvidia.com/A100.",
            maxLength=317,
            **{
                RULES: [
                    rule(
                        r"self.matches(r'^[a-z0-9.-]+/[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$')",
                        "expected the name of an extended resource, such as nvidia.com/A100",
                    )
                ]
            },
        ),
    ]


class WukongSpec(Base):
    """What the virtual machines are, how many there are, and where they run."""

    cpu: Annotated[int, says("Virtual cpus of each; 1 if absent.", format="int32", minimum=1, maximum=MOST_CPUS)] = 1
    memory: Annotated[
        str | int,
        says(
            "Guest memory of each, such as 4Gi; 1Gi if absent.",
            **{
                "maxLength": 32,
                "x-kubernetes-int-or-string": True,
                RULES: [
                    rule(
                        f"type(self) == int ? self >= {1 << 20} : isQuantity(self) "
                        f"&& quantity(self).compareTo(quantity('{LEAST_MEMORY}')) >= 0",
                        'expected a quantity of at least 1Mi, such as "4Gi"',
                    )
                ],
            },
        ),
    ] = "1Gi"
    replicas: Annotated[
        int | None,
        says(
            "How many: machines named NAME-0, NAME-1 and so on. Absent: one named as the Wukong. Cannot be added or "
            "removed later.",
            format="int32",
            minimum=0,
            maximum=MOST_REPLICAS,
        ),
    ] = None
    run_strategy: Annotated[str, chooses("When they run; Always if absent.", RUN_STRATEGIES)] = "Always"
    labels: Annotated[
        dict[str, str],
        says(
            "Labels of the virtual machines, their instances and pods; what affinity of others selects.",
            maxProperties=32,
            additionalProperties={"type": "string", **LABEL_VALUE},
            **{
                RULES: [
                    rule(
                        f"self.all(key, !key.startsWith('kubevirt.io/') && key != '{NAME_LABEL}')",
                        f"expected no label under kubevirt.io/, which KubeVirt refuses, and not {NAME_LABEL}, which "
                        "is set for you",
                    )
                ]
            },
        ),
    ] = {}
    high_availability: HighAvailability | None = None
    scheduling: Annotated[
        VmScheduling | None,
        schema(
            **{
                RULES: [
                    rule(
                        "!has(self.schedulingPolicy) || !has(self.schedulingPolicy.priority) "
                        f"|| self.schedulingPolicy.priority <= {HIGHEST_PRIORITY}",
                        f"expected at most {HIGHEST_PRIORITY}, the highest that is not the system's",
                        ".schedulingPolicy.priority",
                    )
                ]
            }
        ),
    ] = None
    disks: Annotated[list[_Disk], lists_by_name("Disks, in this order; none: nothing to boot from.", 64)] = []
    networks: Annotated[
        list[Network],
        lists_by_name(
            "Networks, in this order; the pod network if absent.",
            16,
            **{
                RULES: [
                    rule(
                        "self.filter(network, !has(network.multus) || network.multus == '').size() <= 1",
                        "expected at most one network without multus: there is one pod network",
                    )
                ]
            },
        ),
    ] = []
    gpus: Annotated[list[Gpu], lists_by_name("Devices handed to each machine.", 16)] = []
    eviction_strategy: Annotated[
        str,
        chooses(
            "What an eviction does: LiveMigrateIfPossible (if absent), LiveMigrate, External, or None: the machine "
            "dies and is started again elsewhere.",
            EVICTION_STRATEGIES,
        ),
    ] = "LiveMigrateIfPossible"
    readiness_probe: Annotated[
        dict[str, Any] | None, says("As KubeVirt has it; a machine is ready when it succeeds.", **ANYTHING)
    ] = None
    liveness_probe: Annotated[
        dict[str, Any] | None, says("As KubeVirt has it; a machine is restarted when it fails.", **ANYTHING)
    ] = None
    termination_grace_period_seconds: Annotated[
        int | None,
        says("How long a guest may take to shut down.", format="int64", minimum=0, maximum=7 * 24 * 3600),
    ] = None
    restart_policy: Annotated[
        str,
        chooses(
            "Whether machines are restarted for a change that needs it. Never (if absent): the condition "
            "RestartRequired says which; WhenSafe: one by one, as budgets allow, by migration where that suffices.",
            RESTART_POLICIES,
        ),
    ] = "Never"
    vm_template: Annotated[
        dict[str, Any],
        says(
            "A part of a VirtualMachine (metadata.labels, metadata.annotations, spec), merged under what the other "
            "fields make, for what has no field here. What both say otherwise is a conflict, and not accepted.",
            maxProperties=4,
            **ANYTHING,
        ),
    ] = {}


class VmStatus(Base):
    """How one virtual machine stands."""

    name: Annotated[str, says("Of the VirtualMachine.", maxLength=253)]
    phase: Annotated[str, says("KubeVirt's word for it: Running, Starting, ErrorUnschedulable, …", maxLength=64)] = ""
    node: Annotated[str, says("Where it runs.", maxLength=253)] = ""
    ready: Annotated[bool, says("Whether it is ready.")] = False
    migratable: Annotated[bool | None, says("Whether it can migrate live, as far as KubeVirt knows.")] = None
    restart_required: Annotated[bool, says("Whether a change waits for its restart.")] = False
    reason: Annotated[str, says("Why it does not run, in one word.", maxLength=1024)] = ""
    message: Annotated[str, says("The same for people, with the smallest fix that is known.", maxLength=32768)] = ""


class WukongStatus(Base):
    """How the virtual machines stand."""

    observed_generation: Annotated[int, says("Of the spec that this is about.", format="int64")] = 0
    replicas: Annotated[int, says("How many VirtualMachines there are.", format="int32")] = 0
    ready_replicas: Annotated[int, says("How many of them are ready.", format="int32")] = 0
    node: Annotated[
        str, says("The node of the only virtual machine, or how many nodes they are on.", maxLength=253)
    ] = ""
    reason: Annotated[str, says("Why not all is well, in one word.", maxLength=1024)] = ""
    vms: Annotated[list[VmStatus], lists_by_name("One entry per virtual machine.", MOST_REPLICAS)] = []
    conditions: Annotated[
        list[Condition],
        lists(
            "Accepted, Bootable, Ready, RestartRequired and others, by type.",
            16,
            **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
        ),
    ] = []


class Wukong(Object):
    """One or several virtual machines, alike, and how they are placed."""

    most_bytes: ClassVar[int] = POLICY_BYTES

    spec: WukongSpec = field(default_factory=WukongSpec)
    status: WukongStatus = field(default_factory=WukongStatus)


def vm_names_of(wukong: Wukong) -> list[str]:
    """The names of the VirtualMachines that it asks for: its own, or numbered ones where it says `replicas`."""
    name, replicas = wukong.metadata.name, wukong.spec.replicas
    return [name] if replicas is None else [f"{name}-{index}" for index in range(replicas)]
