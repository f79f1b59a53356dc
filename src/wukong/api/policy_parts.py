"""The parts of a policy that say what becomes of pods: capacity, versions, priority, budget.

Used by api.placement, as fields of a policy's spec. What the API server is to refuse stands beside each field.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from wukong.api.field_schemas import RULES, chooses, rule, says, schema
from wukong.api.meta import Base
from wukong.api.shared_schemas import SUBDOMAIN, TOPOLOGY_KEY

STRATEGIES = ("spot-first", "spot-preferred", "on-demand-first", "on-demand-only", "spot-only")
FALLBACKS = ("OnDemand", "Wait")
PREEMPTION_POLICIES = ("Never", "PreemptLowerPriority")
HIGHEST_PRIORITY = 1_000_000_000  # of PriorityClasses that are not the system's
LARGEST_COUNT = 2**31 - 1
HOSTNAME = "kubernetes.io/hostname"
SHARE = "^(100|[1-9]?[0-9])%$"
Weight = Annotated[
    int,
    schema(
        format="int32",
        **{RULES: [rule("self >= 1 && self <= 100", "expected a weight from 1 to 100")]},
    ),
]
# A number of pods, or a part of them.
Share = Annotated[
    int | str,
    schema(
        **{
            "maxLength": 8,
            "x-kubernetes-int-or-string": True,
            RULES: [
                rule(
                    f"type(self) == int ? self >= 0 && self <= {LARGEST_COUNT} : self.matches(r'{SHARE}')",
                    'expected a number of pods, such as 2, or a share from "0%" to "100%", such as "30%"',
                )
            ],
        }
    ),
]


class Capacity(Base):
    """Spot or on-demand."""

    strategy: Annotated[
        str,
        Meta(
            description="spot-first: on spot nodes while one is left, else on-demand. spot-preferred: spot nodes get "
            "points. on-demand-first: on-demand while one is left, else spot. on-demand-only and spot-only: no other."
        ),
        schema(
            maxLength=32,
            **{RULES: [rule(f"self in {list(STRATEGIES)}", f"expected one of {', '.join(STRATEGIES)}")]},
        ),
    ]
    on_demand_base: Annotated[
        Share | None,
        Meta(
            description="How many pods of each owner are kept on demand at least: a number, or a share such as "
            '"30%", rounded up.'
        ),
    ] = None
    spot_percent: Annotated[
        int | None,
        says(
            "How many of each owner's pods are on spot nodes at most, in percent, rounded down; all beyond "
            "onDemandBase if absent.",
            format="int32",
            **{RULES: [rule("self >= 0 && self <= 100", "expected a percentage from 0 to 100")]},
        ),
    ] = None
    fallback: Annotated[
        str,
        chooses(
            "What a pod meant for spot does while there is no room: OnDemand (if absent), or Wait.",
            FALLBACKS,
        ),
    ] = ""


CheckedCapacity = Annotated[
    Capacity,
    schema(
        **{
            RULES: [
                rule(
                    "!(self.strategy in ['spot-only', 'on-demand-only']) "
                    "|| !has(self.onDemandBase) && !has(self.spotPercent)",
                    "expected a strategy that leaves a choice, such as spot-first, with onDemandBase or spotPercent",
                    ".strategy",
                ),
                rule(
                    "!has(self.fallback) || has(self.onDemandBase) || has(self.spotPercent)",
                    "expected onDemandBase or spotPercent beside fallback; without them the strategy says what "
                    "happens: spot-only waits",
                    ".fallback",
                ),
            ]
        }
    ),
]


class VersionPreference(Base):
    """A wish."""

    weight: Annotated[Weight, Meta(description="How much it counts beside other wishes, 1 to 100.")]


class VersionAntiAffinity(Base):
    """Keeps pods of different versions of one owner on different nodes, or in different domains."""

    required: Annotated[
        bool, Meta(description="true: a pod waits rather than share a domain with another version.")
    ] = False
    preferred: Annotated[VersionPreference | None, Meta(description="Or a wish, by weight.")] = None
    topology_key: Annotated[str, schema(**TOPOLOGY_KEY)] = HOSTNAME


CheckedVersions = Annotated[
    VersionAntiAffinity,
    schema(
        **{
            RULES: [
                rule(
                    "(has(self.required) && self.required) != has(self.preferred)",
                    "expected either required: true or preferred with a weight",
                )
            ]
        }
    ),
]


class Priority(Base):
    """How urgent these pods are: the PriorityClass that they get."""

    value: Annotated[
        int | None,
        says(
            f"Its value, at most {HIGHEST_PRIORITY}; the class is made where it is missing.",
            format="int32",
            **{
                RULES: [
                    rule(
                        f"self <= {HIGHEST_PRIORITY}",
                        f"expected at most {HIGHEST_PRIORITY}, the highest that is not the system's",
                    )
                ]
            },
        ),
    ] = None
    class_name: Annotated[
        str, says("Or the name of a PriorityClass.", minLength=1, maxLength=253, pattern=SUBDOMAIN)
    ] = ""
    preemption_policy: Annotated[
        str, chooses("With value: Never, or PreemptLowerPriority (if absent).", PREEMPTION_POLICIES)
    ] = ""


CheckedPriority = Annotated[
    Priority,
    schema(
        **{
            RULES: [
                rule("has(self.value) != has(self.className)", "expected either value or className"),
                rule(
                    "!has(self.preemptionPolicy) || has(self.value)",
                    "expected no preemptionPolicy with className: the class has its own",
                    ".preemptionPolicy",
                ),
            ]
        }
    ),
]


class Disruption(Base):
    """How many of the pods that the selector selects may be evicted at a time: a PodDisruptionBudget."""

    min_available: Annotated[Share | None, Meta(description="So many stay: a number, or a share rounded up.")] = None
    max_unavailable: Annotated[
        Share | None, Meta(description="Or so many may be away: a number, or a share rounded up.")
    ] = None


CheckedDisruption = Annotated[
    Disruption,
    schema(
        **{
            RULES: [
                rule(
                    "has(self.minAvailable) != has(self.maxUnavailable)",
                    "expected either minAvailable or maxUnavailable",
                )
            ]
        }
    ),
]
