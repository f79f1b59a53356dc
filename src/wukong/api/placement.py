"""The group placement.novasphere.dev: PlacementPolicy and ClusterPlacementPolicy, how pods are to be placed.

Read by placement.compile and the `policy` controller; api.crds makes the CustomResourceDefinitions of these structs.
What the API server is to refuse stands beside each field (`schema`). Reading is lenient all the same: one policy that
an older or newer CRD let through must not keep us from reading the others. placement.compile says what is wrong there.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from msgspec import Meta, field, json

from wukong.api.field_schemas import RULES, chooses, rule, schema
from wukong.api.meta import Base, LabelSelector, Object
from wukong.api.pod_affinity import NodeAffinitySpec, PodAffinitySpec, SpreadConstraints, Tolerations
from wukong.api.policy_parts import (
    CheckedCapacity,
    CheckedDisruption,
    CheckedPriority,
    CheckedVersions,
    Weight,
)
from wukong.api.policy_status import PlacementPolicyStatus

_encode = json.Encoder().encode
GROUP = "placement.novasphere.dev"
VERSION = "v1alpha1"
DEFAULT = "default"  # the ClusterPlacementPolicy that holds where no other matches
MODES = ("Enforce", "Observe")
APPLIES = ("Admission", "None")
ON_DEADLINE = ("Leave", "Delete")
RULE_TYPES = ("score", "filter", "prioritize")
# A config is somebody's own: a schema that keeps unknown fields bounds only its first level.
CONFIG_PROPERTIES = 64
CONFIG_DEPTH = 16
CONFIG_BYTES = 64 << 10
POLICY_BYTES = 128 << 10  # of a policy's JSON, managed fields included: to read more would hold up everybody
THRESHOLD = r"^(100(\.0{1,3})?|[1-9]?[0-9](\.[0-9]{1,3})?)%$"


Threshold = Annotated[
    str,
    schema(
        maxLength=8,
        **{RULES: [rule(f"self.matches(r'{THRESHOLD}')", 'expected a percentage from 0% to 100%, such as "70%"')]},
    ),
]
Amount = Annotated[
    str | int,
    schema(
        **{
            "maxLength": 32,
            "x-kubernetes-int-or-string": True,
            RULES: [
                rule(
                    "type(self) == int ? self >= 0 : isQuantity(self) && quantity(self).compareTo(quantity('0')) >= 0",
                    'expected a quantity that is not negative, such as "4Gi", "500m" or "1"',
                )
            ],
        }
    ),
]


class ResourcePreference(Base):
    """Prefer nodes less used than the threshold."""

    weight: Annotated[Weight, Meta(description="How much this counts beside the other preferences, 1 to 100.")]
    threshold: Annotated[Threshold, Meta(description='Nodes used less than this are preferred, such as "70%".')]


class ResourceRequirement(Base):
    """A node must have this much free, by requests."""

    resource_type: Annotated[
        str,
        Meta(description="cpu, memory, storage, gpu, or the full name of an extended resource."),
        schema(
            maxLength=317,
            **{
                RULES: [
                    rule(
                        "self in ['cpu', 'memory', 'storage', 'gpu'] || self.matches(r'^[a-z0-9.-]+/[A-Za-z0-9._-]+$')",
                        "expected cpu, memory, storage, gpu or an extended resource such as example.com/fpga",
                    )
                ]
            },
        ),
    ]
    min_available: Annotated[Amount, Meta(description="What must be free; the pod's own request, if that is more.")]


class ResourceAffinity(Base):
    """Where resources are plenty: by what is really used (preferred), and by what is free (required)."""

    preferred_cpu: ResourcePreference | None = field(name="preferredCPU", default=None)
    preferred_memory: ResourcePreference | None = None
    preferred_storage: ResourcePreference | None = None
    required_resources: Annotated[
        list[ResourceRequirement],
        Meta(description="What a node must have free; all of them."),
        schema(maxItems=16, **{"x-kubernetes-list-type": "atomic"}),
    ] = []


class SchedulingRule(Base):
    """A rule by name: built in, or installed beside Wukong."""

    name: Annotated[
        str,
        Meta(description="Which rule, such as cost-aware."),
        schema(minLength=1, maxLength=63, pattern="^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$"),
    ]
    type: Annotated[
        str,
        Meta(
            description="filter keeps or drops nodes, score gives them points, prioritize ranks those tied at the top."
        ),
        schema(
            maxLength=32,
            **{RULES: [rule("self in ['score', 'filter', 'prioritize']", "expected score, filter or prioritize")]},
        ),
    ]
    weight: Annotated[Weight | None, Meta(description="How much a score counts, 1 to 100; 1 if absent.")] = None
    config: Annotated[
        dict[str, Any],
        Meta(
            description=f"What the rule is told. At most {CONFIG_DEPTH} levels and {CONFIG_BYTES >> 10} KiB; a policy "
            "with more is not accepted."
        ),
        schema(maxProperties=CONFIG_PROPERTIES, **{"x-kubernetes-preserve-unknown-fields": True}),
    ] = {}

    def __post_init__(self) -> None:
        """Raises ValueError, which decoding turns into a problem with its place, for a config that is too large."""
        try:
            size = len(_encode(self.config))
        except RecursionError:
            size = 0  # deeper than anything
        if size > CONFIG_BYTES:  # first: looking at the levels of half a million lists takes half a second
            raise ValueError(f"expected a config of at most {CONFIG_BYTES >> 10} KiB, got {size >> 10} KiB")
        if is_deeper(self.config, CONFIG_DEPTH):
            raise ValueError(f"expected a config of at most {CONFIG_DEPTH} levels, got more")


def is_deeper(value: Any, levels: int) -> bool:
    """Whether a value is nested deeper than this. Level by level, for recursing would fail on what it looks for."""
    level = [value]
    for _ in range(levels):
        level = [
            entry
            for container in level
            for entry in (container.values() if isinstance(container, dict) else container)
            if isinstance(entry, dict | list)
        ]
        if not level:
            return False
    return True


_Rule = Annotated[
    SchedulingRule,
    schema(
        **{
            RULES: [
                {
                    **rule(
                        "!has(self.weight) || self.type == 'score'",
                        "expected a weight only with type score; leave it out, or make this a score",
                    ),
                    "fieldPath": ".weight",
                }
            ]
        }
    ),
]


class SchedulingPolicy(Base):
    """Who schedules these pods, how urgent they are, and by which rules."""

    scheduler_name: Annotated[
        str,
        Meta(description="The scheduler these pods are meant for. A policy does not change pods: they must name it."),
        schema(maxLength=253, pattern="^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$"),
    ] = ""
    priority: Annotated[
        int | None,
        Meta(description="Counts instead of the pod's own priority where critical pods are told from others."),
        schema(format="int32", minimum=-(2**31), maximum=2**31 - 1),
    ] = None
    preemption_policy: Annotated[
        str,
        Meta(description="Never: nobody is preempted for these pods."),
        schema(
            maxLength=32,
            **{RULES: [rule("self in ['Never', 'PreemptLowerPriority']", "expected Never or PreemptLowerPriority")]},
        ),
    ] = ""
    rules: Annotated[
        list[_Rule],
        Meta(description="Rules by name, for the extender and the scheduler of Wukong."),
        schema(maxItems=32, **{"x-kubernetes-list-type": "atomic"}),
    ] = []


class Scheduling(Base):
    """The scheduling block, as a Wukong virtual machine has it."""

    resource_affinity: ResourceAffinity | None = None
    scheduling_policy: SchedulingPolicy | None = None


class PolicyScheduling(Scheduling):
    """Where these pods run. Of a policy: what is said of affinity, tolerations and spread is added to pods."""

    pod_affinity: Annotated[
        PodAffinitySpec | None, Meta(description="In the same domain as pods with these labels.")
    ] = None
    pod_anti_affinity: Annotated[
        PodAffinitySpec | None, Meta(description="In another domain than pods with these labels.")
    ] = None
    node_affinity: NodeAffinitySpec | None = None
    tolerations: Tolerations = []
    topology_spread_constraints: SpreadConstraints = []


class PlacementPolicySpec(Base):
    """Which pods, and how they are placed."""

    selector: Annotated[
        LabelSelector | None, Meta(description="The pods this is about, by their labels; all pods if absent or empty.")
    ] = None
    capacity: CheckedCapacity | None = None
    scheduling: PolicyScheduling | None = None
    version_anti_affinity: CheckedVersions | None = None
    priority: CheckedPriority | None = None
    disruption: CheckedDisruption | None = None
    critical: Annotated[
        bool, Meta(description="true: on demand first, and with a high priority, that of value 1000 if none is given.")
    ] = False
    apply: Annotated[
        str,
        chooses(
            "Admission (if absent): pods are changed as they are created. None: only the extender and the scheduler of "
            "Wukong go by this policy.",
            APPLIES,
        ),
    ] = "Admission"
    on_deadline: Annotated[
        str,
        chooses(
            "What becomes of a pod that cannot be evicted before its spot node goes. Leave (if absent): its budget "
            "counts, and it goes with the machine. Delete: it is deleted while there is time for its grace.",
            ON_DEADLINE,
        ),
    ] = "Leave"
    mode: Annotated[
        str,
        Meta(description="Observe: nothing is enforced; what would have been done is counted and reported."),
        schema(
            default="Enforce",
            maxLength=16,
            **{RULES: [rule("self in ['Enforce', 'Observe']", "expected Enforce or Observe")]},
        ),
    ] = "Enforce"


def _needs_selector(field_name: str, why: str) -> dict[str, str]:
    return rule(
        f"!has(self.{field_name}) || has(self.selector) && (has(self.selector.matchLabels) && "
        "size(self.selector.matchLabels) > 0 || has(self.selector.matchExpressions) && "
        "size(self.selector.matchExpressions) > 0)",
        f"expected a selector with labels beside {field_name}: {why}",
        f".{field_name}",
    )


_SPEC_RULES = schema(
    **{
        RULES: [
            rule(
                "!has(self.critical) || !self.critical || !has(self.capacity) || "
                "self.capacity.strategy in ['on-demand-first', 'on-demand-only'] && "
                "!has(self.capacity.onDemandBase) && !has(self.capacity.spotPercent)",
                "expected no capacity, or on-demand-first or on-demand-only without onDemandBase and spotPercent, with "
                "critical: true",
                ".critical",
            ),
            _needs_selector("versionAntiAffinity", "it is about the versions of one application"),
            _needs_selector("disruption", "a budget is about pods by their labels"),
        ]
    }
)


class ClusterPlacementPolicySpec(PlacementPolicySpec):
    """The same for pods of many namespaces."""

    namespace_selector: Annotated[
        LabelSelector | None,
        Meta(description="The namespaces this is about, by their labels; all if absent or empty."),
    ] = None


class PlacementPolicy(Object):
    """How the pods of one namespace that a selector selects are placed."""

    most_bytes: ClassVar[int] = POLICY_BYTES

    spec: Annotated[PlacementPolicySpec, _SPEC_RULES] = field(default_factory=PlacementPolicySpec)
    status: PlacementPolicyStatus = field(default_factory=PlacementPolicyStatus)


class ClusterPlacementPolicy(Object):
    """How pods are placed anywhere in the cluster. The one named default holds where no other policy matches."""

    most_bytes: ClassVar[int] = POLICY_BYTES

    spec: Annotated[ClusterPlacementPolicySpec, _SPEC_RULES] = field(default_factory=ClusterPlacementPolicySpec)
    status: PlacementPolicyStatus = field(default_factory=PlacementPolicyStatus)
