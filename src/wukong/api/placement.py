"""The group placement.novasphere.dev: PlacementPolicy and ClusterPlacementPolicy, how pods are to be placed.

Read by placement.compile and the `policy` controller; api.crds makes the CustomResourceDefinitions of these structs.
What the API server is to refuse stands beside each field (`_schema`). Reading is lenient all the same: one policy that
an older or newer CRD let through must not keep us from reading the others. placement.compile says what is wrong there.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from msgspec import Meta, field, json

from wukong.api.meta import Base, LabelSelector, Object

_encode = json.Encoder().encode
GROUP = "placement.novasphere.dev"
VERSION = "v1alpha1"
DEFAULT = "default"  # the ClusterPlacementPolicy that holds where no other matches
STRATEGIES = ("spot-first", "spot-preferred", "on-demand-first", "on-demand-only", "spot-only")
MODES = ("Enforce", "Observe")
RULE_TYPES = ("score", "filter", "prioritize")
PREEMPTION_POLICIES = ("Never", "PreemptLowerPriority")
# A config is somebody's own: a schema that keeps unknown fields bounds only its first level.
CONFIG_PROPERTIES = 64
CONFIG_DEPTH = 16
CONFIG_BYTES = 64 << 10
POLICY_BYTES = 128 << 10  # of a policy's JSON, managed fields included: to read more would hold up everybody
THRESHOLD = r"^(100(\.0{1,3})?|[1-9]?[0-9](\.[0-9]{1,3})?)%$"


def _schema(**words: Any) -> Meta:
    """What the CRD says of a field, beyond its type. Not checked when reading."""
    return Meta(extra_json_schema=words)


def _rule(rule: str, message: str) -> dict[str, str]:
    return {"rule": rule, "message": message}


Weight = Annotated[
    int,
    _schema(
        format="int32",
        **{"x-kubernetes-validations": [_rule("self >= 1 && self <= 100", "expected a weight from 1 to 100")]},
    ),
]
Threshold = Annotated[
    str,
    _schema(
        maxLength=8,
        **{
            "x-kubernetes-validations": [
                _rule(f"self.matches(r'{THRESHOLD}')", 'expected a percentage from 0% to 100%, such as "70%"')
            ]
        },
    ),
]
Amount = Annotated[
    str | int,
    _schema(
        **{
            "maxLength": 32,
            "x-kubernetes-int-or-string": True,
            "x-kubernetes-validations": [
                _rule(
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
        _schema(
            maxLength=317,
            **{
                "x-kubernetes-validations": [
                    _rule(
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
        _schema(maxItems=16, **{"x-kubernetes-list-type": "atomic"}),
    ] = []


class SchedulingRule(Base):
    """A rule by name: built in, or installed beside Wukong."""

    name: Annotated[
        str,
        Meta(description="Which rule, such as cost-aware."),
        _schema(minLength=1, maxLength=63, pattern="^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$"),
    ]
    type: Annotated[
        str,
        Meta(
            description="filter keeps or drops nodes, score gives them points, prioritize ranks those tied at the top."
        ),
        _schema(
            maxLength=32,
            **{
                "x-kubernetes-validations": [
                    _rule("self in ['score', 'filter', 'prioritize']", "expected score, filter or prioritize")
                ]
            },
        ),
    ]
    weight: Annotated[Weight | None, Meta(description="How much a score counts, 1 to 100; 1 if absent.")] = None
    config: Annotated[
        dict[str, Any],
        Meta(
            description=f"What the rule is told. At most {CONFIG_DEPTH} levels and {CONFIG_BYTES >> 10} KiB; a policy "
            "with more is not accepted."
        ),
        _schema(maxProperties=CONFIG_PROPERTIES, **{"x-kubernetes-preserve-unknown-fields": True}),
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
    _schema(
        **{
            "x-kubernetes-validations": [
                {
                    **_rule(
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
        _schema(maxLength=253, pattern="^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$"),
    ] = ""
    priority: Annotated[
        int | None,
        Meta(description="Counts instead of the pod's own priority where critical pods are told from others."),
        _schema(format="int32", minimum=-(2**31), maximum=2**31 - 1),
    ] = None
    preemption_policy: Annotated[
        str,
        Meta(description="Never: nobody is preempted for these pods."),
        _schema(
            maxLength=32,
            **{
                "x-kubernetes-validations": [
                    _rule("self in ['Never', 'PreemptLowerPriority']", "expected Never or PreemptLowerPriority")
                ]
            },
        ),
    ] = ""
    rules: Annotated[
        list[_Rule],
        Meta(description="Rules by name, for the extender and the scheduler of Wukong."),
        _schema(maxItems=32, **{"x-kubernetes-list-type": "atomic"}),
    ] = []


class Scheduling(Base):
    """The scheduling block, as a Wukong virtual machine has it."""

    resource_affinity: ResourceAffinity | None = None
    scheduling_policy: SchedulingPolicy | None = None


class Capacity(Base):
    """Spot or on-demand."""

    strategy: Annotated[
        str,
        Meta(
            description="spot-first: on spot nodes while one is left, else on-demand. spot-preferred: spot nodes get "
            "points. on-demand-first: on-demand while one is left, else spot. on-demand-only and spot-only: no other."
        ),
        _schema(
            maxLength=32,
            **{
                "x-kubernetes-validations": [
                    _rule(f"self in {list(STRATEGIES)}", f"expected one of {', '.join(STRATEGIES)}")
                ]
            },
        ),
    ]


class PlacementPolicySpec(Base):
    """Which pods, and how they are placed."""

    selector: Annotated[
        LabelSelector | None, Meta(description="The pods this is about, by their labels; all pods if absent or empty.")
    ] = None
    capacity: Capacity | None = None
    scheduling: Scheduling | None = None
    mode: Annotated[
        str,
        Meta(description="Observe: nothing is enforced; what would have been done is counted and reported."),
        _schema(
            default="Enforce",
            maxLength=16,
            **{"x-kubernetes-validations": [_rule("self in ['Enforce', 'Observe']", "expected Enforce or Observe")]},
        ),
    ] = "Enforce"


class ClusterPlacementPolicySpec(PlacementPolicySpec):
    """The same for pods of many namespaces."""

    namespace_selector: Annotated[
        LabelSelector | None,
        Meta(description="The namespaces this is about, by their labels; all if absent or empty."),
    ] = None


class Condition(Base):
    """One thing that is so, or not so."""

    type: Annotated[str, Meta(description="What it is about."), _schema(maxLength=316)]
    status: Annotated[str, Meta(description="Whether it is so."), _schema(enum=["True", "False", "Unknown"])]
    reason: Annotated[str, Meta(description="Why, in one word."), _schema(maxLength=1024)] = ""
    message: Annotated[str, Meta(description="Why, for people."), _schema(maxLength=32768)] = ""
    last_transition_time: Annotated[str, Meta(description="Since when."), _schema(format="date-time")] = ""
    observed_generation: Annotated[int, Meta(description="Of the spec this is about."), _schema(format="int64")] = 0


class PlacementPolicyStatus(Base):
    """How the policy stands."""

    observed_generation: Annotated[int, Meta(description="Of the spec this is about."), _schema(format="int64")] = 0
    conditions: Annotated[
        list[Condition],
        Meta(description="Accepted, by type."),
        _schema(maxItems=16, **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}),
    ] = []


class PlacementPolicy(Object):
    """How the pods of one namespace that a selector selects are placed."""

    most_bytes: ClassVar[int] = POLICY_BYTES

    spec: PlacementPolicySpec = field(default_factory=PlacementPolicySpec)
    status: PlacementPolicyStatus = field(default_factory=PlacementPolicyStatus)


class ClusterPlacementPolicy(Object):
    """How pods are placed anywhere in the cluster. The one named default holds where no other policy matches."""

    most_bytes: ClassVar[int] = POLICY_BYTES

    spec: ClusterPlacementPolicySpec = field(default_factory=ClusterPlacementPolicySpec)
    status: PlacementPolicyStatus = field(default_factory=PlacementPolicyStatus)
