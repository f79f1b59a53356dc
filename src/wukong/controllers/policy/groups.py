"""The pods of one controller as they stand: which run where, and whether anybody else is at work on them. Pure.

Used by splits.py. A group is what one ReplicaSet or StatefulSet owns. It is whole when there are as many pods as are
asked for, all of them ready, no older or newer version beside them, and no pod on a node that is leaving.
"""

from __future__ import annotations

from typing import NamedTuple

from wukong.api.apps import Deployment, ReplicaSet, StatefulSet, Workload
from wukong.api.core import NEVER_MOVE, Node, Pod
from wukong.api.kinds import PODS, REPLICA_SETS
from wukong.api.meta import controller_of
from wukong.api.resources import Key
from wukong.api.times import parse_time
from wukong.placement.capacity import is_spot
from wukong.placement.leaving_nodes import find_leaving_reason
from wukong.placement.pods.split import ON_DEMAND, SPOT
from wukong.state import State

_REVISION = "controller-revision-hash"


class Group(NamedTuple):
    owner: Workload  # a ReplicaSet or a StatefulSet
    pods: tuple[Pod, ...]  # that have not ended, in the order in which they stay: never-move first, then the oldest
    capacities: tuple[str, ...]  # of each: "spot" or "on-demand"; "" where it has no node
    wait: str  # why the pods are left alone for now; "" if the group is whole
    created_at: float  # when its youngest pod was created: the mirror does not keep when pods became ready

    @property
    def title(self) -> str:
        return f"{type(self.owner).__name__} {self.owner.key}"

    @property
    def version(self) -> str:
        """Another one after each rollout and each change of its size."""
        revisions = sorted({pod.metadata.labels.get(_REVISION, "") for pod in self.pods})
        return f"{self.owner.metadata.uid} {replicas_of(self.owner)} {' '.join(revisions[:2])}"


def find_owner(pod: Pod, state: State) -> Workload | None:
    """The ReplicaSet or StatefulSet of a pod, if it is mirrored. Pods of others are never moved for a share."""
    reference = controller_of(pod.metadata)
    owner = state.owner(pod.metadata.namespace, reference) if reference is not None else None
    return owner if isinstance(owner, ReplicaSet | StatefulSet) else None


def read_group(owner: Workload, state: State) -> Group:
    namespace, uid = owner.metadata.namespace, owner.metadata.uid
    keys = state.owners.owned_by(uid, PODS)
    pods = [pod for key in keys if (pod := state.get(Pod, key)) is not None and not pod.is_finished]
    pods = [pod for pod in pods if (reference := controller_of(pod.metadata)) is not None and reference.uid == uid]
    pods.sort(key=lambda pod: (not is_fixed(pod), _created_at(pod), pod.metadata.name))
    capacities = tuple(capacity_of(pod, state) for pod in pods)
    wait = _find_rollout(owner, namespace, state) or _find_missing(owner, pods, capacities, state)
    created_at = max(map(_created_at, pods), default=0.0)
    return Group(owner, tuple(pods), capacities, wait, created_at)


def capacity_of(pod: Pod, state: State) -> str:
    node = state.get(Node, Key("", pod.spec.node_name)) if pod.spec.node_name else None
    if node is None:
        return ""
    return SPOT if is_spot(node.metadata.labels) else ON_DEMAND


def is_fixed(pod: Pod) -> bool:
    """Whether its author asks that nobody moves it. The gate would refuse to."""
    return pod.metadata.annotations.get(NEVER_MOVE) == "true"


def replicas_of(owner: Workload) -> int:
    return 1 if owner.spec.replicas is None else owner.spec.replicas


def _find_rollout(owner: Workload, namespace: str, state: State) -> str:
    """Whether another version is there or on its way."""
    if owner.metadata.deletion_timestamp is not None:
        return "it is being deleted"
    reference = controller_of(owner.metadata)
    if not isinstance(owner, ReplicaSet) or reference is None:
        return ""
    deployment = state.owner(namespace, reference)
    if isinstance(deployment, Deployment) and (deployment.spec.paused or replicas_of(deployment) != replicas_of(owner)):
        return "its Deployment is paused, or at work"
    siblings = (state.get(ReplicaSet, key) for key in state.owners.owned_by(reference.uid, REPLICA_SETS))
    others = [sibling for sibling in siblings if sibling is not None and sibling.metadata.uid != owner.metadata.uid]
    if any(replicas_of(other) or state.owners.owned_by(other.metadata.uid, PODS) for other in others):
        return "another version has pods"
    return ""


def _find_missing(owner: Workload, pods: list[Pod], capacities: tuple[str, ...], state: State) -> str:
    if any(pod.is_terminating for pod in pods):
        return "a pod is going"
    if len(pods) != replicas_of(owner):
        return "pods are missing, or too many"
    if len({pod.metadata.labels.get(_REVISION) for pod in pods}) > 1:
        return "another version has pods"  # a StatefulSet is being updated, or only down to its partition
    if "" in capacities:
        return "a pod has no node"
    if not all(map(_is_ready, pods)):
        return "a pod is not ready"
    nodes = (state.get(Node, Key("", pod.spec.node_name)) for pod in pods)
    if any(node is None or find_leaving_reason(node) or node.spec.unschedulable for node in nodes):
        return "a node is leaving or cordoned"
    return ""


def _is_ready(pod: Pod) -> bool:
    return any(condition.type == "Ready" and condition.status == "True" for condition in pod.status.conditions)


def _created_at(pod: Pod) -> float:
    return parse_time(pod.metadata.creation_timestamp) or 0.0
