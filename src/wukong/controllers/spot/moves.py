"""Make before break: a workload whose pods leave gets replacements first, and then gives up exactly those pods.

Keys are Moves, by the kind and name of their workload, whether there is one or not:

    pods on leaving nodes ─► a Move is written, unless the workload cannot be scaled now (owners.find_obstacle)
    (new)      ─► the leaving pods get the lowest deletion cost ─► that it is tried is noted, and the workload is scaled
                  up by their number
    Surging    ─► as many others are available as there were pods before ─► Returning
    Returning  ─► the workload gets its size back ─► Returned
    Returned   ─► its ReplicaSet has removed the marked pods ─► the Move is removed
    Reverted   ─► somebody else has set the size back meanwhile: left alone, evictions.py takes over

No eviction, no budget touched. A size that is not ours is somebody else's decision: it wins, the Move is given up, and
a new one begins from there. Ours is one that the Move has tried to give it, and of which the API server says that we
set it (metadata.managedFields). A Move whose pods are gone, whose notice was withdrawn or whose time is over returns,
too: every surge is taken back. Nothing is remembered but in the Move and on the pods.

Mirrors may be old, each kind by itself, and a leader who was replaced may not know it yet. So a workload and its
autoscaler are written at the version that was read, and right after the Move itself was, at its own: who does not know
what became of the Move is refused there. What was tried and may still arrive is not waited for but done, and undone.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from wukong.actions import DONE, Action, Create, Delete, Note, Outcome, Patch, Scale
from wukong.api.apps import Deployment, ReplicaSet, SizeManager
from wukong.api.autoscaling import HorizontalPodAutoscaler
from wukong.api.core import Node, Pod
from wukong.api.kinds import DEPLOYMENTS, HORIZONTAL_POD_AUTOSCALERS, MOVES, NODES, PODS, REPLICA_SETS
from wukong.api.meta import Object
from wukong.api.resources import Key, key_of
from wukong.api.spot import MOST_PODS, MOST_SIZES, Move, MovedPod
from wukong.api.times import format_time, parse_time
from wukong.controllers.spot.autoscalers import (
    confirm_minimum,
    describe_autoscaler,
    raise_minimum,
    read_version,
    restore_minimum,
)
from wukong.controllers.spot.marks import goes_first, is_marked, mark, unmark
from wukong.controllers.spot.owners import (
    SIZE_PENDING,
    OwnerPods,
    describe_owner,
    find_obstacle,
    find_owner_of_move,
    find_scaled_owner,
    has_two_versions,
    is_fixed,
    is_ready,
    move_key_of,
    read_owner_pods,
)
from wukong.controllers.spot.records import LeavingNodes, read_record
from wukong.ports import FIELD_MANAGER, PatchBody
from wukong.state import Change, State
from wukong.state.controller import Watch, each_side

SURGING, RETURNING, RETURNED, REVERTED = "Surging", "Returning", "Returned", "Reverted"
UNKNOWN_SECONDS = 600.0  # how long a surge may last where nobody says when the node goes
AFTER_SECONDS = 120.0  # how long it may last beyond that moment
OURSELVES = SizeManager(FIELD_MANAGER, "scale")


# ---- whose Move a change is about


def moves_of_pod(change: Change, state: State) -> Iterable[Key]:
    leaving, moves = state.index_of(LeavingNodes).records, state.of(Move)
    sides = [pod for pod in (change.old, change.new) if isinstance(pod, Pod)]
    if not leaving and not moves and not any(map(is_marked, sides)):
        return ()
    keys = set()
    for pod in sides:
        owner = find_scaled_owner(pod, state)
        if owner is not None:
            key = move_key_of(owner)
            if pod.spec.node_name in leaving or is_marked(pod) or key in moves:
                keys.add(key)
    return sorted(keys)


def moves_of_node(change: Change, state: State) -> Iterable[Key]:
    """A node that got a record, lost it, or is gone."""
    old, new = (read_record(node) if isinstance(node, Node) else None for node in (change.old, change.new))
    if old == new:
        return ()
    owners = (find_scaled_owner(pod, state) for pod in state.pods_on(change.key.name))
    return sorted({move_key_of(owner) for owner in owners if owner is not None})


def moves_of_owner(subject: Object, state: State) -> Iterable[Key]:
    if not state.index_of(LeavingNodes).records and not state.of(Move):
        return ()
    if isinstance(subject, ReplicaSet):
        above = next((owner for owner in subject.metadata.owner_references if owner.controller), None)
        deployment = state.owner(subject.metadata.namespace, above) if above is not None else None
        if isinstance(deployment, Deployment):
            return (move_key_of(deployment),)
        return () if above is not None else (move_key_of(subject),)
    return (move_key_of(subject),) if isinstance(subject, Deployment) else ()


def moves_of_autoscaler(subject: Object, state: State) -> Iterable[Key]:
    if not isinstance(subject, HorizontalPodAutoscaler):
        return ()
    target = subject.spec.scale_target_ref
    key = Key(subject.metadata.namespace, f"{target.kind.lower()}.{target.name}")
    return (key,) if state.index_of(LeavingNodes).records or key in state.of(Move) else ()


class SpotMoves:
    name = "spot-move"
    watches = (
        Watch(MOVES),
        Watch(PODS, moves_of_pod),
        Watch(NODES, moves_of_node),
        Watch(DEPLOYMENTS, each_side(moves_of_owner)),
        Watch(REPLICA_SETS, each_side(moves_of_owner)),
        Watch(HORIZONTAL_POD_AUTOSCALERS, each_side(moves_of_autoscaler)),
    )

    def __init__(self) -> None:
        self._said: dict[Key, str] = {}  # why a workload's pods are not replaced first, as an Event said; may be lost

    def copy_memory(self, source: SpotMoves, _: State) -> None:
        self._said = dict(source._said)

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        move, owner = state.get(Move, key), find_owner_of_move(key, state)
        if move is not None and move.metadata.deletion_timestamp is not None:
            return DONE
        if owner is None or (move is not None and move.spec.owner.uid != owner.metadata.uid):
            return DONE if move is None else Outcome((_delete(move),))
        pods = read_owner_pods(owner, state)
        if move is None:
            obstacle = "" if all(map(is_fixed, pods.leaving)) else find_obstacle(pods, state)
            return Outcome(tuple(self._say(pods, obstacle))) if obstacle else self._begin(pods, key, state, now)
        return _continue(move, _add_stranded(pods, move, state), state, now)

    def _begin(self, pods: OwnerPods, key: Key, state: State, now: float) -> Outcome:
        self._said.pop(key, None)
        return _begin(pods, key, state, now)

    def _say(self, pods: OwnerPods, obstacle: str) -> Iterable[Note]:
        """Why its pods are not replaced first, once; what passes by itself is not worth an Event."""
        key, owner = move_key_of(pods.owner), pods.owner
        if obstacle == SIZE_PENDING or self._said.get(key) == obstacle:
            return
        self._said[key] = obstacle
        text = f"{len(pods.leaving)} of its pods leave their nodes, and are not replaced first: {obstacle}."
        yield Note(pods.resource, key_of(owner), "NotReplacedFirst", text, uid=owner.metadata.uid, is_warning=True)


def _begin(pods: OwnerPods, key: Key, state: State, now: float) -> Outcome:
    leaving = [pod for pod in pods.leaving if not is_fixed(pod)][:MOST_PODS]
    if not leaving:
        return Outcome(tuple(unmark(pod) for pod in pods.staying if is_marked(pod)))
    owner = pods.owner
    reference = {
        "apiVersion": pods.resource.api_version,
        "kind": pods.resource.kind,
        "name": owner.metadata.name,
        "uid": owner.metadata.uid,
    }
    spec = {
        "owner": {"kind": pods.resource.kind, "name": owner.metadata.name, "uid": owner.metadata.uid},
        "original": pods.replicas,
        "surged": pods.replicas + len(leaving),
        "generation": owner.metadata.generation,
        "pods": _format_pods(leaving),
        "expires": format_time(_find_expiry(leaving, state, now)),
        **describe_autoscaler(owner, state),
    }
    body = {
        "apiVersion": MOVES.api_version,
        "kind": MOVES.kind,
        "metadata": {"name": key.name, "namespace": key.namespace, "ownerReferences": [reference]},
        "spec": spec,
    }
    return Outcome((Create(MOVES, body, key.namespace),))


def _continue(move: Move, pods: OwnerPods, state: State, now: float) -> Outcome:
    spec, phase, generation = move.spec, move.status.phase, pods.owner.metadata.generation
    if generation < max(spec.generation, move.status.generation):
        return DONE  # the workload as it was before: each kind has a watch of its own, and this one is behind
    if phase == REVERTED:
        return Outcome(tuple(restore_minimum(move, state))) if pods.leaving else _finish(move, pods, state)
    if phase == RETURNED:  # whatever its size is now, it is not ours
        has_gone = len(pods.leaving) + len(pods.staying) <= spec.original or pods.replicas != spec.original
        return _finish(move, pods, state) if has_gone else DONE
    if phase == RETURNING:
        return _return(move, pods, state)
    if pods.replicas != spec.original and not _is_own_size(move, pods):
        return _give_up(move, pods, state)
    if phase == SURGING and pods.replicas == spec.original:
        text = f"somebody set replicas back to {spec.original}"
        return Outcome((_set_phase(move, REVERTED, text), _note(move, pods, "MoveReverted", f"Not moved: {text}.")))
    return _surge(move, pods, state, now)


def _list_own_sizes(move: Move) -> set[int]:
    """Sizes that this Move has given the workload. Once one was seen, those before it can only be somebody else's."""
    spec, seen = move.spec, move.status.replicas
    if not seen:
        return {spec.surged, *spec.former}
    later = spec.former[spec.former.index(seen) + 1 :] if seen in spec.former else ()
    return {spec.surged, seen, *later}


def _is_own_size(move: Move, pods: OwnerPods) -> bool:
    """Whether it was this Move that gave the workload its size. An autoscaler does so, too, once its minimum is raised.

    Somebody may have asked for the same size at the same time. Where nobody is noted the size itself must do.
    """
    if pods.replicas not in _list_own_sizes(move) or not move.status.tried_version:
        return False
    managers = pods.owner.size_managers
    return move.spec.autoscaler is not None or not managers or managers == {OURSELVES}


def _surge(move: Move, pods: OwnerPods, state: State, now: float) -> Outcome:
    spec, known = move.spec, {pod.uid for pod in move.spec.pods}
    expiry = parse_time(spec.expires)
    is_over = expiry is not None and now >= expiry
    if not pods.leaving or is_over:
        text = "time is over" if is_over else "nothing leaves any more"
        returning = _set_phase(move, RETURNING, text)
        return Outcome((*(unmark(pod) for pod in pods.staying if is_marked(pod)), returning))
    added = [pod for pod in pods.leaving if pod.metadata.uid not in known and not is_fixed(pod)]
    added = added[: MOST_PODS - len(spec.pods)] if len(spec.former) < MOST_SIZES else []
    if added:
        return Outcome((_extend(move, added, state, now),))
    if unmarked := [pod for pod in pods.leaving if pod.metadata.uid in known and not goes_first(pod)]:
        return Outcome(tuple(mark(pod) for pod in unmarked))
    left = None if expiry is None else expiry - now
    if raise_minimum(move, state) or pods.replicas != spec.surged:
        return Outcome(_grow(move, pods, state), requeue_after=left)
    if move.status.phase != SURGING or move.status.replicas != spec.surged:
        started = _set_phase(move, SURGING, "replacements start", seen=pods)
        return Outcome((started,), requeue_after=left)
    return _await_replacements(move, pods, state, now, left)


def _grow(move: Move, pods: OwnerPods, state: State) -> tuple[Action, ...]:
    """Noted first: who finds the Move after us knows what may still arrive."""
    spec, raised = move.spec, raise_minimum(move, state)
    tried: Action = _note_trial(move, pods, state)
    if pods.replicas == spec.surged:
        return (tried, *raised)
    text = f"{len(spec.pods)} of its pods leave their nodes: scaled from {spec.original} to {spec.surged} first."
    return (tried, *raised, _scale(pods, spec.surged), _note(move, pods, "Moving", text))


def _may_still_grow(move: Move, pods: OwnerPods, state: State) -> bool:
    """Whether what was tried would still be accepted by the API server."""
    status, version = move.status, pods.owner.metadata.resource_version
    is_same_autoscaler = bool(status.tried_autoscaler_version) and (
        status.tried_autoscaler_version == read_version(move, state)
    )
    return status.tried_version == version or is_same_autoscaler


def _scale(pods: OwnerPods, replicas: int) -> Scale:
    """At the version that was read. The size that it has changes nothing, and is refused where what we read is old."""
    owner = pods.owner
    return Scale(pods.resource, key_of(owner), replicas, resource_version=owner.metadata.resource_version)


def _await_replacements(move: Move, pods: OwnerPods, state: State, now: float, left: float | None) -> Outcome:
    """A pod that is not ready would go before a marked one: all others must be ready when the workload shrinks."""
    spec = move.spec
    ready = [pod for pod in pods.staying if is_ready(pod)]
    is_whole = len(ready) >= spec.original and len(ready) == len(pods.staying)
    if not is_whole or has_two_versions(pods.owner, state):
        reset = (_set_phase(move, SURGING, "replacements start", ready_at=""),) if move.status.ready_at else ()
        return Outcome(reset, requeue_after=left)
    pause = float(pods.owner.spec.min_ready_seconds)
    since = parse_time(move.status.ready_at)
    if pause and since is None:
        noted = _set_phase(move, SURGING, "replacements are ready", ready_at=format_time(now))
        return Outcome((noted,), requeue_after=pause + 1.0)
    if pause and since is not None and now < since + pause + 1.0:  # times are written in whole seconds
        return Outcome(requeue_after=since + pause + 1.0 - now)
    return Outcome((_set_phase(move, RETURNING, "replacements are available"),))


def _return(move: Move, pods: OwnerPods, state: State) -> Outcome:
    spec, owner = move.spec, pods.owner
    if restored := restore_minimum(move, state):
        return Outcome((_confirm(move), *restored))
    if pods.replicas != spec.original and _is_own_size(move, pods):
        return Outcome((_confirm(move), *confirm_minimum(move, state), _scale(pods, spec.original)))
    if pods.replicas == spec.original and not move.status.generation:
        # Nobody noted that it was surged, and yet it may have been, by a leader before us.
        if _may_still_grow(move, pods, state):
            return Outcome(_grow(move, pods, state))
        return _finish(move, pods, state, _scale(pods, spec.original))
    if pods.replicas == spec.original and owner.metadata.generation == move.status.generation:
        return DONE  # as it was before somebody saw it surged: the watch is behind
    return Outcome((_set_phase(move, RETURNED, "it has its own size again", seen=pods),))


def _finish(move: Move, pods: OwnerPods, state: State, *before: Action) -> Outcome:
    unmarked = (unmark(pod) for pod in (*pods.staying, *pods.leaving) if is_marked(pod))
    undone = (*before, *confirm_minimum(move, state), *unmarked)
    return Outcome((*undone, _delete(move), _note(move, pods, "Moved", "It has its own size again.")))


def _give_up(move: Move, pods: OwnerPods, state: State) -> Outcome:
    text = f"Somebody else set replicas to {pods.replicas}: that holds."
    undone = (_scale(pods, pods.replicas), *confirm_minimum(move, state), _delete(move))
    return Outcome((*undone, _note(move, pods, "MoveGivenUp", text)))


def _add_stranded(pods: OwnerPods, move: Move, state: State) -> OwnerPods:
    """A pod of the Move whose Node is gone leaves, too: its record went with the Node."""
    known = {pod.uid for pod in move.spec.pods}
    stranded = [
        pod
        for pod in pods.staying
        if pod.metadata.uid in known and pod.spec.node_name and state.get(Node, Key("", pod.spec.node_name)) is None
    ]
    if not stranded:
        return pods
    staying = tuple(pod for pod in pods.staying if pod not in stranded)
    return pods._replace(leaving=(*pods.leaving, *stranded), staying=staying)


def _find_expiry(leaving: Iterable[Pod], state: State, now: float) -> float:
    records = state.index_of(LeavingNodes).records
    deadlines = [records[pod.spec.node_name].deadline_at for pod in leaving if pod.spec.node_name in records]
    return max((now + UNKNOWN_SECONDS if at is None else max(at, now) + AFTER_SECONDS for at in deadlines), default=now)


def _format_pods(pods: Iterable[Pod]) -> list[dict[str, str]]:
    return [{"name": pod.metadata.name, "uid": pod.metadata.uid, "node": pod.spec.node_name} for pod in pods]


def _extend(move: Move, added: list[Pod], state: State, now: float) -> Patch:
    """More pods leave: written first, at the version that was read; the sizes before stay known as ours."""
    spec = move.spec
    expiry = max(parse_time(spec.expires) or now, _find_expiry(added, state, now))
    pods: list[MovedPod] = [*spec.pods, *msgspec.convert(_format_pods(added), list[MovedPod])]
    changes: dict[str, Any] = {
        "pods": msgspec.to_builtins(pods),
        "surged": spec.surged + len(added),
        "former": [*spec.former, spec.surged] if move.status.tried_version else spec.former,
        "expires": format_time(expiry),
    }
    body = {"metadata": {"resourceVersion": move.metadata.resource_version}, "spec": changes}
    return Patch(MOVES, key_of(move), PatchBody("merge", body))


def _confirm(move: Move) -> Patch:
    """Changes nothing, and is refused where what we read of the Move is old."""
    return _patch_status(move, {"phase": move.status.phase})


def _note_trial(move: Move, pods: OwnerPods, state: State) -> Patch:
    version = pods.owner.metadata.resource_version
    return _patch_status(move, {"triedVersion": version, "triedAutoscalerVersion": read_version(move, state) or None})


def _set_phase(
    move: Move, phase: str, message: str, ready_at: str | None = None, seen: OwnerPods | None = None
) -> Patch:
    """At the version that was read: whoever decides on an old mirror is refused. `seen` is the workload as it was."""
    status: dict[str, Any] = {"phase": phase, "message": message}
    if ready_at is not None:
        status["readyAt"] = ready_at or None
    if seen is not None:
        status |= {"generation": seen.owner.metadata.generation, "replicas": seen.replicas}
    return _patch_status(move, status)


def _patch_status(move: Move, status: dict[str, Any]) -> Patch:
    body = {"metadata": {"resourceVersion": move.metadata.resource_version}, "status": status}
    return Patch(MOVES, key_of(move), PatchBody("merge", body), subresource="status")


def _delete(move: Move) -> Action:
    return Delete(MOVES, key_of(move), uid=move.metadata.uid, resource_version=move.metadata.resource_version)


def _note(move: Move, pods: OwnerPods, reason: str, text: str) -> Note:
    text = f"{describe_owner(pods.owner)}: {text}" if reason == "Moved" else text
    return Note(pods.resource, key_of(pods.owner), reason, text, uid=pods.owner.metadata.uid)
