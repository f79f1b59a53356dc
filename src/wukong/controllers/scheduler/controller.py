"""The scheduler: kube-scheduler as one of our controllers, for pods that name it in spec.schedulerName.

On a real cluster it binds pods itself; in an embedded one it also stands for kube-scheduler.

Pods are scheduled one at a time, by priority and then by age, whereas dispatch hands over keys in an order of its own.
So whichever pod's key comes, the pod that is next in the queue gets decided. Every change that may help a pod brings
that pod's key, and a reconcile says when the next pod is due. Several keys may be in flight, so bindings go on side by
side while decisions follow each other; a pod whose binding fails does not hold up the others, as it would with one key
for the whole queue (docs/decisions/010).

The state is the truth. The queue (queue.py) is filled from it at the first reconcile, and follows its changes through
`watches`: there each change is also compared with the hints (queueing_hints.py) of the pods no node suited. A restart
loses backoffs, and nominations that the watch has not delivered yet.

Left out: no Event says that a terminating pod is skipped; scores count room reserved for nominated pods of at
least the same priority, which kube-scheduler respects only when it filters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import ClassVar, Literal, NamedTuple

import msgspec

from wukong.actions import DONE, Action, Bind, Outcome
from wukong.api.core import PersistentVolume, PersistentVolumeClaim, Pod
from wukong.api.kinds import KINDS, NODES, PODS
from wukong.api.meta import Object
from wukong.api.profile import Profile, default_profile
from wukong.api.resources import Key, Resource, key_of
from wukong.controllers.scheduler import volume_waits, writes
from wukong.controllers.scheduler.choice import Choice, Chooser, Extension
from wukong.controllers.scheduler.queue import Entry, Queue
from wukong.controllers.scheduler.queueing_hints import matters, may_help
from wukong.controllers.scheduler.unmodelled import find_unmodelled
from wukong.engine import FIRST_BY_NAME, Ties
from wukong.state import Change, State
from wukong.state.controller import PodRight, Watch
from wukong.state.live_snapshot import FACTS

DEFAULT_NAME = "default-scheduler"
# What decisions read. Pods and nodes come and go; of the others only those of storage make room for a pod that waits.
READS = (NODES, *(KINDS[group_kind].resource for group_kind in FACTS), PODS)
NOT_MODELLED = "DynamicResources"  # the plugin that would refuse such a pod: no change helps that we hear of
Result = Literal["scheduled", "unschedulable", "error", "not-modelled"]  # of one attempt


class Requeue(NamedTuple):
    """A key that comes back by itself, and when."""

    key: Key
    at: float


class Scheduler:
    """The controller. Its keys are pods; see above for which pod a key decides."""

    pod_rights: ClassVar[frozenset[PodRight]] = frozenset({PodRight.PREEMPT})

    def __init__(
        self,
        names: Iterable[str],
        profile: Profile | None = None,
        *,
        profiles: Mapping[str, Profile] | None = None,
        name: str = "scheduler",
        ties: Ties = FIRST_BY_NAME,
        extension: Extension | None = None,
        extended_by: Iterable[Resource] = (),
        is_stock: bool = False,
        refuses_unmodelled: bool = False,
        record_result: Callable[[Result], None] = lambda result: None,
    ) -> None:
        """`names` are the schedulerNames we answer to, each by its own of the `profiles` or else by `profile`; `name`
        is the controller's. `extension` is an extender's; `extended_by` are the kinds it goes by besides ours, such as
        policies: they need not be installed. `is_stock`: it stands for the profile's kube-scheduler, so pods wait as
        long as they would there. `record_result` hears of every attempt."""
        self.names, self.name = frozenset(names), name
        extended_kinds = (Watch(resource, self._keys_of, optional=True) for resource in extended_by)
        self.watches = (*(Watch(resource, self._keys_of) for resource in READS), *extended_kinds)
        profile = profile or default_profile()
        by_name = profiles or {}
        self._choosers = {
            scheduler_name: Chooser(by_name.get(scheduler_name, profile), ties, extension)
            for scheduler_name in sorted(self.names)
        }
        self._stock = profile.version if is_stock else None
        self._refuses_unmodelled, self._record_result = refuses_unmodelled, record_result
        self._queue = Queue()
        self._state: State | None = None  # whose pods the queue holds
        self._decided: dict[Key, Entry] = {}  # key of a reconcile → the pod decided in it
        self._requeue: Requeue | None = None
        self._waits: dict[Key, volume_waits.Wait] = {}  # pods that have a node and wait for their volumes

    # ---- deciding

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        """Decide about the pod that is next in the queue, whichever key came."""
        self._fill_queue(state)
        if self._requeue is not None and (self._requeue.key == key or self._requeue.at < now):
            self._requeue = None
        self._check_last_decision(key, state, now)
        finished = self._finish_wait(state, now) if self._waits else None
        if finished is not None:
            entry, actions = finished
            return self._build_outcome(key, entry, actions, now)
        turn = self._take_next(state, now)
        if turn is None:
            return Outcome(requeue_after=self._seconds_to_wait(key, now)) if len(self._queue) else DONE
        entry, pod = turn
        actions = self._decide(entry, pod, state, now)
        wait = self._waits.get(entry.key)
        assumed = (Bind(entry.key, wait.promise.node, entry.uid),) if wait is not None else ()
        return self._build_outcome(key, entry, actions, now, assumed)

    def _build_outcome(
        self, key: Key, entry: Entry, actions: tuple[Action, ...], now: float, assumed: tuple[Bind, ...] = ()
    ) -> Outcome:
        self._forget_decision(entry)
        self._decided[key], entry.decided_on = entry, key
        return Outcome(actions, self._seconds_to_wait(key, now), assumed)

    def _take_next(self, state: State, now: float) -> tuple[Entry, Pod] | None:
        while (entry := self._queue.pop(now)) is not None:
            pod = state.get(Pod, entry.key)
            if pod is not None and pod.metadata.uid == entry.uid and self._wants_node(pod):
                return entry, pod
            self._remove(entry.key)
        return None

    def _decide(self, entry: Entry, pod: Pod, state: State, now: float) -> tuple[Action, ...]:
        problem = find_unmodelled(pod) if self._refuses_unmodelled else ""
        if problem:
            self._queue.park(entry, frozenset({NOT_MODELLED}), now)
            self._record_result("not-modelled")
            return writes.refuse_unmodelled(pod, problem)
        choice = self._choosers[_scheduler_name_of(pod)].choose(pod, state, self._queue.nominated, now)
        self._record_result("scheduled" if choice.node else "error" if choice.error else "unschedulable")
        return *choice.notes, *self._build_actions(entry, pod, choice, state, now)

    def _build_actions(self, entry: Entry, pod: Pod, choice: Choice, state: State, now: float) -> tuple[Action, ...]:
        if choice.node:
            promise = volume_waits.find_promise(pod, choice.node, state)
            if promise is None:
                return writes.bind(pod, choice.node)
            self._waits[entry.key] = volume_waits.start_wait(pod, promise, now)
            return volume_waits.build_writes(promise, state)
        if choice.error:
            self._queue.back_off_after_error(entry, now)
            return writes.refuse(pod, writes.ERROR, choice.error, None, now)
        self._queue.park(entry, choice.refused_by, now)
        return self._refuse(entry, pod, choice, state, now)

    def _finish_wait(self, state: State, now: float) -> tuple[Entry, tuple[Action, ...]] | None:
        """Bind the first pod whose volumes are bound, or give it up if that went wrong."""
        for key, wait in list(self._waits.items()):
            if not wait.is_changed and now < wait.due:
                continue
            entry, pod = self._queue.entries.get(key), state.get(Pod, key)
            if entry is None or pod is None or pod.metadata.uid != wait.uid or not self._wants_node(pod):
                self._stop_wait(key, state)
                continue
            result = volume_waits.look(wait, state, now)
            if result is None:
                continue
            node = wait.promise.node
            self._stop_wait(key, state)
            if not result:
                return entry, writes.bind(pod, node)
            self._queue.back_off_after_error(entry, now)
            return entry, writes.refuse(pod, writes.ERROR, result, None, now)
        return None

    def _stop_wait(self, key: Key, state: State) -> None:
        """Let a pod that waits count nowhere. Whoever binds it now has it counted again."""
        if self._waits.pop(key, None) is not None:
            state.forget(key)

    def _refuse(self, entry: Entry, pod: Pod, choice: Choice, state: State, now: float) -> tuple[Action, ...]:
        """Record that no node fits. Where preemption helps, nominate the node before deleting the victims."""
        if choice.keeps_nomination:
            return writes.refuse(pod, writes.UNSCHEDULABLE, choice.message, None, now)
        plan = choice.preemption
        node = plan.node if plan else ""
        self._queue.nominate(entry, node)
        actions = [*writes.refuse(pod, writes.UNSCHEDULABLE, choice.message, node, now)]
        if plan is not None:
            for victim in filter(None, (state.get(Pod, _parse_key(text)) for text in plan.victims)):
                actions += writes.preempt(pod, victim, node, now)
            actions += self._take_back_nominations(entry, node, state)
        return tuple(actions)

    def _take_back_nominations(self, entry: Entry, node: str, state: State) -> list[Action]:
        """Take back the nominations of pods with lower priority to this node, which may have no room for them now."""
        actions: list[Action] = []
        for key in sorted(key for key, nominated_node in self._queue.nominated.items() if nominated_node == node):
            nominated_entry, pod = self._queue.entries[key], state.get(Pod, key)
            if pod is not None and nominated_entry.priority < entry.priority:
                self._queue.nominate(nominated_entry, "")
                self._queue.wake(nominated_entry)
                actions.append(writes.take_back_nomination(pod))
        return actions

    def _check_last_decision(self, key: Key, state: State, now: float) -> None:
        """Back off the pod that the last reconcile of this key decided, if that failed: then the key comes back."""
        entry = self._decided.pop(key, None)
        if entry is None or self._queue.entries.get(entry.key) is not entry:
            return
        pod = state.get(Pod, entry.key)
        if pod is None or not self._wants_node(pod):
            return
        if entry.key in self._waits:
            if state.attempts.get(self.name, key) is not None:  # what its volumes need could not be written
                self._stop_wait(entry.key, state)
                self._queue.back_off_after_error(entry, now)
            return
        was_binding = entry.is_popped
        if was_binding and state.placements.get(entry.key) is None:
            self._queue.back_off_after_error(entry, now)
            self._wake_pods(
                Change("DELETED", PODS.group_kind, entry.key, _with_some_node(pod), None), state
            )  # it counted somewhere, and does no more
        elif not was_binding and state.attempts.get(self.name, key) is not None:
            self._queue.back_off_after_error(entry, now)

    def _seconds_to_wait(self, key: Key, now: float) -> float | None:
        """Return the seconds until a pod is due; None if only a change can help, or another key comes in time."""
        times = [wait.due for wait in self._waits.values()]
        if (next_due := self._queue.next_due(now)) is not None:
            times.append(next_due)
        due = min(times, default=None)
        if due is None or (self._requeue is not None and self._requeue.at <= due):
            return None
        self._requeue = Requeue(key, due)
        return max(0.0, due - now)

    # ---- following the state

    def _fill_queue(self, state: State) -> None:
        """Fill the queue from a state we have not seen before: at the start, or after a fork."""
        if state is self._state:
            return
        self._state, self._queue, self._decided, self._requeue, self._waits = state, Queue(), {}, None, {}
        for pod in state.pods_on(""):
            if self._wants_node(pod) and state.placements.get(key_of(pod)) is None:
                self._queue.add(pod)

    def copy_memory(self, source: Scheduler, state: State) -> None:
        if source._state is None:
            return
        self._state, self._requeue = state, source._requeue
        self._queue, copy_of = source._queue.fork()
        self._decided = {key: copy_of(entry) for key, entry in source._decided.items()}
        self._waits = {key: msgspec.structs.replace(wait) for key, wait in source._waits.items()}

    def _keys_of(self, change: Change, state: State) -> Iterable[Key]:
        """Return the keys of the pods that this change may help."""
        pod = change.new or change.old
        if state is not self._state:  # the first reconcile fills the queue; one key is enough for that
            return (change.key,) if isinstance(pod, Pod) and self._wants_node(pod) else ()
        if change.old is change.new:  # its binding was not confirmed in time: treat the pod as new
            change = change._replace(old=None)
        own_keys = self._update_queue(change.old, change.new, state) if isinstance(pod, Pod) else ()
        waiting_keys = self._note_volume(pod) if self._waits else ()
        return (*own_keys, *waiting_keys, *self._wake_pods(change, state))

    def _note_volume(self, subject: Object | None) -> list[Key]:
        """Have those looked at that wait for this claim or volume. Return their keys."""
        if not isinstance(subject, PersistentVolume | PersistentVolumeClaim):
            return []
        keys = [key for key, wait in self._waits.items() if wait.concerns(subject)]
        for key in keys:
            self._waits[key].is_changed = True
        return keys

    def _update_queue(self, old: Object | None, new: Object | None, state: State) -> tuple[Key, ...]:
        """Update the queue for one pod. Return its key if it may be decided now."""
        if not isinstance(new, Pod) or not self._wants_node(new):
            pod = new or old
            assert isinstance(pod, Pod)
            self._remove(key_of(pod))
            return ()
        key = key_of(new)
        entry = self._queue.entries.get(key)
        if entry is None or entry.uid != new.metadata.uid:
            self._queue.add(new)
            return (key,)
        if not isinstance(old, Pod):  # added again: its binding was not confirmed in time
            if entry.is_popped and state.placements.get(key) is None:
                self._remove(key)
                self._queue.add(new)
            return (key,)
        if old.status.nominated_node_name != new.status.nominated_node_name:
            self._queue.nominate(entry, new.status.nominated_node_name)
        if old.spec == new.spec and old.metadata.labels == new.metadata.labels:
            return ()
        self._queue.wake(entry)
        return (key,)

    def _wake_pods(self, change: Change, state: State) -> list[Key]:
        """Take pods that this change may help out of the parked ones. Return their keys."""
        if not self._queue.parked or not matters(change):
            return []
        woken_keys = []
        for key, entry in list(self._queue.parked.items()):
            pod = state.get(Pod, key)
            if pod is not None and may_help(pod, entry.plugins, change, state, self._stock):
                self._queue.wake(entry)
                woken_keys.append(key)
        return woken_keys

    def _remove(self, key: Key) -> None:
        self._waits.pop(key, None)
        if (entry := self._queue.entries.get(key)) is not None:
            self._forget_decision(entry)
            self._queue.remove(key)

    def _forget_decision(self, entry: Entry) -> None:
        """Forget in which reconcile the entry was decided: its outcome no longer matters."""
        if entry.decided_on is not None and self._decided.get(entry.decided_on) is entry:
            del self._decided[entry.decided_on]

    def _wants_node(self, pod: Pod) -> bool:
        """Tell whether the pod waits for a node from this scheduler."""
        spec = pod.spec
        is_waiting = not spec.node_name and not spec.scheduling_gates and not pod.is_finished and not pod.is_terminating
        return is_waiting and _scheduler_name_of(pod) in self.names

    # ---- for metrics

    def count_pending(self) -> dict[str, int]:
        """Return how many pods wait, by where they do: active, backoff or unschedulable."""
        return self._queue.count_pending()

    def oldest_pending_since(self) -> float | None:
        """Return when the oldest of the pods that wait was created."""
        return min((entry.created_at for entry in self._queue if not entry.is_popped), default=None)


def _scheduler_name_of(pod: Pod) -> str:
    return pod.spec.scheduler_name or DEFAULT_NAME


def _parse_key(text: str) -> Key:
    namespace, _, name = text.rpartition("/")
    return Key(namespace, name)


def _with_some_node(pod: Pod) -> Pod:
    """Return the pod as it would be if its binding had succeeded."""
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name="somewhere"))
