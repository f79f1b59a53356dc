"""A surge is made and undone in its order: marks, the autoscaler, more replicas; others ready; and then back.

    the workload gets the size of its Move ─► every pod of it that still leaves has the lowest deletion cost by then
    the Move says Returning ─► nothing leaves any more, as many others are ready as it had, or its time is over
    a controller changes an autoscaler's least size ─► it was what the Move notes, or what the Move had made it

Each must hold now or by the mirror of who acted: he may not have heard yet. What people do is not judged.
"""

from __future__ import annotations

from collections.abc import Callable

from wukong.api.apps import Deployment, ReplicaSet
from wukong.api.autoscaling import HorizontalPodAutoscaler
from wukong.api.core import Node, Pod
from wukong.api.kinds import PODS, REPLICA_SETS
from wukong.api.resources import Key
from wukong.api.spot import Move
from wukong.embedded.checkers.acting_controller import acting_controller
from wukong.embedded.checkers.findings import Findings
from wukong.embedded.checkers.pods import is_ready
from wukong.embedded.store.documents import parse_time
from wukong.state import Change, State

_COST = "controller.kubernetes.io/pod-deletion-cost"
_LOWEST = "-2147483648"
_LEAVING = "placement.novasphere.dev/leaving"


class SurgeSteps:
    def __init__(self, findings: Findings) -> None:
        self.findings, self.world = findings, findings.world

    def fork(self, findings: Findings) -> SurgeSteps:
        return SurgeSteps(findings)

    def observe(self, change: Change) -> None:
        old, new = change.old, change.new
        if isinstance(new, Deployment | ReplicaSet) and isinstance(old, Deployment | ReplicaSet):
            if old.spec.replicas != new.spec.replicas:
                self._check_marks(change.key, new)
        elif isinstance(new, Move) and isinstance(old, Move):
            if new.status.phase == "Returning" != old.status.phase:
                self._check_replacements(change.key, new)
        elif isinstance(new, HorizontalPodAutoscaler) and isinstance(old, HorizontalPodAutoscaler):
            self._check_minimum(change.key, old, new)

    def _check_marks(self, key: Key, workload: Deployment | ReplicaSet) -> None:
        name = f"{type(workload).__name__.lower()}.{workload.metadata.name}"
        move = self.world.state.get(Move, Key(key.namespace, name))
        if move is None or move.status.phase or workload.spec.replicas != move.spec.surged:
            return
        if not self._holds(lambda state: _are_marked(move, state)):
            self.findings.report(f"move {key.namespace}/{name}", "surged before all pods that leave were marked")

    def _check_replacements(self, key: Key, move: Move) -> None:
        expires = parse_time(move.spec.expires) if move.spec.expires else None
        if expires is not None and self.world.clock.now() >= expires:
            return
        if not self._holds(lambda state: _is_whole_without(move, state)):
            text = f"returns to {move.spec.original} replicas before so many others are ready"
            self.findings.report(f"move {key}", text)

    def _check_minimum(self, key: Key, old: HorizontalPodAutoscaler, new: HorizontalPodAutoscaler) -> None:
        if old.spec.min_replicas == new.spec.min_replicas:
            return
        target = new.spec.scale_target_ref
        move = self.world.state.get(Move, Key(key.namespace, f"{target.kind.lower()}.{target.name}"))
        if move is None or move.spec.autoscaler is None:
            return
        known = {move.spec.autoscaler.min_replicas, move.spec.surged, *move.spec.former}
        if not self._holds(lambda _: old.spec.min_replicas in known):
            text = f"somebody had set its minReplicas to {old.spec.min_replicas}; overwritten"
            self.findings.report(f"autoscaler {key}", text)

    def _holds(self, rule: Callable[[State], bool]) -> bool:
        actor = acting_controller(self.world)
        return actor is None or rule(self.world.state) or rule(actor.mirror())


def _are_marked(move: Move, state: State) -> bool:
    pods = [state.get(Pod, Key(move.metadata.namespace, entry.name)) for entry in move.spec.pods]
    uids = {entry.uid for entry in move.spec.pods}
    there = [pod for pod in pods if pod is not None and pod.metadata.uid in uids and not pod.is_terminating]
    leaving = [pod for pod in there if not pod.is_finished and _leaves(pod, state)]  # a notice may be withdrawn
    return all(pod.metadata.annotations.get(_COST) == _LOWEST for pod in leaving)


def _is_whole_without(move: Move, state: State) -> bool:
    """As many pods of the workload are ready elsewhere as it had, or none is on a node that leaves."""
    uid = move.spec.owner.uid
    owners = [uid] if move.spec.owner.kind == "ReplicaSet" else _list_uids(uid, state)
    keys = (key for owner in owners for key in state.owners.owned_by(owner, PODS))
    pods = [pod for key in keys if (pod := state.get(Pod, key)) is not None]
    pods = [pod for pod in pods if not pod.is_terminating and not pod.is_finished]
    leaving = [pod for pod in pods if _leaves(pod, state)]
    return not leaving or sum(is_ready(pod) for pod in pods if pod not in leaving) >= move.spec.original


def _list_uids(deployment: str, state: State) -> list[str]:
    keys = state.owners.owned_by(deployment, REPLICA_SETS)
    return [one.metadata.uid for key in keys if (one := state.get(ReplicaSet, key)) is not None]


def _leaves(pod: Pod, state: State) -> bool:
    node = state.get(Node, Key("", pod.spec.node_name))
    return node is not None and _LEAVING in node.metadata.annotations
