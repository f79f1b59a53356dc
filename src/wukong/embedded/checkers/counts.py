"""Nothing is lost: pods created less pods removed are there; at rest statuses count what is there, and nobody is stuck.

At rest means that nothing has happened for minutes though everybody who failed has tried again.
"""

from __future__ import annotations

from collections.abc import Iterator

from wukong.api.apps import PodDisruptionBudget
from wukong.api.core import Node, Pod
from wukong.api.kinds import PODS, REPLICA_SETS
from wukong.api.meta import Object, controller_of
from wukong.api.resources import Key
from wukong.embedded.actors.kubelet.controller import is_silent
from wukong.embedded.checkers.budgets import count
from wukong.embedded.checkers.findings import Findings
from wukong.embedded.checkers.pod_deletions import target_of
from wukong.embedded.world.objects import DaemonSet, Deployment, ReplicaSet, StatefulSet
from wukong.embedded.world.world import World
from wukong.ports import Document
from wukong.runtime.dispatch import Item
from wukong.state import Change, State

_KUBERNETES_OWN = {"foregroundDeletion", "orphan"}
Difference = tuple[str, object, object]  # what, as the status says, as it is


class Pods:
    """How many came and went."""

    def __init__(self, world: World) -> None:
        self.world, self.there = world, len(world.state.objects.get("Pod", {}))

    def hear(self, change: Change) -> None:
        if change.kind == "Pod":
            self.there += (change.old is None) - (change.new is None)

    def finish(self, desk: Findings) -> None:
        found = len(self.world.server.list(PODS).items)
        if found != self.there:
            desk.note("pods", f"created less removed are {self.there}, but {found} are there")


def check(desk: Findings) -> None:
    state = desk.world.state
    for replica_set in state.all(ReplicaSet):
        _replica_set(desk, replica_set)
    for deployment in state.all(Deployment):
        _told(desk, deployment, _of_deployment(deployment, state))
    for stateful_set in state.all(StatefulSet):
        _told(desk, stateful_set, _of_stateful_set(stateful_set, state))
    for daemon_set in state.all(DaemonSet):
        _told(desk, daemon_set, _of_daemon_set(daemon_set, state))
    for budget in state.all(PodDisruptionBudget):
        _told(desk, budget, _of_budget(budget, state))
    for pod in state.all(Pod):
        _left_behind(desk, pod, state)
    for found in (each for kind in sorted(state.objects) for each in state.objects[kind].values()):
        _unfinished(desk, found)


def _told(desk: Findings, found: Object, differences: Iterator[Difference]) -> None:
    for what, said, is_so in differences:
        if said != is_so:
            desk.note(f"{found.kind.lower()} {found.key}", f"at rest its {what} is {said}, but should be {is_so}")


def _replica_set(desk: Findings, replica_set: ReplicaSet) -> None:
    active = [pod for pod in owned(desk.world.state, replica_set) if _is_active(pod)]
    _told(desk, replica_set, _of_replica_set(replica_set, active))
    wanted = 1 if replica_set.spec.replicas is None else replica_set.spec.replicas
    item = Item("replicaset", Key(replica_set.metadata.namespace, replica_set.metadata.name))
    is_going = bool(replica_set.metadata.deletion_timestamp)
    if len(active) != wanted and not is_going and desk.world.attempt(item) is None:
        desk.note(f"replicaset {replica_set.key}", f"at rest it has {len(active)} pods and should have {wanted}")


def _of_replica_set(replica_set: ReplicaSet, active: list[Pod]) -> Iterator[Difference]:
    status = replica_set.status
    yield "status.observedGeneration", status.observed_generation, replica_set.metadata.generation
    yield "status.replicas", status.replicas, len(active)
    yield "status.readyReplicas", status.ready_replicas, sum(map(_is_ready, active))


def _of_deployment(deployment: Deployment, state: State) -> Iterator[Difference]:
    found = [
        it for key in state.owners.owned_by(deployment.metadata.uid, REPLICA_SETS) if (it := state.get(ReplicaSet, key))
    ]
    active = [pod for replica_set in found for pod in owned(state, replica_set) if _is_active(pod)]
    yield "status.observedGeneration", deployment.status.observed_generation, deployment.metadata.generation
    yield "status.replicas", deployment.status.replicas, len(active)
    yield "status.readyReplicas", deployment.status.ready_replicas, sum(map(_is_ready, active))


def _of_stateful_set(stateful_set: StatefulSet, state: State) -> Iterator[Difference]:
    found = [
        pod for pod in owned(state, stateful_set) if not pod.is_finished
    ]  # leaving ones count while they are ready
    yield "status.observedGeneration", stateful_set.status.observed_generation, stateful_set.metadata.generation
    yield "status.readyReplicas", stateful_set.status.ready_replicas, sum(map(_is_ready, found))


def _of_daemon_set(daemon_set: DaemonSet, state: State) -> Iterator[Difference]:
    status: Document = daemon_set.document.get("status") or {}
    first: dict[str, Pod] = {}  # of each node the pod that counts: the oldest, even one that is leaving
    for pod in sorted(owned(state, daemon_set), key=_age):
        if not (pod.is_terminating and pod.is_finished) and state.get(Node, Key("", target_of(pod))) is not None:
            first.setdefault(target_of(pod), pod)
    yield "status.observedGeneration", status.get("observedGeneration", 0), daemon_set.metadata.generation
    misplaced = status.get("numberMisscheduled", 0)
    yield "status.currentNumberScheduled", status.get("currentNumberScheduled", 0) + misplaced, len(first)
    yield (
        "status.numberReady",
        status.get("numberReady", 0),
        sum(map(_is_ready, first.values())) if not misplaced else status.get("numberReady", 0),
    )


def _of_budget(budget: PodDisruptionBudget, state: State) -> Iterator[Difference]:
    status: Document = getattr(budget, "document", {}).get("status") or {}
    if any(each.get("reason") == "SyncFailed" for each in status.get("conditions") or ()):
        return
    counted = count(state, budget)
    yield "status.observedGeneration", status.get("observedGeneration", 0), budget.metadata.generation
    yield "status.currentHealthy", status.get("currentHealthy", 0), len(counted.healthy)
    yield "status.desiredHealthy", status.get("desiredHealthy", 0), counted.desired


def _left_behind(desk: Findings, pod: Pod, state: State) -> None:
    if not pod.spec.node_name:
        return
    node = state.get(Node, Key("", pod.spec.node_name))
    if node is None:
        desk.note(f"pod {pod.key}", f"at rest it is on node {pod.spec.node_name}, which is gone")
    elif pod.is_terminating and not is_silent(node) and set(_finalizers(pod)) <= _KUBERNETES_OWN:
        desk.note(f"pod {pod.key}", f"at rest it is still leaving node {pod.spec.node_name}")


def _unfinished(desk: Findings, found: Object) -> None:
    """Deleted, and held by nobody but Kubernetes itself: somebody forgot to let it go."""
    finalizers = _finalizers(found)
    if found.metadata.deletion_timestamp and finalizers and set(finalizers) <= _KUBERNETES_OWN:
        desk.note(f"{found.kind.lower()} {found.key}", f"at rest it still waits for its finalizer {finalizers[0]}")


def owned(state: State, owner: Object) -> list[Pod]:
    found = (state.get(Pod, key) for key in state.owners.owned_by(owner.metadata.uid, PODS))
    return [
        pod
        for pod in found
        if pod is not None and (it := controller_of(pod.metadata)) is not None and it.uid == owner.metadata.uid
    ]


def _age(pod: Pod) -> tuple[bool, str, str]:
    return not pod.spec.node_name, pod.metadata.creation_timestamp or "", pod.metadata.name


def _finalizers(found: Object) -> list[str]:
    document: Document = getattr(found, "document", {})
    return (document.get("metadata") or {}).get("finalizers") or []


def _is_active(pod: Pod) -> bool:
    return not pod.is_terminating and not pod.is_finished


def _is_ready(pod: Pod) -> bool:
    return any(each.type == "Ready" and each.status == "True" for each in pod.status.conditions)
