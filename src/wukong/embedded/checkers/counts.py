"""Nothing is lost: pods created less pods removed are there; at rest statuses count these, and nothing is stuck.

At rest means that nothing has happened for minutes though everybody who failed has tried again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import ClassVar

from wukong.api.apps import PodDisruptionBudget
from wukong.api.core import Node, Pod
from wukong.api.kinds import PODS, REPLICA_SETS
from wukong.api.meta import Object
from wukong.api.resources import Key, key_of
from wukong.embedded.actors.kubelet.controller import is_silent
from wukong.embedded.checkers.active_pods import ActivePods
from wukong.embedded.checkers.budgets import count_budget
from wukong.embedded.checkers.findings import Findings
from wukong.embedded.checkers.pods import is_ready, owned_pods, replicas_of, target_node_of
from wukong.embedded.checkers.touched_objects import TouchedObjects
from wukong.embedded.checkers.unseen_nodes import UnseenNodes
from wukong.embedded.world.objects import DaemonSet, Deployment, ReplicaSet, StatefulSet
from wukong.embedded.world.world import World
from wukong.ports import Document
from wukong.runtime.dispatch import Item
from wukong.state import Change, State
from wukong.state.controller import PodRight, pod_rights_of

_KUBERNETES_FINALIZERS = {"foregroundDeletion", "orphan"}
Comparison = tuple[str, object, object]  # the field, what the status says, what it should say


class PodCount:
    """How many pods there should be, counted by creations and removals."""

    kinds: ClassVar[frozenset[str]] = frozenset({PODS.group_kind})

    def __init__(self, world: World) -> None:
        self.world, self.expected = world, len(world.state.of(Pod))

    def fork(self, world: World) -> PodCount:
        copy = PodCount(world)
        copy.expected = self.expected
        return copy

    def observe(self, change: Change) -> None:
        self.expected += (change.old is None) - (change.new is None)

    def check(self, findings: Findings) -> None:
        stored = self.world.server.database.count(PODS.plural)
        if stored != self.expected:
            findings.report("pods", f"created less removed are {self.expected}, but {stored} are there")


def check(findings: Findings, touched: TouchedObjects, unseen_nodes: UnseenNodes) -> None:
    """What must hold at rest, of the objects that were touched since this was last asked."""
    state = findings.world.state
    for replica_set in touched.list_all(ReplicaSet, state):
        _check_replica_set(findings, replica_set)
    for deployment in touched.list_all(Deployment, state):
        _check_status(findings, deployment, _compare_deployment(deployment, state))
    for stateful_set in touched.list_all(StatefulSet, state):
        _check_status(findings, stateful_set, _compare_stateful_set(stateful_set, state))
    for daemon_set in touched.list_all(DaemonSet, state):
        _check_status(findings, daemon_set, _compare_daemon_set(daemon_set, state, unseen_nodes.of(key_of(daemon_set))))
    for budget in touched.list_all(PodDisruptionBudget, state):
        _check_status(findings, budget, _compare_budget(budget, state))
    for pod in touched.list_all(Pod, state):
        _check_node_of(findings, pod, state)
    for stored in touched.list_changed(state):
        _check_finalizers(findings, stored)


def _check_status(findings: Findings, workload: Object, comparisons: Iterator[Comparison]) -> None:
    for field, actual, expected in comparisons:
        if actual != expected:
            text = f"at rest its {field} is {actual}, but should be {expected}"
            findings.report(f"{workload.kind.lower()} {workload.key}", text)


def _check_replica_set(findings: Findings, replica_set: ReplicaSet) -> None:
    active = findings.world.state.index_of(ActivePods).of(replica_set.metadata.uid).values()
    _check_status(findings, replica_set, _compare_replica_set(replica_set, active))
    replicas = replicas_of(replica_set)
    if len(active) == replicas or replica_set.metadata.deletion_timestamp:
        return
    if not _is_failing(findings.world, Key(replica_set.metadata.namespace, replica_set.metadata.name)):
        text = f"at rest it has {len(active)} pods and should have {replicas}"
        findings.report(f"replicaset {replica_set.key}", text)


def _is_failing(world: World, key: Key) -> bool:
    """Whether a controller that creates replicas keeps failing to do so for this key, and so has tried at least."""
    names = {
        controller.name
        for process in world.processes
        for controller in process.dispatch.controllers.values()
        if PodRight.CREATE_REPLICAS in pod_rights_of(controller)
    }
    return any(world.attempt(Item(name, key)) is not None for name in names)


def _compare_replica_set(replica_set: ReplicaSet, active: Collection[Pod]) -> Iterator[Comparison]:
    status = replica_set.status
    yield "status.observedGeneration", status.observed_generation, replica_set.metadata.generation
    yield "status.replicas", status.replicas, len(active)
    yield "status.readyReplicas", status.ready_replicas, sum(map(is_ready, active))


def _compare_deployment(deployment: Deployment, state: State) -> Iterator[Comparison]:
    keys = state.owners.owned_by(deployment.metadata.uid, REPLICA_SETS)
    replica_sets = [replica_set for key in keys if (replica_set := state.get(ReplicaSet, key))]
    active = [
        pod for replica_set in replica_sets for pod in state.index_of(ActivePods).of(replica_set.metadata.uid).values()
    ]
    yield "status.observedGeneration", deployment.status.observed_generation, deployment.metadata.generation
    yield "status.replicas", deployment.status.replicas, len(active)
    yield "status.readyReplicas", deployment.status.ready_replicas, sum(map(is_ready, active))


def _compare_stateful_set(stateful_set: StatefulSet, state: State) -> Iterator[Comparison]:
    pods = owned_pods(state, stateful_set.metadata.uid)
    ready = sum(is_ready(pod) for pod in pods if not pod.is_finished)  # terminating ones count while they are ready
    yield "status.observedGeneration", stateful_set.status.observed_generation, stateful_set.metadata.generation
    yield "status.readyReplicas", stateful_set.status.ready_replicas, ready


def _compare_daemon_set(daemon_set: DaemonSet, state: State, unseen_nodes: frozenset[str]) -> Iterator[Comparison]:
    status: Document = daemon_set.document.get("status") or {}
    first: dict[str, Pod] = {}  # of each node the pod that counts: the oldest, even a terminating one
    for pod in sorted(owned_pods(state, daemon_set.metadata.uid), key=_age_order):
        node = target_node_of(pod)
        is_present = node not in unseen_nodes and state.get(Node, Key("", node)) is not None
        if is_present and not (pod.is_terminating and pod.is_finished):
            first.setdefault(node, pod)
    yield "status.observedGeneration", status.get("observedGeneration", 0), daemon_set.metadata.generation
    misscheduled, ready = status.get("numberMisscheduled", 0), status.get("numberReady", 0)
    yield "status.currentNumberScheduled", status.get("currentNumberScheduled", 0) + misscheduled, len(first)
    yield "status.numberReady", ready, ready if misscheduled else sum(map(is_ready, first.values()))


def _compare_budget(budget: PodDisruptionBudget, state: State) -> Iterator[Comparison]:
    status: Document = getattr(budget, "document", {}).get("status") or {}
    if any(condition.get("reason") == "SyncFailed" for condition in status.get("conditions") or ()):
        return
    count = count_budget(state, budget)
    yield "status.observedGeneration", status.get("observedGeneration", 0), budget.metadata.generation
    yield "status.currentHealthy", status.get("currentHealthy", 0), len(count.healthy)
    yield "status.desiredHealthy", status.get("desiredHealthy", 0), count.desired


def _check_node_of(findings: Findings, pod: Pod, state: State) -> None:
    """No pod is left on a node that is gone, or keeps terminating on one whose kubelet works."""
    if not pod.spec.node_name:
        return
    node = state.get(Node, Key("", pod.spec.node_name))
    if node is None:
        findings.report(f"pod {pod.key}", f"at rest it is on node {pod.spec.node_name}, which is gone")
    elif pod.is_terminating and not is_silent(node) and set(_finalizers_of(pod)) <= _KUBERNETES_FINALIZERS:
        findings.report(f"pod {pod.key}", f"at rest it is still leaving node {pod.spec.node_name}")


def _check_finalizers(findings: Findings, stored: Object) -> None:
    """No object is being deleted and held only by Kubernetes' own finalizers: somebody forgot to remove them."""
    finalizers = _finalizers_of(stored)
    if stored.metadata.deletion_timestamp and finalizers and set(finalizers) <= _KUBERNETES_FINALIZERS:
        text = f"at rest it still waits for its finalizer {finalizers[0]}"
        findings.report(f"{stored.kind.lower()} {stored.key}", text)


def _age_order(pod: Pod) -> tuple[bool, str, str]:
    return not pod.spec.node_name, pod.metadata.creation_timestamp or "", pod.metadata.name


def _finalizers_of(stored: Object) -> list[str]:
    document: Document = getattr(stored, "document", {})
    return (document.get("metadata") or {}).get("finalizers") or []
