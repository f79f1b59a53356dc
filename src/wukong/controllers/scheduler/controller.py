"""The scheduler: kube-scheduler as one of our controllers, for pods that name it in spec.schedulerName.

Pods are scheduled one at a time, by priority and then by age, whereas dispatch hands over keys in an order of its own.
So a key is no more than an occasion: whichever pod's key comes, the pod whose turn it is gets decided. Every change
that may give some pod a turn brings that pod's key, and a reconcile says when the next turn is. Several keys may be in
flight, so bindings go on side by side while decisions follow each other; a pod whose binding fails does not hold up
the others. Where one key for the whole queue would: see docs/decisions/010.

The state is the truth. The queue (queue.py) is made of it when first asked, and follows its changes through
`watches`: there each change is also held against the hints (scheduling_hints.py) of the pods no node suited. What is
lost with it are backoffs, and nominations of which the watch has not told yet.

Left out: terminating pods are not told that they are skipped; scores count room reserved for nominated pods of at
least the same priority, which kube-scheduler respects only when it filters; pods are decided by one profile.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, NamedTuple

import msgspec

from wukong.actions import DONE, Action, Outcome
from wukong.api.core import Pod
from wukong.api.kinds import KINDS, NODES, PODS
from wukong.api.meta import Object
from wukong.api.profile import Profile, default_profile
from wukong.api.resources import Key, Resource, key_of
from wukong.controllers.scheduler import writes
from wukong.controllers.scheduler.choice import Choice, Chooser, Extend
from wukong.controllers.scheduler.queue import Entry, Queue
from wukong.controllers.scheduler.queueing_hints import matters, may_help
from wukong.engine import FIRST_BY_NAME, Ties
from wukong.state import Change, State
from wukong.state.controller import PodRight, Watch
from wukong.state.live_snapshot import FACTS

DEFAULT_NAME = "default-scheduler"
# What decisions read. Pods and nodes come and go; of the others only volumes make room for a pod that waits.
READS = (NODES, *(KINDS[group_kind].resource for group_kind in FACTS), PODS)


class Promise(NamedTuple):
    """A key that will come by itself, and when."""

    key: Key
    at: float


class Scheduler:
    name = "scheduler"
    pod_rights: ClassVar[frozenset[PodRight]] = frozenset({PodRight.PREEMPT})

    def __init__(
        self,
        names: Iterable[str],
        profile: Profile | None = None,
        *,
        ties: Ties = FIRST_BY_NAME,
        extend: Extend | None = None,
        extended_by: Iterable[Resource] = (),
        is_stock: bool = False,
    ) -> None:
        """`names` are the schedulerNames we answer to. `extend` plugs an extender in, as extender.plugin.asking does;
        `extended_by` are the kinds it goes by besides ours, such as policies. `is_stock`: it stands for the profile's
        kube-scheduler, so pods wait as long as they would there."""
        self.names = frozenset(names)
        self.watches = tuple(Watch(resource, self._keys_of) for resource in (*READS, *extended_by))
        profile = profile or default_profile()
        self._chooser = Chooser(profile, ties, extend)
        self._stock = profile.version if is_stock else None
        self._queue = Queue()
        self._state: State | None = None  # whose pods the queue holds
        self._under_way: dict[Key, Entry] = {}  # occasion → the pod decided on it
        self._promise: Promise | None = None

    # ---- deciding

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        """Decide about the pod whose turn it is."""
        self._begin(state)
        if self._promise is not None and (self._promise.key == key or self._promise.at < now):
            self._promise = None
        self._look_back(key, state, now)
        turn = self._next(state, now)
        if turn is None:
            return Outcome(requeue_after=self._wait(key, now)) if len(self._queue) else DONE
        entry, pod = turn
        actions = self._decide(entry, pod, state, now)
        self._drop_occasion(entry)
        self._under_way[key], entry.occasion = entry, key
        return Outcome(actions, requeue_after=self._wait(key, now))

    def _next(self, state: State, now: float) -> tuple[Entry, Pod] | None:
        while (entry := self._queue.pop(now)) is not None:
            pod = state.get(Pod, entry.key)
            if pod is not None and pod.metadata.uid == entry.uid and self._wants_node(pod):
                return entry, pod
            self._remove(entry.key)
        return None

    def _decide(self, entry: Entry, pod: Pod, state: State, now: float) -> tuple[Action, ...]:
        choice = self._chooser.choose(pod, state, self._queue.nominated, now)
        return *choice.notes, *self._carry_out(entry, pod, choice, state, now)

    def _carry_out(self, entry: Entry, pod: Pod, choice: Choice, state: State, now: float) -> tuple[Action, ...]:
        if choice.node:
            return writes.bind(pod, choice.node)
        if choice.error:
            self._queue.trouble(entry, now)
            return writes.refuse(pod, writes.ERROR, choice.error, None, now)
        self._queue.park(entry, choice.refused_by, now)
        return self._refuse(entry, pod, choice, state, now)

    def _refuse(self, entry: Entry, pod: Pod, choice: Choice, state: State, now: float) -> tuple[Action, ...]:
        """No node. Where room can be made, it is promised to the pod before anybody has to go."""
        if choice.keeps_nomination:
            return writes.refuse(pod, writes.UNSCHEDULABLE, choice.message, None, now)
        plan = choice.preemption
        node = plan.node if plan else ""
        self._queue.nominate(entry, node)
        actions = [*writes.refuse(pod, writes.UNSCHEDULABLE, choice.message, node, now)]
        if plan is not None:
            for victim in filter(None, (state.get(Pod, _read_key(text)) for text in plan.victims)):
                actions += writes.preempt(pod, victim, node, now)
            actions += self._take_back(entry, node, state)
        return tuple(actions)

    def _take_back(self, entry: Entry, node: str, state: State) -> list[Action]:
        """Pods of lower priority nominated to the same node may find no room there now: they look elsewhere."""
        found: list[Action] = []
        for key in sorted(key for key, there in self._queue.nominated.items() if there == node):
            other, pod = self._queue.entries[key], state.get(Pod, key)
            if pod is not None and other.priority < entry.priority:
                self._queue.nominate(other, "")
                self._queue.wake(other)
                found.append(writes.take_back_nomination(pod))
        return found

    def _look_back(self, key: Key, state: State, now: float) -> None:
        """What became of the pod decided on this occasion last time: dispatch comes back if it failed."""
        entry = self._under_way.pop(key, None)
        if entry is None or self._queue.entries.get(entry.key) is not entry:
            return
        pod = state.get(Pod, entry.key)
        if pod is None or not self._wants_node(pod):
            return
        was_binding = entry.is_out
        if was_binding and state.placements.get(entry.key) is None:
            self._queue.trouble(entry, now)
            self._wake(
                Change("DELETED", PODS.group_kind, entry.key, _bound(pod), None), state
            )  # it counted somewhere, and does no more
        elif not was_binding and state.attempts.get(self.name, key) is not None:
            self._queue.trouble(entry, now)

    def _wait(self, key: Key, now: float) -> float | None:
        """Seconds until there is something to do; None if only a change brings it, or another key comes in time."""
        due = self._queue.next_due(now)
        if due is None or (self._promise is not None and self._promise.at <= due):
            return None
        self._promise = Promise(key, due)
        return max(0.0, due - now)

    # ---- following the state

    def _begin(self, state: State) -> None:
        """Fill the queue from a state we have not seen before: at the start, or of a fork."""
        if state is self._state:
            return
        self._state, self._queue, self._under_way, self._promise = state, Queue(), {}, None
        for pod in state.all(Pod):
            if self._wants_node(pod) and state.placements.get(key_of(pod)) is None:
                self._queue.add(pod)

    def _keys_of(self, change: Change, state: State) -> Iterable[Key]:
        """The pods to which this change may give a turn."""
        pod = change.new or change.old
        if state is not self._state:  # the queue is made when we are asked; one occasion is enough for that
            return (change.key,) if isinstance(pod, Pod) and self._wants_node(pod) else ()
        if change.old is change.new:  # nobody confirmed its binding in time: it is as if it came again
            change = change._replace(old=None)
        own = self._follow(change.old, change.new, state) if isinstance(pod, Pod) else ()
        return (*own, *self._wake(change, state))

    def _follow(self, old: Object | None, new: Object | None, state: State) -> tuple[Key, ...]:
        """Keep the queue in step with one pod; gives its key if it may have its turn now."""
        if not isinstance(new, Pod) or not self._wants_node(new):
            pod = new or old
            assert isinstance(pod, Pod)
            self._remove(key_of(pod))
            return ()
        key = key_of(new)
        held = self._queue.entries.get(key)
        if held is None or held.uid != new.metadata.uid:
            self._queue.add(new)
            return (key,)
        if not isinstance(old, Pod):  # told again: nobody confirmed its binding in time
            if held.is_out and state.placements.get(key) is None:
                self._remove(key)
                self._queue.add(new)
            return (key,)
        if old.status.nominated_node_name != new.status.nominated_node_name:
            self._queue.nominate(held, new.status.nominated_node_name)
        if old.spec == new.spec and old.metadata.labels == new.metadata.labels:
            return ()
        self._queue.wake(held)
        return (key,)

    def _wake(self, change: Change, state: State) -> list[Key]:
        """Give another turn to those this may help."""
        if not self._queue.parked or not matters(change):
            return []
        helped = []
        for key, entry in list(self._queue.parked.items()):
            pod = state.get(Pod, key)
            if pod is not None and may_help(pod, entry.plugins, change, state, self._stock):
                self._queue.wake(entry)
                helped.append(key)
        return helped

    def _remove(self, key: Key) -> None:
        if (entry := self._queue.entries.get(key)) is not None:
            self._drop_occasion(entry)
            self._queue.remove(key)

    def _drop_occasion(self, entry: Entry) -> None:
        """Nobody needs to look back at it any more."""
        if entry.occasion is not None and self._under_way.get(entry.occasion) is entry:
            del self._under_way[entry.occasion]

    def _wants_node(self, pod: Pod) -> bool:
        spec = pod.spec
        is_waiting = not spec.node_name and not spec.scheduling_gates and not pod.is_finished and not pod.is_terminating
        return is_waiting and (spec.scheduler_name or DEFAULT_NAME) in self.names


def _read_key(text: str) -> Key:
    namespace, _, name = text.rpartition("/")
    return Key(namespace, name)


def _bound(pod: Pod) -> Pod:
    """The pod as it would be had its binding come about."""
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name="somewhere"))
