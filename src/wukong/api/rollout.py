"""The kind Rollout of the group placement.novasphere.dev: a workload whose versions change blue/green or as a canary.

Read and written by controllers/rollout; api.crds makes the CustomResourceDefinition of these structs. Reading is
lenient, as in api.placement: what is wrong with a Rollout that got past the API server is said in its condition
Accepted. Not to be confused with Argo's Rollout.argoproj.io: both may be in one cluster.

What people ask for beyond the spec they write as annotations that name a revision (PROMOTE, ABORT): a request for one
revision says nothing of the next (docs/decisions/025).
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, field

from wukong.api.field_schemas import ANYTHING, RULES, chooses, lists, rule, says, schema
from wukong.api.meta import Base, LabelSelector, Object
from wukong.api.policy_parts import LARGEST_COUNT, SHARE
from wukong.api.policy_status import Condition
from wukong.api.shared_schemas import LABEL_KEY

HASH = (
    "placement.novasphere.dev/pod-template-hash"  # label of a version's ReplicaSet and pods, and in Services' selectors
)
REVISION = (
    "placement.novasphere.dev/revision"  # annotation of a ReplicaSet: counts the versions, the newest has the most
)
RULE = "placement.novasphere.dev/version-rule"  # annotation of a ReplicaSet: the term that we put into its template
TEMPLATE = "placement.novasphere.dev/template"  # annotation of a ReplicaSet: the template as its author wrote it
NODE_ORDER = "placement.novasphere.dev/node-order"  # annotation of a pod: the deletion cost that we gave it
PROMOTE = "placement.novasphere.dev/promote"  # annotation of a Rollout: REVISION, REVISION/STEP or REVISION/full
ABORT = "placement.novasphere.dev/abort"  # annotation of a Rollout: REVISION
HOSTNAME = "kubernetes.io/hostname"
DEADLOCK_CHOICES = ("Yield", "Promote")
DEFAULT_DEADLINE_SECONDS = 600
DEFAULT_HISTORY = 10
DEFAULT_DELAY_SECONDS = 30
ROLLOUT_FIELDS = (  # what a snapshot keeps of a spec beside the template
    *("spec.replicas", "spec.selector", "spec.strategy", "spec.paused", "spec.minReadySeconds"),
    *("spec.progressDeadlineSeconds", "spec.revisionHistoryLimit"),
)
MOST_REPLICAS = 100_000
MOST_SECONDS = 365 * 24 * 3600
MOST_STEPS = 64
MOST_TEMPLATE_BYTES = 128 * 1024  # kept as an annotation: all annotations of an object may have 256 KiB
MOST_VERSIONS = 64  # told of in a status
LONGEST_NAME = 240  # of a Rollout: a ReplicaSet's name is its own with a hash behind it
_DNS_LABEL = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
_Count = Annotated[int, schema(format="int32", minimum=0, maximum=MOST_REPLICAS)]
_Seconds = Annotated[int, schema(format="int32", minimum=0, maximum=MOST_SECONDS)]
_ServiceName = Annotated[str, schema(maxLength=63, pattern=f"{_DNS_LABEL}|^$")]
_Share = Annotated[
    int | str,
    schema(
        **{
            "maxLength": 16,
            "x-kubernetes-int-or-string": True,
            RULES: [
                rule(
                    f"type(self) == int ? self >= 0 && self <= {LARGEST_COUNT} : self.matches(r'{SHARE}')",
                    'expected a number of pods, or a share such as "25%"',
                )
            ],
        }
    ),
]


class RequiredSeparation(Base):
    """No pod of the new version on a node of another version: where there is no such node, it waits."""


class PreferredSeparation(Base):
    """Rather not on a node of another version."""

    weight: Annotated[
        int,
        says(
            "How much it counts beside other preferred rules, 1 to 100.",
            format="int32",
            **{RULES: [rule("self >= 1 && self <= 100", "expected a weight from 1 to 100")]},
        ),
    ] = 0


class VersionAntiAffinity(Base):
    """Keeps pods of the new version away from those of every other version that has pods."""

    required: Annotated[
        RequiredSeparation | None, Meta(description="The new version waits rather than share a node.")
    ] = field(name="requiredDuringSchedulingIgnoredDuringExecution", default=None)
    preferred: Annotated[
        PreferredSeparation | None, Meta(description="The new version shares a node where it must.")
    ] = field(name="preferredDuringSchedulingIgnoredDuringExecution", default=None)
    topology_key: Annotated[
        str,
        says("The node label whose values are kept apart; kubernetes.io/hostname if absent.", **LABEL_KEY),
    ] = HOSTNAME


_REQUIRED, _PREFERRED = (f"{word}DuringSchedulingIgnoredDuringExecution" for word in ("required", "preferred"))
_AntiAffinity = Annotated[
    VersionAntiAffinity | None,
    schema(
        **{
            RULES: [
                rule(
                    f"has(self.{_REQUIRED}) != has(self.{_PREFERRED})",
                    f"expected exactly one of {_REQUIRED} and {_PREFERRED}",
                )
            ]
        }
    ),
]


class BlueGreen(Base):
    """The new version comes up beside the old one, and then all traffic is switched to it at once."""

    active_service: Annotated[
        _ServiceName, Meta(description="The Service that traffic goes through. Its selector is switched.")
    ] = ""
    preview_service: Annotated[
        _ServiceName, Meta(description="A Service that selects the new version before it is promoted.")
    ] = ""
    preview_replicas: Annotated[
        _Count | None, Meta(description="Pods of the new version until it is promoted; all of them if absent.")
    ] = None
    auto_promotion_enabled: Annotated[
        bool, Meta(description="Whether the new version is promoted by itself once it is whole; true if absent.")
    ] = True
    auto_promotion_seconds: Annotated[
        _Seconds, Meta(description="How long it must have been whole before it is promoted by itself; 0 if absent.")
    ] = 0
    scale_down_delay_seconds: Annotated[
        _Seconds, Meta(description="How long the old version stays after a promotion; 30 if absent.")
    ] = DEFAULT_DELAY_SECONDS
    on_deadlock: Annotated[
        str,
        chooses(
            "What happens when the active version cannot replace a pod because the new version's pods keep it away: "
            "Yield (if absent): the new version goes until the active one is whole. Promote: it is promoted if it is "
            "whole, else it goes.",
            DEADLOCK_CHOICES,
        ),
    ] = "Yield"
    anti_affinity: _AntiAffinity = None


_BlueGreen = Annotated[
    BlueGreen | None,
    schema(
        **{
            RULES: [
                rule(
                    "has(self.activeService) && self.activeService != ''",
                    "expected the name of the Service that traffic goes through",
                    ".activeService",
                ),
                rule(
                    "!has(self.previewService) || self.previewService == '' || !has(self.activeService) "
                    "|| self.previewService != self.activeService",
                    "expected another Service than activeService",
                    ".previewService",
                ),
            ]
        }
    ),
]


class Pause(Base):
    """Waits for so long, or until somebody promotes it."""

    duration: Annotated[
        int | str | None,
        says(
            "Seconds, or a duration such as 90s, 10m or 1h; absent: until it is promoted.",
            **{
                "maxLength": 16,
                "x-kubernetes-int-or-string": True,
                RULES: [
                    rule(
                        f"type(self) == int ? self >= 0 && self <= {MOST_SECONDS} "
                        ": self.matches(r'^[0-9]{1,7}[smh]$')",
                        "expected seconds, or a duration such as 90s, 10m or 1h",
                    )
                ],
            },
        ),
    ] = None


class CanaryStep(Base):
    """One step: exactly one of the three."""

    set_weight: Annotated[
        int | None,
        says(
            "How many pods in a hundred are of the new version from here on.",
            format="int32",
            **{RULES: [rule("self >= 0 && self <= 100", "expected a weight from 0 to 100")]},
        ),
    ] = None
    set_replicas: Annotated[_Count | None, Meta(description="How many pods are of the new version from here on.")] = (
        None
    )
    pause: Pause | None = None


_CanaryStep = Annotated[
    CanaryStep,
    schema(
        **{
            RULES: [
                rule(
                    "[has(self.setWeight), has(self.setReplicas), has(self.pause)].filter(given, given).size() == 1",
                    "expected exactly one of setWeight, setReplicas and pause",
                )
            ]
        }
    ),
]


class Canary(Base):
    """The new version replaces the old one step by step; how much traffic it gets goes by its share of the pods."""

    steps: Annotated[list[_CanaryStep], lists("In this order; absent: a rolling update.", MOST_STEPS)] = []
    max_surge: Annotated[_Share, Meta(description="Pods beyond replicas, rounded up; 25% if absent.")] = "25%"
    max_unavailable: Annotated[_Share, Meta(description="Pods that may be missing, rounded down; 25% if absent.")] = (
        "25%"
    )
    stable_service: Annotated[_ServiceName, Meta(description="A Service that selects the stable version alone.")] = ""
    canary_service: Annotated[_ServiceName, Meta(description="A Service that selects the new version alone.")] = ""
    anti_affinity: _AntiAffinity = None


_Canary = Annotated[
    Canary | None,
    schema(
        **{
            RULES: [
                rule(
                    "!has(self.canaryService) || self.canaryService == '' || !has(self.stableService) "
                    "|| self.canaryService != self.stableService",
                    "expected another Service than stableService",
                    ".canaryService",
                )
            ]
        }
    ),
]


class RolloutStrategy(Base):
    """How a new version replaces the old one: exactly one of blueGreen (or bluegreen) and canary."""

    blue_green: _BlueGreen = None
    bluegreen: _BlueGreen = None
    canary: _Canary = None


_Strategy = Annotated[
    RolloutStrategy,
    schema(
        **{
            RULES: [
                rule(
                    "[has(self.blueGreen), has(self.bluegreen), has(self.canary)].filter(given, given).size() == 1",
                    "expected exactly one of blueGreen (or bluegreen) and canary",
                )
            ]
        }
    ),
]


class RolloutSpec(Base):
    """What runs, how many of it, and how a new version of it comes."""

    replicas: Annotated[_Count, says("How many pods.", default=1)] = 1
    selector: Annotated[
        LabelSelector | None,
        schema(
            **{RULES: [rule("self == oldSelf", "expected the selector to stay as it is. Make a new Rollout instead")]}
        ),
    ] = None
    template: Annotated[
        dict[str, Any], says("The pod template, as a Deployment has it. A change of it is a new version.", **ANYTHING)
    ] = {}
    min_ready_seconds: Annotated[_Seconds, Meta(description="How long a pod must be ready to be available.")] = 0
    progress_deadline_seconds: Annotated[
        _Seconds, Meta(description="How long it may take without progress until that is said; 600 if absent.")
    ] = DEFAULT_DEADLINE_SECONDS
    revision_history_limit: Annotated[
        _Count, Meta(description="How many old versions are kept to go back to; 10 if absent.")
    ] = DEFAULT_HISTORY
    paused: Annotated[bool, Meta(description="Nothing is promoted, and no step taken, while it is true.")] = False
    strategy: _Strategy = field(default_factory=RolloutStrategy)


class VersionStatus(Base):
    """How one version stands."""

    hash: Annotated[str, says("The value of its label.", maxLength=63)] = ""
    revision: Annotated[int, says("Counts the versions.", format="int64")] = 0
    role: Annotated[str, says("Active, Stable, Preview, Canary, Previous or Old.", maxLength=32)] = ""
    replicas: Annotated[int, says("How many pods it is to have.", format="int32")] = 0
    ready: Annotated[int, says("How many of its pods are ready.", format="int32")] = 0
    available: Annotated[int, says("How many of its pods are available.", format="int32")] = 0


class RolloutStatus(Base):
    """How it stands. The controller remembers nothing else."""

    observed_generation: Annotated[int, says("Of the spec that this is about.", format="int64")] = 0
    replicas: Annotated[int, says("Pods of all versions.", format="int32")] = 0
    updated_replicas: Annotated[int, says("Pods of the current version.", format="int32")] = 0
    ready_replicas: Annotated[int, says("Ready pods of all versions.", format="int32")] = 0
    available_replicas: Annotated[
        int, says("Available pods that get traffic: of the active version, or of all.", format="int32")
    ] = 0
    selector: Annotated[str, says("Of its pods, for autoscalers.", maxLength=16384)] = ""
    phase: Annotated[str, says("Progressing, Paused, Healthy, Degraded, Aborted or NotAccepted.", maxLength=32)] = ""
    message: Annotated[str, says("What it waits for.", maxLength=4096)] = ""
    stable: Annotated[str, says("The hash of the version that was promoted last.", maxLength=63)] = ""
    previous: Annotated[str, says("The hash of the version before that, as long as it has pods.", maxLength=63)] = ""
    current: Annotated[str, says("The hash of the version that the spec asks for.", maxLength=63)] = ""
    revision: Annotated[int, says("Of the current version.", format="int64")] = 0
    step: Annotated[int, says("Of a canary: the step at hand, from 0.", format="int32")] = 0
    paused_at: Annotated[str, says("When the pause at hand began.", maxLength=32)] = ""
    promoted_at: Annotated[str, says("When a version was promoted last.", maxLength=32)] = ""
    progressed_at: Annotated[str, says("When the current version last came closer to being whole.", maxLength=32)] = ""
    versions: Annotated[list[VersionStatus], lists("Versions that have pods, and the current one.", MOST_VERSIONS)] = []
    conditions: Annotated[
        list[Condition],
        lists(
            "Accepted, Available, Progressing and Separated, by type.",
            16,
            **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
        ),
    ] = []


class Rollout(Object):
    """A workload whose versions change blue/green or as a canary, kept apart on the nodes."""

    spec: RolloutSpec = field(default_factory=RolloutSpec)
    status: RolloutStatus = field(default_factory=RolloutStatus)


def blue_green_of(rollout: Rollout) -> BlueGreen | None:
    """Its blue/green strategy, whichever of the two ways it is spelt."""
    return rollout.spec.strategy.blue_green or rollout.spec.strategy.bluegreen


def services_of(rollout: Rollout) -> list[str]:
    """The names of the Services whose selectors it sets, the one that traffic goes through first."""
    blue_green, canary = blue_green_of(rollout), rollout.spec.strategy.canary
    names: list[str] = []
    if blue_green is not None:
        names = [blue_green.active_service, blue_green.preview_service]
    elif canary is not None:
        names = [canary.stable_service, canary.canary_service]
    return [name for name in names if name]
