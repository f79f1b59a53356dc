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
    "VolumeRestrictions",
    "NodeVolumeLimits",
    "VolumeBinding",
    "VolumeZone",
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
VOLUME_SCORE = ("VolumeBinding", 1)  # where the version scores storage
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


_SAMPLED_FROM = 100  # with fewer nodes than this, all are looked at
_NODES_PER_PERCENT = 125  # so many more nodes, one percent less of them
_LEAST_PERCENTAGE = 5
_ALL = 100


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
    percentage_of_nodes_to_score: int = 0  # kube-scheduler's, 0: by their number. Here every node is considered
    extenders: tuple[ExtenderEntry, ...] = ()  # asked after the filters, in this order; the engine asks nobody

    @property
    def has_resource_claims(self) -> bool:
        """Whether DynamicResources is on: it scores 0, or has its word in messages, or both."""
        return self.has_claims_message or "DynamicResources" in self.zero_scores


def default_profile(version: Version = VERSIONS[DEFAULT]) -> Profile:
    """kube-scheduler's default profile in this version."""
    return Profile(
        version=version,
        filters=order_filters(FILTERS, version),
        scores=list_scores(version),
        zero_scores=version.zero_scores,
        has_claims_message=version.claims_message,
    )


def list_scores(version: Version) -> tuple[tuple[str, int], ...]:
    """The scores of the default profile in this version, with their weights."""
    return (*SCORES, VOLUME_SCORE) if version.storage_capacity_scores else SCORES


def count_sampled_nodes(nodes: int, percentage: int = 0) -> int:
    """How many feasible nodes kube-scheduler looks for among so many before it picks one of them."""
    if nodes < _SAMPLED_FROM or percentage >= _ALL:
        return nodes
    share = percentage or max(_ALL // 2 - nodes // _NODES_PER_PERCENT, _LEAST_PERCENTAGE)
    return max(nodes * share // _ALL, _SAMPLED_FROM)


def order_filters(filters: tuple[str, ...], version: Version) -> tuple[str, ...]:
    """The default order of these filters in this version."""
    first = ("NodeName", "NodeUnschedulable") if version.node_name_first else ("NodeUnschedulable", "NodeName")
    return tuple(name for name in first if name in filters) + tuple(name for name in filters if name not in first)
