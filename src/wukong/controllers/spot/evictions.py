"""Pods that no surge can replace are evicted, through their budgets, while their node still has time.

Keys are nodes. Only of nodes whose machine goes: who drains a node himself evicts himself. Left alone are pods that a
Move replaces (moves.py), DaemonSets' and static pods, those that nobody may move, and pods without a controller, which
nobody would make again: these are named in an Event. For the others:

    a node has room for another like it, its budget allows it, and all other pods of its controller are ready ─► evicted
    else                                                                                                     ─► wait
    the last moment, its grace and LAST_SECONDS before the deadline, or the last third of a short notice
                   ─► evicted where its budget allows it, whoever else is ready, also if a Move is not done with it
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import msgspec

from wukong.actions import DONE, Action, Evict, Note, Outcome
from wukong.api.apps import PodDisruptionBudget, StatefulSet
from wukong.api.core import Node, Pod
from wukong.api.kinds import (
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    STATEFUL_SETS,
    VIRTUAL_MACHINE_INSTANCES,
)
from wukong.api.kubevirt import VirtualMachineInstance
from wukong.api.meta import OwnerReference, controller_of
from wukong.api.profile import default_profile
from wukong.api.resources import Key, key_of, refers_to
from wukong.api.spot import Move
from wukong.api.times import parse_time
from wukong.controllers.spot.budgets import Allowances
from wukong.controllers.spot.moves import REVERTED
from wukong.controllers.spot.notices import Course
from wukong.controllers.spot.owners import (
    find_obstacle,
    find_scaled_owner,
    is_fixed,
    is_ready,
    move_key_of,
    read_owner_pods,
)
from wukong.controllers.spot.pending_evictions import PendingEvictions
from wukong.controllers.spot.records import LeavingNodes, Record, read_record
from wukong.engine import Scheduler
from wukong.errors import InputError
from wukong.state import Change, State
from wukong.state.controller import PodRight, Watch, no_keys

LOOK_SECONDS = 2.0  # until a node with pods that wait is looked at again
LAST_SECONDS = 10.0  # beyond a pod's grace: what is not moved by then is evicted
DEFAULT_GRACE_SECONDS = 30
_STATIC_POD = "kubernetes.io/config.mirror"


def node_of_pod(change: Change, state: State) -> Iterable[Key]:
    leaving = state.index_of(LeavingNodes).records
    if not leaving:
        return ()
    names = {pod.spec.node_name for pod in (change.old, change.new) if isinstance(pod, Pod)}
    return [Key("", name) for name in sorted(names) if name in leaving]


class SpotEvictions:
    name = "spot-eviction"
    pod_rights: ClassVar[frozenset[PodRight]] = frozenset((PodRight.EVICT,))
    watches = (
        Watch(NODES),
        Watch(PODS, node_of_pod, is_secondary=True),
        *(
            Watch(resource, no_keys)
            for resource in (
                *(POD_DISRUPTION_BUDGETS, STATEFUL_SETS),
                *(NAMESPACES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES),
            )
        ),
        Watch(VIRTUAL_MACHINE_INSTANCES, no_keys, optional=True),
    )

    def __init__(self) -> None:
        self._profile = msgspec.structs.replace(default_profile(), scores=(), zero_scores=())
        self._named: set[str] = set()  # uids of pods that an Event was about; may be lost
        self._pending = PendingEvictions()

    def copy_memory(self, source: SpotEvictions, _: State) -> None:
        self._named, self._pending = set(source._named), source._pending.copy()

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        record = read_record(state.get(Node, key))
        if record is None or record.course != Course.RECLAIM:
            return DONE
        pods = [pod for pod in state.pods_on(key.name) if _must_leave(pod)]
        notes = [note for pod in pods if controller_of(pod.metadata) is None for note in self._name_bare(pod, record)]
        movable = [pod for pod in pods if controller_of(pod.metadata) is not None]
        movable.sort(key=lambda pod: (-(pod.spec.priority or 0), pod.metadata.namespace, pod.metadata.name))
        self._pending.drop_shown(state, now)
        has_failed = state.attempts.get(self.name, key) is not None  # then one of these may still have to be evicted
        waiting = [pod for pod in movable if has_failed or not self._pending.includes(pod)]
        evicted = self._choose(waiting, record, state, now)
        actions: list[Action] = [Evict(key_of(pod), uid=pod.metadata.uid) for pod in evicted]
        return Outcome((*notes, *actions), requeue_after=LOOK_SECONDS if len(evicted) < len(movable) else None)

    def _choose(self, pods: list[Pod], record: Record, state: State, now: float) -> list[Pod]:
        """Those to be evicted now: of each controller one, of each budget as many as it allows."""
        chosen, controllers, allowances = (
            list[tuple[Pod, PodDisruptionBudget | None]](),
            set[str](),
            Allowances(state, self._pending),
        )
        for pod in pods:
            reference = controller_of(pod.metadata)
            assert reference is not None, "pods without a controller are left alone"
            is_last_moment = _is_last_moment(pod, record, now)
            if reference.uid in controllers and not is_last_moment:
                continue
            if not is_last_moment and not self._may_go(pod, reference, state):
                continue
            if is_last_moment and _is_evacuating(pod, reference, state):
                continue
            if (allowance := allowances.take(pod)).is_granted:
                chosen.append((pod, allowance.budget))
                controllers.add(reference.uid)
        for pod, budget in chosen:
            self._pending.add(pod, budget, now)
        return [pod for pod, _ in chosen]

    def _may_go(self, pod: Pod, reference: OwnerReference, state: State) -> bool:
        return (
            not _is_moved(pod, state)
            and not _is_evacuating(pod, reference, state)
            and self._is_turn(pod, reference, state)
            and self._has_room(pod, state)
        )

    def _is_turn(self, pod: Pod, reference: OwnerReference, state: State) -> bool:
        """Whether all others of its controller are there and ready, and none that leaves, on any node, is before it.

        Two nodes are looked at by themselves: without an order both would evict a pod of one controller at once.
        """
        keys = sorted(state.owners.owned_by(reference.uid, PODS))
        others = [other for key in keys if key != key_of(pod) and (other := state.get(Pod, key)) is not None]
        if refers_to(reference, STATEFUL_SETS):
            owner = state.owner(pod.metadata.namespace, reference)
            replicas = owner.spec.replicas if isinstance(owner, StatefulSet) else None
            if len(others) + 1 < (1 if replicas is None else replicas):
                return False
        leaving = state.index_of(LeavingNodes).records
        first = min(it.metadata.name for it in (pod, *others) if it.spec.node_name in leaving and not is_fixed(it))
        if first != pod.metadata.name:
            return False
        return all(other.is_finished or self._is_steady(other) for other in others)

    def _is_steady(self, pod: Pod) -> bool:
        return is_ready(pod) and not pod.is_terminating and not self._pending.includes(pod)

    def _has_room(self, pod: Pod, state: State) -> bool:
        """Whether some node takes another pod like this one once it is gone."""
        snapshot = state.snapshot.fork()
        if pod.key in snapshot.pods:
            snapshot.forget(pod.key)
        unbound = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=""))
        try:
            view = Scheduler(snapshot, self._profile).view_of(unbound)
            view.sync()
        except InputError:  # a pod that no scheduler could read
            return False
        return bool(view.feasible.any())

    def _name_bare(self, pod: Pod, record: Record) -> Iterable[Note]:
        if pod.metadata.uid in self._named:
            return
        self._named.add(pod.metadata.uid)
        text = f"Its node leaves ({record.source}), and nobody would make it again: it has no controller."
        yield Note(PODS, key_of(pod), "CannotMove", text, uid=pod.metadata.uid, is_warning=True)


def _must_leave(pod: Pod) -> bool:
    if pod.is_finished or pod.is_terminating or is_fixed(pod) or _STATIC_POD in pod.metadata.annotations:
        return False
    reference = controller_of(pod.metadata)
    return reference is None or reference.kind not in ("DaemonSet", "Node")


def _is_moved(pod: Pod, state: State) -> bool:
    """Whether a Move replaces this pod, or will."""
    owner = find_scaled_owner(pod, state)
    if owner is None:
        return False
    move = state.get(Move, move_key_of(owner))
    return (
        move.status.phase != REVERTED if move is not None else not find_obstacle(read_owner_pods(owner, state), state)
    )


def _is_evacuating(pod: Pod, reference: OwnerReference, state: State) -> bool:
    """Whether KubeVirt migrates the virtual machine of this pod already."""
    owner = state.owner(pod.metadata.namespace, reference)
    return isinstance(owner, VirtualMachineInstance) and bool(owner.status.evacuation_node_name)


def _is_last_moment(pod: Pod, record: Record, now: float) -> bool:
    grace, deadline = pod.spec.termination_grace_period_seconds, record.deadline_at
    if deadline is None:
        return False
    needed = (DEFAULT_GRACE_SECONDS if grace is None else grace) + LAST_SECONDS
    given = max(0.0, deadline - (parse_time(record.seen) or now))
    return now >= deadline - min(needed, given / 3)
