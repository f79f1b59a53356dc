"""Affinity, tolerations and spread as our kinds have them: Kubernetes' own terms under the short names required and
preferred. Used by api.placement for pods, and by api.vm for virtual machines.
"""

from __future__ import annotations

from typing import Annotated

from wukong.api.core import (
    NodeSelectorTerm,
    PodAffinityTerm,
    PreferredSchedulingTerm,
    Toleration,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from wukong.api.field_schemas import RULES, lists, rule
from wukong.api.meta import Base

MOST_TERMS = 16  # of one list of affinity terms
MOST_TOLERATIONS = 32
MOST_CONSTRAINTS = 8  # topologySpreadConstraints


class PodAffinitySpec(Base):
    """Near, or apart from, pods with certain labels, within a topology domain."""

    required: Annotated[list[PodAffinityTerm], lists("All of them must hold, or the pod waits.", MOST_TERMS)] = []
    preferred: Annotated[list[WeightedPodAffinityTerm], lists("Wishes, by weight.", MOST_TERMS)] = []


class NodeAffinitySpec(Base):
    """By the labels of nodes. One of the required terms must hold (they are alternatives)."""

    required: Annotated[list[NodeSelectorTerm], lists("Alternatives, one of which must hold.", MOST_TERMS)] = []
    preferred: Annotated[list[PreferredSchedulingTerm], lists("Wishes, by weight.", MOST_TERMS)] = []


Tolerations = Annotated[list[Toleration], lists("Taints that do not keep them away.", MOST_TOLERATIONS)]
SpreadConstraints = Annotated[
    list[TopologySpreadConstraint],
    lists(
        "How evenly pods are spread over domains.",
        MOST_CONSTRAINTS,
        **{
            RULES: [
                rule(
                    "self.all(a, self.exists_one(b, a.topologyKey == b.topologyKey && "
                    "(has(a.whenUnsatisfiable) && a.whenUnsatisfiable == 'ScheduleAnyway') == "
                    "(has(b.whenUnsatisfiable) && b.whenUnsatisfiable == 'ScheduleAnyway')))",
                    "expected another topologyKey or whenUnsatisfiable in each of them",
                )
            ]
        },
    ),
]
