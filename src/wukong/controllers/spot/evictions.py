"""Pods that no surge can replace are evicted, through their budgets, while their node still has time.

Keys are nodes. Only of nodes whose machine goes: who drains a node himself evicts himself. Left alone are pods that a
Move replaces (moves.py), DaemonSets' and static pods, those that nobody may move, and pods without a controller, which
nobody would make again: these two are named in an Event. For the others, the most urgent first (departure_order.py):

    a node has room for another like it, its budget allows it, and all other pods of its controller are ready ─► evicted
    room would cost others theirs                                        ─► Event WouldCascade, wait
    else                                                                 ─► wait
    the last moment (deadlines.py): whoever else is ready, also if a Move is not done with it
        its budget allows it                                             ─► evicted
        it does not, and a policy says onDeadline: Delete                ─► deleted
        it does not                                                      ─► named in an Event before it dies

A pod carries the annotation `moving` from its eviction on.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterable, Iterator
from typing import ClassVar, NamedTuple

from wukong.actions import Action, Delete, Evict, Note, Outcome
from wukong.api.apps import PodDisruptionBudget, StatefulSet
from wukong.api.core import Node, Pod
from wukong.api.kinds import (
    CLUSTER_PLACEMENT_POLICIES,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PLACEMENT_POLICIES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    RESOURCE_QUOTAS,
    STATEFUL_SETS,
    VIRTUAL_MACHINE_INSTANCES,
)
from wukong.api.kubevirt import VirtualMachineInstance
from wukong.api.meta import OwnerReference, controller_of
from wukong.api.resources import Key, key_of, refers_to
from wukong.api.spot import Move
from wukong.controllers.spot.budgets import Allowances
from wukong.controllers.spot.deadlines import DeadlinePolicies, is_last_moment
from wukong.controllers.spot.departure_order import sort_by_urgency
from wukong.controllers.spot.marks import is_marked, mark_evicted, unmark
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
from wukong.controllers.spot.room import Rooms, find_room, plain_profile
from wukong.placement.rule import Rules
from wukong.state import Change, State
from wukong.state.controller import PodRight, Watch, no_keys

BLOCKS = ("replacement", "migration", "turn", "room", "budget")
MOST_SAID = 10_000  # pods and reasons that are remembered
LOOK_SECONDS = 2.0  # until a node with pods that wait is looked at again
_STATIC_POD = "kubernetes.io/config.mirror"


def node_of_pod(change: Change, state: State) -> Iterable[Key]:
    leaving = state.index_of(LeavingNodes).records
    if not leaving:
        return ()
    names = {pod.spec.node_name for pod in (change.old, change.new) if isinstance(pod, Pod)}
    return [Key("", name) for name in sorted(names) if name in leaving]


class Departure(NamedTuple):
    """A pod that goes now: by the eviction API, or past its budget for this reason."""

    pod: Pod
    budget: PodDisruptionBudget | None = None
    deleted_for: str = ""


class Choice:
    """What is decided about the pods of a node: who goes, what is said, and how many wait for what."""

    def __init__(self) -> None:
        self.departures: list[Departure] = []
        self.notes: list[Note] = []
        self.blocks: Tally[str] = Tally()


class SpotEvictions:
    name = "spot-eviction"
    pod_rights: ClassVar[frozenset[PodRight]] = frozenset((PodRight.EVICT, PodRight.DELETE_AT_DEADLINE))
    watches = (
        Watch(NODES),
        Watch(PODS, node_of_pod, is_secondary=True),
        *(
            Watch(resource, no_keys)
            for resource in (
                *(POD_DISRUPTION_BUDGETS, STATEFUL_SETS, RESOURCE_QUOTAS),
                *(NAMESPACES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES),
            )
        ),
        *(
            Watch(resource, no_keys, optional=True)
            for resource in (VIRTUAL_MACHINE_INSTANCES, PLACEMENT_POLICIES, CLUSTER_PLACEMENT_POLICIES)
        ),
    )

    def __init__(self, rules: Rules) -> None:
        self._profile = plain_profile()
        self._policies = DeadlinePolicies(rules)
        self._said: set[tuple[str, str]] = set()  # uids of pods that an Event was about, and its reason; may be lost
        self._pending = PendingEvictions()
        self._blocks: dict[Key, Tally[str]] = {}  # by node: what its pods wait for

    def copy_memory(self, source: SpotEvictions, _: State) -> None:
        self._said, self._pending = set(source._said), source._pending.copy()
        self._blocks = {key: blocks.copy() for key, blocks in source._blocks.items()}

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        record = read_record(state.get(Node, key))
        if record is None or record.course != Course.RECLAIM:
            self._blocks.pop(key, None)
            return Outcome(tuple(_unmark_staying(key, state)) if record is None else ())
        pods = [pod for pod in state.pods_on(key.name) if must_leave(pod)]
        unmovable = [pod for pod in pods if is_fixed(pod) or controller_of(pod.metadata) is None]
        notes = [note for pod in unmovable for note in self._name_unmovable(pod, record)]
        movable = [pod for pod in pods if pod not in unmovable]
        self._pending.drop_shown(state, now)
        has_failed = state.attempts.get(self.name, key) is not None  # then one of these may still have to be evicted
        waiting = [pod for pod in movable if has_failed or not self._pending.includes(pod)]
        choice = self._choose(sort_by_urgency(waiting, state), record, state, now)
        self._blocks[key] = choice.blocks
        actions = [action for departure in choice.departures for action in _carry_out(departure)]
        again = LOOK_SECONDS if len(choice.departures) < len(movable) else None
        return Outcome((*notes, *choice.notes, *actions), requeue_after=again)

    def _choose(self, pods: list[Pod], record: Record, state: State, now: float) -> Choice:
        """Those that go now, of each controller one and of each budget as many as it allows."""
        choice, rooms = Choice(), Rooms(state, self._profile)
        controllers, allowances = set[str](), Allowances(state, self._pending)
        for pod in pods:
            reference = controller_of(pod.metadata)
            assert reference is not None, "pods without a controller are left alone"
            is_last = is_last_moment(pod, record, now)
            if _is_evacuating(pod, reference, state):
                block = "migration"
            elif is_last:
                block = ""
            else:
                block = (
                    "turn" if reference.uid in controllers else self._find_block(pod, reference, state, rooms, choice)
                )
            if block:
                choice.blocks[block] += 1
            elif (allowance := allowances.take(pod)).is_granted:
                choice.departures.append(Departure(pod, allowance.budget))
                controllers.add(reference.uid)
            elif is_last and self._may_delete(pod, reference, state):
                choice.departures.append(Departure(pod, allowance.budget, allowance.reason))
            else:
                choice.blocks["budget"] += 1
                text = f"Its node goes at {record.deadline}, and it cannot be evicted: {allowance.reason}."
                choice.notes += self._say(pod, "GoesWithNode", text) if is_last else ()
        for departure in choice.departures:
            self._pending.add(departure.pod, departure.budget, now)
        return choice

    def _find_block(self, pod: Pod, reference: OwnerReference, state: State, rooms: Rooms, choice: Choice) -> str:
        """What this pod waits for, before any budget is asked; "" for nothing."""
        if is_moved(pod, state):
            return "replacement"
        if not self._is_turn(pod, reference, state):
            return "turn"
        return "" if rooms.take(pod) or self._makes_room(pod, state, choice.notes) else "room"

    def count_blocked(self) -> Tally[str]:
        """How many pods wait on leaving nodes, by what for: see BLOCKS. As they were last looked at."""
        return sum(self._blocks.values(), Tally[str]())

    def _may_delete(self, pod: Pod, reference: OwnerReference, state: State) -> bool:
        """Never a virtual machine's: KubeVirt would take that for a crash."""
        return not refers_to(reference, VIRTUAL_MACHINE_INSTANCES) and self._policies.deletes(pod, state)

    def _makes_room(self, pod: Pod, state: State, notes: list[Note]) -> bool:
        """Whether lower pods would make room for this one and find a place themselves; said where they would not."""
        if not pod.spec.priority or pod.spec.preemption_policy == "Never":
            return False
        room = find_room(pod, state, self._profile)
        if room.stranded:
            victims = ", ".join(room.stranded[:3]) + (" and more" if len(room.stranded) > 3 else "")
            text = f"Not evicted yet: on {room.node} it would preempt {victims}, and no node has room for them."
            notes += self._say(pod, "WouldCascade", text)
        return room.is_free

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

    def _name_unmovable(self, pod: Pod, record: Record) -> Iterator[Note]:
        why = "its author asks that nobody moves it" if is_fixed(pod) else "nobody would make it again: no controller"
        yield from self._say(pod, "CannotMove", f"Its node leaves ({record.source}), and {why}.")

    def _say(self, pod: Pod, reason: str, text: str) -> Iterator[Note]:
        if (pod.metadata.uid, reason) not in self._said:
            if len(self._said) >= MOST_SAID:
                self._said.clear()  # then some of them are said once more
            self._said.add((pod.metadata.uid, reason))
            yield Note(PODS, key_of(pod), reason, text, uid=pod.metadata.uid, is_warning=True)


def _carry_out(departure: Departure) -> Iterator[Action]:
    pod, key = departure.pod, key_of(departure.pod)
    if not is_marked(pod):
        yield mark_evicted(pod)
    if not departure.deleted_for:
        yield Evict(key, uid=pod.metadata.uid)
        return
    text = f"Deleted before its node goes, as its policy says: {departure.deleted_for}."
    yield Note(PODS, key, "DeletedAtDeadline", text, uid=pod.metadata.uid, is_warning=True)
    yield Delete(PODS, key, uid=pod.metadata.uid)


def _unmark_staying(node: Key, state: State) -> Iterator[Action]:
    """Pods of a node that stays after all. Those of workloads that are scaled are unmarked by moves.py."""
    for pod in state.pods_on(node.name):
        if is_marked(pod) and not pod.is_terminating and not pod.is_finished and find_scaled_owner(pod, state) is None:
            yield unmark(pod)


def must_leave(pod: Pod) -> bool:
    if pod.is_finished or pod.is_terminating or _STATIC_POD in pod.metadata.annotations:
        return False
    reference = controller_of(pod.metadata)
    return reference is None or reference.kind not in ("DaemonSet", "Node")


def is_moved(pod: Pod, state: State) -> bool:
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
