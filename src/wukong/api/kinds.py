"""Which struct reads which kind, and what a bundle of objects of mixed kinds looks like.

`Objects` is the typed content of a snapshot. Reading files is not done here (see wukong.cluster.files).
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from wukong.api.apps import DaemonSet, Deployment, PodDisruptionBudget, ReplicaSet, StatefulSet
from wukong.api.core import (
    Namespace,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PriorityClass,
    ReplicationController,
    Service,
)
from wukong.api.meta import Object
from wukong.api.placement import GROUP, VERSION, ClusterPlacementPolicy, PlacementPolicy

KINDS: dict[str, type[Object]] = {
    "Node": Node,
    "Pod": Pod,
    "Namespace": Namespace,
    "Service": Service,
    "ReplicationController": ReplicationController,
    "ReplicaSet": ReplicaSet,
    "StatefulSet": StatefulSet,
    "Deployment": Deployment,
    "DaemonSet": DaemonSet,
    "PodDisruptionBudget": PodDisruptionBudget,
    "PriorityClass": PriorityClass,
    "PersistentVolumeClaim": PersistentVolumeClaim,
    "PersistentVolume": PersistentVolume,
    "PlacementPolicy": PlacementPolicy,
    "ClusterPlacementPolicy": ClusterPlacementPolicy,
}
OURS = frozenset({"PlacementPolicy", "ClusterPlacementPolicy"})  # kinds a cluster has only where their CRD is installed
GROUPS: dict[str, str] = {  # kind → API group, for the kinds that are not in the core group
    "ReplicaSet": "apps",
    "StatefulSet": "apps",
    "Deployment": "apps",
    "DaemonSet": "apps",
    "PodDisruptionBudget": "policy",
    "PriorityClass": "scheduling.k8s.io",
    **dict.fromkeys(sorted(OURS), GROUP),
}
CLUSTER_SCOPED = frozenset({"Node", "Namespace", "PriorityClass", "PersistentVolume", "ClusterPlacementPolicy"})
WORKLOADS = frozenset({"ReplicationController", "ReplicaSet", "StatefulSet", "Deployment", "DaemonSet"})


@dataclass
class Objects:
    """The objects of one snapshot, by kind, in the order they were read."""

    nodes: list[Node] = field(default_factory=list)
    pods: list[Pod] = field(default_factory=list)
    namespaces: list[Namespace] = field(default_factory=list)
    services: list[Service] = field(default_factory=list)
    replication_controllers: list[ReplicationController] = field(default_factory=list)
    replica_sets: list[ReplicaSet] = field(default_factory=list)
    stateful_sets: list[StatefulSet] = field(default_factory=list)
    deployments: list[Deployment] = field(default_factory=list)
    daemon_sets: list[DaemonSet] = field(default_factory=list)
    pod_disruption_budgets: list[PodDisruptionBudget] = field(default_factory=list)
    priority_classes: list[PriorityClass] = field(default_factory=list)
    persistent_volume_claims: list[PersistentVolumeClaim] = field(default_factory=list)
    persistent_volumes: list[PersistentVolume] = field(default_factory=list)
    placement_policies: list[PlacementPolicy] = field(default_factory=list)
    cluster_placement_policies: list[ClusterPlacementPolicy] = field(default_factory=list)

    def of(self, kind: str) -> list[Object]:
        """The list that holds objects of this kind."""
        found: list[Object] = getattr(self, _LISTS[kind])
        return found

    def add(self, found: Object) -> None:
        self.of(type(found).__name__).append(found)

    def lacking(self) -> list[str]:
        """The kinds of which there is not a single object, in a fixed order."""
        return [kind for kind in KINDS if not self.of(kind)]


def plural(kind: str) -> str:
    """The lower-case plural resource name: Node → nodes, PriorityClass → priorityclasses."""
    word = kind.lower()
    if word.endswith("y"):
        return f"{word[:-1]}ies"
    return word + ("es" if word.endswith("s") else "s")


def version_of(kind: str) -> str:
    return VERSION if kind in OURS else "v1"


_LISTS: dict[str, str] = dict(zip(KINDS, (entry.name for entry in fields(Objects)), strict=True))
