"""The workloads whose pods leave: who is scaled for a pod, which of its pods go, and why it cannot be scaled. Pure.

Used by moves.py and evictions.py, which so never both take care of one pod. A workload is scaled at its topmost
controller: the Deployment, or a ReplicaSet that belongs to none.
"""

from __future__ import annotations

from typing import NamedTuple

from wukong.api.apps import Deployment, ReplicaSet, ScaledWorkload
from wukong.api.autoscaling import HorizontalPodAutoscaler
from wukong.api.core import NEVER_MOVE, Pod
from wukong.api.kinds import DEPLOYMENTS, PODS, REPLICA_SETS
from wukong.api.meta import controller_of
from wukong.api.resources import Key, Resource, key_of
from wukong.controllers.spot.quotas import find_quota_refusal
from wukong.controllers.spot.records import LeavingNodes
from wukong.state import State

SIZE_PENDING = "its ReplicaSet does not have its size yet"
_KINDS: dict[str, tuple[Resource, type[ScaledWorkload]]] = {
    "deployment": (DEPLOYMENTS, Deployment),
    "replicaset": (REPLICA_SETS, ReplicaSet),
}


class OwnerPods(NamedTuple):
    """A workload and its pods that have not ended and are not about to."""

    owner: ScaledWorkload
    leaving: tuple[Pod, ...]  # on nodes with a record, by name
    staying: tuple[Pod, ...]  # all others, by name

    @property
    def resource(self) -> Resource:
        return DEPLOYMENTS if isinstance(self.owner, Deployment) else REPLICA_SETS

    @property
    def replicas(self) -> int:
        return 1 if self.owner.spec.replicas is None else self.owner.spec.replicas


def find_scaled_owner(pod: Pod, state: State) -> ScaledWorkload | None:
    """Whom to scale so that another pod like this one comes; None if nobody can be."""
    reference = controller_of(pod.metadata)
    replica_set = state.owner(pod.metadata.namespace, reference) if reference is not None else None
    if not isinstance(replica_set, ReplicaSet):
        return None
    above = controller_of(replica_set.metadata)
    if above is None:
        return replica_set
    deployment = state.owner(pod.metadata.namespace, above)
    return deployment if isinstance(deployment, Deployment) else None


def move_key_of(owner: ScaledWorkload) -> Key:
    """Of the Move of a workload, whether there is one or not: one at a time."""
    return Key(owner.metadata.namespace, f"{type(owner).__name__.lower()}.{owner.metadata.name}")


def find_owner_of_move(key: Key, state: State) -> ScaledWorkload | None:
    kind, _, name = key.name.partition(".")
    if kind not in _KINDS:
        return None
    return state.get(_KINDS[kind][1], Key(key.namespace, name))


def read_owner_pods(owner: ScaledWorkload, state: State) -> OwnerPods:
    replica_sets = list_replica_sets(owner, state)
    pods = [pod for replica_set in replica_sets for pod in list_pods(replica_set, state)]
    pods.sort(key=lambda pod: pod.metadata.name)
    leaving = state.index_of(LeavingNodes).records
    return OwnerPods(
        owner,
        tuple(pod for pod in pods if pod.spec.node_name in leaving),
        tuple(pod for pod in pods if pod.spec.node_name not in leaving),
    )


def list_replica_sets(owner: ScaledWorkload, state: State) -> list[ReplicaSet]:
    if isinstance(owner, ReplicaSet):
        return [owner]
    keys = sorted(state.owners.owned_by(owner.metadata.uid, REPLICA_SETS))
    return [replica_set for key in keys if (replica_set := state.get(ReplicaSet, key)) is not None]


def list_pods(replica_set: ReplicaSet, state: State) -> list[Pod]:
    """Its pods that have not ended and are not being deleted."""
    pods = (state.get(Pod, key) for key in sorted(state.owners.owned_by(replica_set.metadata.uid, PODS)))
    return [pod for pod in pods if pod is not None and not pod.is_finished and not pod.is_terminating]


def find_obstacle(pods: OwnerPods, state: State) -> str:
    """Why this workload cannot be scaled now so that its pods move; "" if it can."""
    owner = pods.owner
    if owner.metadata.deletion_timestamp is not None:
        return "it is being deleted"
    if owner.spec.paused:
        return "it is paused"
    if isinstance(owner, Deployment) and (reason := _find_rollout(pods, state)):
        return reason
    if pods.replicas == 0:
        return "it is scaled to zero"
    autoscaler = find_autoscaler(owner, state)
    if autoscaler is not None and (reason := _find_limit(autoscaler, pods)):
        return reason
    leaving = [pod for pod in pods.leaving if not is_fixed(pod)]
    return find_quota_refusal(leaving[0], len(leaving), state) if leaving else ""


def find_autoscaler(owner: ScaledWorkload, state: State) -> HorizontalPodAutoscaler | None:
    """Who sets the size of this workload."""
    meta = owner.metadata
    for key, autoscaler in sorted(state.of(HorizontalPodAutoscaler).items()):
        if key.namespace == meta.namespace and isinstance(autoscaler, HorizontalPodAutoscaler):
            target = autoscaler.spec.scale_target_ref
            if (target.kind, target.name) == (type(owner).__name__, meta.name):
                return autoscaler
    return None


def _find_limit(autoscaler: HorizontalPodAutoscaler, pods: OwnerPods) -> str:
    """Why its least size cannot be raised; "" if it can."""
    title = f"HorizontalPodAutoscaler {autoscaler.metadata.name}"
    if controller_of(autoscaler.metadata) is not None:
        return f"{title} belongs to somebody who would set it back"
    if autoscaler.spec.max_replicas < pods.replicas + len(pods.leaving):
        return f"{title} allows no more than {autoscaler.spec.max_replicas}"
    return ""


def is_fixed(pod: Pod) -> bool:
    """Whether its author asks that nobody moves it."""
    return pod.metadata.annotations.get(NEVER_MOVE) == "true"


def is_ready(pod: Pod) -> bool:
    return any(condition.type == "Ready" and condition.status == "True" for condition in pod.status.conditions)


def has_two_versions(owner: ScaledWorkload, state: State) -> bool:
    return len(_list_versions(owner, state)) > 1


def _list_versions(owner: ScaledWorkload, state: State) -> list[ReplicaSet]:
    """The ReplicaSets that have pods, or are to have some."""
    return [
        replica_set
        for replica_set in list_replica_sets(owner, state)
        if replica_set.spec.replicas or list_pods(replica_set, state)
    ]


def _find_rollout(pods: OwnerPods, state: State) -> str:
    with_pods = _list_versions(pods.owner, state)
    if len(with_pods) > 1:
        return "two versions of it have pods"
    if with_pods and (with_pods[0].spec.replicas or 0) != pods.replicas:
        return SIZE_PENDING
    return ""


def describe_owner(owner: ScaledWorkload) -> str:
    return f"{type(owner).__name__} {key_of(owner)}"
