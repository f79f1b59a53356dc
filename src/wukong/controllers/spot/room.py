"""Whether there is room for a pod like one that leaves, and whom that would cost: by the engine, on a fork. Pure.

Used by evictions.py and by `wukong spot plan`. Room that has to be made is room only if those who make it are lower and
find a place themselves: else one pod's move becomes another's outage. A node with a notice has none, also before that
is written down and the node closed: nodes of one pool get theirs in the same moment.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from wukong.api.core import Pod
from wukong.api.profile import Profile, default_profile
from wukong.api.resources import Key
from wukong.controllers.spot.records import LeavingNodes
from wukong.engine import Scheduler
from wukong.errors import InputError
from wukong.state import State


class Room(NamedTuple):
    """`node` takes it, once the `victims` are gone; of those the `stranded` fit nowhere else. "": no node does."""

    node: str = ""
    victims: tuple[str, ...] = ()
    stranded: tuple[str, ...] = ()

    @property
    def is_free(self) -> bool:
        """Whether it can be had without an outage."""
        return bool(self.node) and not self.stranded


def plain_profile() -> Profile:
    """Which nodes take a pod; not which is best."""
    return msgspec.structs.replace(default_profile(), scores=(), zero_scores=())


def unbind(pod: Pod) -> Pod:
    """The pod as its controller would make it again."""
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=""))


class Rooms:
    """The room for the pods of one decision: on one fork, so that what one takes, the next does not get."""

    def __init__(self, state: State, profile: Profile) -> None:
        self._state, self._profile = state, profile
        self._scheduler: Scheduler | None = None

    def take(self, pod: Pod) -> bool:
        """Whether some node takes another pod like this one once it is gone, with nobody preempted: then it counts."""
        if self._scheduler is None:
            self._scheduler = Scheduler(self._state.snapshot.fork(), self._profile)
        snapshot = self._scheduler.snapshot
        before = snapshot.forget(pod.key) if pod.key in snapshot.pods else None
        if self._find_place(pod, self._scheduler):
            return True
        if before is not None:
            snapshot.assume_template(pod.key, *before)
        return False

    def _find_place(self, pod: Pod, scheduler: Scheduler) -> bool:
        unbound, noticed = unbind(pod), self._state.index_of(LeavingNodes).noticed
        try:
            view = scheduler.view_of(unbound)
            view.sync()
        except InputError:  # a pod that no scheduler could read
            return False
        names = (scheduler.snapshot.rows[row].name for row in view.feasible.nonzero()[0].tolist())
        return any(name not in noticed for name in names) and scheduler.place(unbound, pod.key) is not None


def find_room(pod: Pod, state: State, profile: Profile) -> Room:
    """Where another pod like this one would go, also if others had to make room."""
    snapshot = state.snapshot.fork()
    if pod.key in snapshot.pods:
        snapshot.forget(pod.key)
    try:
        room = place(pod, state, Scheduler(snapshot, profile))
    except InputError:
        return Room()
    return Room() if room.node in state.index_of(LeavingNodes).noticed else room


def place(pod: Pod, state: State, scheduler: Scheduler) -> Room:
    """Place it on the scheduler's snapshot, which then counts it. Raises InputError about what cannot be read."""
    node = scheduler.place(unbind(pod), pod.key)
    if node is not None:
        return Room(node)
    preemption = scheduler.decide(unbind(pod)).preemption
    if preemption is None:
        return Room()
    victims = [state.get(Pod, _key_of(name)) for name in preemption.victims]
    for name in preemption.victims:
        scheduler.snapshot.forget(name)
    if scheduler.place(unbind(pod), pod.key) is None:
        return Room()
    stranded = tuple(
        victim.key for victim in victims if victim is not None and scheduler.place(unbind(victim), victim.key) is None
    )
    return Room(preemption.node, preemption.victims, stranded)


def _key_of(name: str) -> Key:
    namespace, _, rest = name.partition("/")
    return Key(namespace, rest)
