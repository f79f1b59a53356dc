"""Every surge is taken back, and a node whose notice is gone is open again.

While things happen: no Move is removed while its workload still has the size that the Move gave it, or its autoscaler
the least size. At rest: no Move is
left but those whose workload somebody else has scaled, no pod is marked as moving that no Move names, and no node has
our taint without a notice.
"""

from __future__ import annotations

from typing import ClassVar

from wukong.api.apps import Deployment, ReplicaSet
from wukong.api.autoscaling import HorizontalPodAutoscaler
from wukong.api.core import Node, Pod
from wukong.api.kinds import DEPLOYMENTS, MOVES, REPLICA_SETS
from wukong.api.resources import Key
from wukong.api.spot import Move
from wukong.embedded.checkers.acting_controller import acting_controller
from wukong.embedded.checkers.findings import Findings
from wukong.embedded.checkers.touched_objects import TouchedObjects
from wukong.placement.leaving_nodes import find_leaving_reason
from wukong.state import Change, State

_TAINT = "placement.novasphere.dev/leaving"
_MOVING = "placement.novasphere.dev/moving"
_SIZE_OF_OURS = ("wukong", "scale")
_OWNERS: dict[str, type[Deployment] | type[ReplicaSet]] = {"Deployment": Deployment, "ReplicaSet": ReplicaSet}


class Surges:
    """Looks at Moves that go. A workload that had its size back may have been given another one since, by anybody."""

    kinds: ClassVar[frozenset[str]] = frozenset({DEPLOYMENTS.group_kind, REPLICA_SETS.group_kind, MOVES.group_kind})

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self._returned: set[str] = set()  # uids of Moves whose workload had its own size again

    def fork(self, findings: Findings) -> Surges:
        copy = Surges(findings)
        copy._returned = set(self._returned)
        return copy

    def observe(self, change: Change) -> None:
        move = change.old
        if isinstance(change.new, Deployment | ReplicaSet) and isinstance(change.old, Deployment | ReplicaSet):
            self._note_size(change.old, change.new)
        if change.new is not None or not isinstance(move, Move):
            return
        if move.metadata.uid in self._returned:
            self._returned.discard(move.metadata.uid)
            return
        spec, state = move.spec, self.findings.world.state
        struct = _OWNERS.get(spec.owner.kind, Deployment)
        owner = state.get(struct, Key(change.key.namespace, spec.owner.name))
        if owner is None or owner.metadata.uid != spec.owner.uid or owner.metadata.deletion_timestamp is not None:
            return
        # Else it came before the Move could give the workload a size.
        is_ours = _SIZE_OF_OURS in owner.size_managers or bool(move.status.tried_version)
        if is_ours and owner.spec.replicas in {spec.surged, *spec.former} - {spec.original}:
            text = f"removed while its workload has {owner.spec.replicas} replicas instead of {spec.original}"
            self.findings.report(f"move {change.key}", text)
        self._check_autoscaler(change.key, move, state)

    def _note_size(self, before: Deployment | ReplicaSet, workload: Deployment | ReplicaSet) -> None:
        if before.spec.replicas == workload.spec.replicas:
            return
        meta = workload.metadata
        name = f"{type(workload).__name__.lower()}.{meta.name}"
        move = self.findings.world.state.get(Move, Key(meta.namespace, name))
        if move is None:
            return
        is_surged, size = move.status.phase in ("Surging", "Returning"), workload.spec.replicas
        if acting_controller(self.findings.world) is None or (is_surged and size == move.spec.original):
            self._returned.add(move.metadata.uid)  # people want it so, or it is as it was
        elif size == move.spec.surged and move.status.phase != "Returned":
            if move.metadata.uid not in self._returned or _SIZE_OF_OURS in workload.size_managers:
                self._returned.discard(move.metadata.uid)  # else an autoscaler that is behind
        elif move.spec.autoscaler is not None:
            self._returned.add(move.metadata.uid)  # its autoscaler wants it so

    def _check_autoscaler(self, key: Key, move: Move, state: State) -> None:
        spec, noted = move.spec, move.spec.autoscaler
        autoscaler = state.get(HorizontalPodAutoscaler, Key(key.namespace, noted.name)) if noted is not None else None
        if noted is None or autoscaler is None:
            return
        if autoscaler.spec.min_replicas in {spec.surged, *spec.former} - {noted.min_replicas}:
            text = f"removed while its autoscaler has minReplicas {autoscaler.spec.min_replicas}"
            self.findings.report(f"move {key}", text)


def check(findings: Findings, touched: TouchedObjects) -> None:
    """What must hold at rest, of the objects that were touched since this was last asked."""
    state = findings.world.state
    if not touched.includes(Move) and not any(_is_closed(node) for node in touched.list_all(Node, state)):
        return
    for move in touched.list_all(Move, state):
        if move.status.phase != "Reverted":
            findings.report(f"move {move.key}", f"at rest it is still {move.status.phase or 'new'}")
    for pod in touched.list_all(Pod, state):
        is_marked = _MOVING in pod.metadata.annotations and not pod.is_finished
        if is_marked and not _is_named(pod, state) and not _is_leaving(pod, state):
            findings.report(f"pod {pod.key}", "at rest it is marked as moving, no Move names it, and its node stays")
    for node in touched.list_all(Node, state):
        ready = next((entry.status for entry in node.status.conditions if entry.type == "Ready"), "")
        if _is_closed(node) and not find_leaving_reason(node) and ready != "Unknown":
            findings.report(f"node {node.key}", "at rest it is closed to pods, and has no notice")


def _is_closed(node: Node) -> bool:
    return any(taint.key == _TAINT for taint in node.spec.taints)


def _is_leaving(pod: Pod, state: State) -> bool:
    node = state.get(Node, Key("", pod.spec.node_name))
    return node is None or _is_closed(node)


def _is_named(pod: Pod, state: State) -> bool:
    moves = (move for move in state.of(Move).values() if isinstance(move, Move))
    return any(entry.uid == pod.metadata.uid for move in moves for entry in move.spec.pods)
