"""A scheduler profile as a value: which plugins run, in which order, with which weights and arguments.

Shared by the engine and the rules so that both read the same settings. Made by `default_profile` or from a
KubeSchedulerConfiguration (scheduler_config.py).
"""

from __future__ import annotations

from typing import Literal

import msgspec

from wukong.api.core import NodeAffinity, TopologySpreadConstraint
from wukong.api.versions import DEFAULT, VERSIONS, Version

Strategy = Literal["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"]
MAX_SCORE = 100

FILTERS = (
    "NodeUnschedulable",
    "NodeName",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "VolumeBinding",
    "PodTopologySpread",
    "InterPodAffinity",
)
SCORES = (
    ("TaintToleration", 3),
    ("NodeAffinity", 2),
    ("NodeResourcesFit", 1),
    ("PodTopologySpread", 2),
    ("InterPodAffinity", 2),
    ("NodeResourcesBalancedAllocation", 1),
    ("ImageLocality", 1),
)
SYSTEM_DEFAULT_CONSTRAINTS = (
    TopologySpreadConstraint(max_skew=3, topology_key="kubernetes.io/hostname", when_unsatisfiable="ScheduleAnyway"),
    TopologySpreadConstraint(
        max_skew=5, topology_key="topology.kubernetes.io/zone", when_unsatisfiable="ScheduleAnyway"
    ),
)


class WeightedResource(msgspec.Struct, frozen=True):
    name: str
    weight: int = 1


class ShapePoint(msgspec.Struct, frozen=True):
    """One corner of the RequestedToCapacityRatio line: utilization in percent, score 0–10."""

    utilization: int
    score: int


class FitArguments(msgspec.Struct, frozen=True):
    strategy: Strategy = "LeastAllocated"
    resources: tuple[WeightedResource, ...] = (WeightedResource("cpu"), WeightedResource("memory"))
    shape: tuple[ShapePoint, ...] = ()
    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()


class ExtenderEntry(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A scheduler extender as a configuration names it: whom kube-scheduler asks, for what, and what that counts."""

    url_prefix: str = ""
    filter_verb: str = ""  # "": not asked for this
    prioritize_verb: str = ""
    preempt_verb: str = ""
    bind_verb: str = ""
    weight: int = 0  # its scores 0–10 are added × weight × 10
    enable_https: bool = msgspec.field(name="enableHTTPS", default=False)
    tls_config: dict[str, object] = {}
    http_timeout: str = ""
    node_cache_capable: bool = False
    managed_resources: tuple[ManagedResource, ...] = ()  # asked only about pods that want one of these; none: all pods
    ignorable: bool = False


class ManagedResource(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    name: str
    ignored_by_scheduler: bool = False


class Profile(msgspec.Struct, frozen=True):
    """Everything that decides how a pod is placed, apart from the cluster and the pod."""

    version: Version = VERSIONS[DEFAULT]
    filters: tuple[str, ...] = FILTERS
    scores: tuple[tuple[str, int], ...] = SCORES
    zero_scores: tuple[str, ...] = VERSIONS[DEFAULT].zero_scores
    has_preemption: bool = True
    has_claims_message: bool = VERSIONS[DEFAULT].claims_message
    fit: FitArguments = FitArguments()
    balanced_resources: tuple[WeightedResource, ...] = (WeightedResource("cpu"), WeightedResource("memory"))
    hard_pod_affinity_weight: int = 1
    ignore_preferred_terms_of_existing_pods: bool = False
    default_constraints: tuple[TopologySpreadConstraint, ...] = SYSTEM_DEFAULT_CONSTRAINTS
    has_system_default_constraints: bool = True
    added_affinity: NodeAffinity | None = None
    extenders: tuple[ExtenderEntry, ...] = ()  # asked after the filters, in this order; the engine asks nobody


def default_profile(version: Version = VERSIONS[DEFAULT]) -> Profile:
    """kube-scheduler's default profile in this version."""
    return Profile(
        version=version,
        filters=order_filters(FILTERS, version),
        zero_scores=version.zero_scores,
        has_claims_message=version.claims_message,
    )


def order_filters(filters: tuple[str, ...], version: Version) -> tuple[str, ...]:
    """The default order of these filters in this version."""
    first = ("NodeName", "NodeUnschedulable") if version.node_name_first else ("NodeUnschedulable", "NodeName")
    return tuple(name for name in first if name in filters) + tuple(name for name in filters if name not in first)
