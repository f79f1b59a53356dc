"""What would happen if these nodes got notice now: who goes where, who fits nowhere, who is left alone. Pure.

Used by `wukong spot plan`. By the engine, on a fork of the snapshot on which the nodes are closed: pods are placed one
after the other, the most urgent first, as the controllers would have them placed. Which node kube-scheduler really
takes depends on what happens meanwhile; that there is one does not, as long as nothing else comes.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

import msgspec

from wukong.api.core import Node, Pod, Taint
from wukong.api.meta import controller_of
from wukong.api.profile import default_profile
from wukong.api.resources import Key
from wukong.controllers.spot.budgets import find_budgets
from wukong.controllers.spot.departure_order import sort_by_urgency
from wukong.controllers.spot.evictions import is_moved, must_leave
from wukong.controllers.spot.notices import Course, Notice
from wukong.controllers.spot.owners import find_obstacle, find_scaled_owner, is_fixed, read_owner_pods
from wukong.controllers.spot.records import RECORD, TAINT, format_record, make_record
from wukong.controllers.spot.room import Room, place, unbind
from wukong.engine import Scheduler
from wukong.errors import InputError
from wukong.state import State


class Way(Enum):
    """How a pod would leave."""

    REPLACED_FIRST = "replaced first"
    EVICTED = "evicted"
    STAYS = "goes with the node"


class PlannedMove(NamedTuple):
    """`reason` says why it is not replaced first, why it stays, or why no node takes it."""

    pod: Pod
    way: Way
    room: Room = Room()
    reason: str = ""

    @property
    def is_safe(self) -> bool:
        return self.way != Way.STAYS and self.room.is_free


def plan_departure(nodes: Iterable[Node], state: State, now: float) -> list[PlannedMove]:
    """Of the pods of these nodes, the most urgent first; those that nobody moves come last.

    The state is changed: the nodes are closed in it, and their end is written down.
    """
    names = [node.metadata.name for node in nodes]
    for name in names:
        _give_notice(name, state, now)
    pods = [pod for name in names for pod in state.pods_on(name) if must_leave(pod)]
    unmovable = [pod for pod in pods if is_fixed(pod) or controller_of(pod.metadata) is None]
    scheduler = Scheduler(state.snapshot.fork(), default_profile())
    moves = [_plan(pod, state, scheduler) for pod in sort_by_urgency([it for it in pods if it not in unmovable], state)]
    return [*moves, *(PlannedMove(pod, Way.STAYS, reason=_explain_staying(pod)) for pod in unmovable)]


def _plan(pod: Pod, state: State, scheduler: Scheduler) -> PlannedMove:
    way = Way.REPLACED_FIRST if is_moved(pod, state) else Way.EVICTED
    if way == Way.EVICTED and pod.key in scheduler.snapshot.pods:
        scheduler.snapshot.forget(pod.key)  # one that is replaced first takes its room until then
    copy = msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, name=f"{pod.metadata.name}+"))
    try:
        room = place(copy if way == Way.REPLACED_FIRST else pod, state, scheduler)
        refusal = "" if room.node else scheduler.decide(unbind(pod)).message
    except InputError as error:
        return PlannedMove(pod, way, reason=str(error))
    reason = refusal or _explain_eviction(pod, way, state)
    return PlannedMove(pod, way, room, reason)


def _explain_eviction(pod: Pod, way: Way, state: State) -> str:
    """Why it cannot be replaced first, and which budget it has to pass."""
    if way == Way.REPLACED_FIRST:
        return ""
    owner = find_scaled_owner(pod, state)
    obstacle = find_obstacle(read_owner_pods(owner, state), state) if owner is not None else ""
    used_up = [it.metadata.name for it in find_budgets(pod, state) if it.status.disruptions_allowed < 1]
    waits = f"PodDisruptionBudget {used_up[0]} allows no disruption now" if used_up else ""
    return "; ".join(filter(None, (obstacle, waits)))


def _explain_staying(pod: Pod) -> str:
    return "its author asks that nobody moves it" if is_fixed(pod) else "it has no controller that would make it again"


def _give_notice(name: str, state: State, now: float) -> None:
    """As the controller of nodes would write it."""
    node = state.get(Node, Key("", name))
    assert node is not None, name
    record = make_record(Notice("wukong spot plan", Course.RECLAIM), now, is_cordoned=True)
    annotations = {**node.metadata.annotations, RECORD: format_record(record)}
    closed = msgspec.structs.replace(
        node,
        metadata=msgspec.structs.replace(node.metadata, annotations=annotations, resource_version=""),
        spec=msgspec.structs.replace(
            node.spec, unschedulable=True, taints=[*node.spec.taints, Taint(key=TAINT, effect="NoSchedule")]
        ),
    )
    state.apply("MODIFIED", closed)
