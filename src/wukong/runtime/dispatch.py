"""From an event to the keys it concerns, from a key to its Outcome, and what a failed action means. Without I/O.

Called by `loop` (and by anything else that plays controllers, with a clock of its own). It never performs an action.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import inf
from typing import NamedTuple

from wukong.actions import Action, Bind, Outcome
from wukong.api.resources import Key
from wukong.errors import GateRefusal, TooManyRequests
from wukong.runtime.pending_writes import PendingWrites, WrittenVersion
from wukong.runtime.queue import Backoff, Queue
from wukong.runtime.watchers import Watchers
from wukong.state import Change, State
from wukong.state.controller import Controller, IsAlike, own_key

HearingTime = Callable[[str, float], float]  # a controller, and the moment of a change → when it takes the change up
WAITING_SECONDS = 660.0  # how long one counts there that waits for something else before it is bound
ASSUMED_SECONDS = 60.0  # how long a pod counts on its node if nobody knows whether we have bound it


class Item(NamedTuple):
    controller: str
    key: Key

    def __str__(self) -> str:
        return f"{self.controller} {self.key}"


class Dispatch:
    def __init__(self, controllers: Iterable[Controller], state: State, backoff: Backoff | None = None) -> None:
        self.controllers = {controller.name: controller for controller in controllers}
        self.state = state
        self.queue: Queue[Item] = Queue(backoff)
        self.hearing_time: HearingTime | None = None  # None: at once
        self._pending_writes: PendingWrites[Item] = PendingWrites()
        self._expired_at = -inf
        self._watchers: dict[str, Watchers] = {}  # group and kind → who watches it
        self._primary_watchers: dict[str, Watchers] = {}  # the same without secondary watches
        for controller in self.controllers.values():
            for watch in controller.watches:
                group_kind = watch.resource.group_kind
                self._watchers.setdefault(group_kind, Watchers()).add(controller.name, watch.keys)
                if not watch.is_secondary:
                    self._primary_watchers.setdefault(group_kind, Watchers()).add(controller.name, watch.keys)

    def fork(self, controllers: Iterable[Controller], state: State) -> Dispatch:
        """An independent copy, with `controllers` of the same names for a copy of the state."""
        copy = Dispatch(controllers, state)
        copy.queue, copy._pending_writes = self.queue.fork(), self._pending_writes.fork()
        copy._expired_at = self._expired_at
        return copy

    def observe_first(self, changes: Iterable[Change], now: float) -> None:
        """Queue every key that these changes concern, at the beginning, when every object of every kind is new."""
        for change in changes:
            self._queue_keys(change, self._primary_watchers.get(change.group_kind), now)

    def observe(self, changes: Iterable[Change], now: float) -> None:
        """Queue every key that these changes concern."""
        changes = changes if isinstance(changes, list) else list(changes)
        for change in changes:
            self._queue_keys(change, self._watchers.get(change.group_kind), now)
        for item in self._pending_writes.observe(changes):
            self.queue.finish(item)

    def observe_unreadable(self, group_kind: str, keys: Iterable[Key], now: float) -> None:
        """Queue the keys of objects that cannot be read for the controllers whose keys they are: one may report it."""
        watchers = self._watchers.get(group_kind)
        if watchers is None:
            return
        for key in keys:
            for name, by_change, _, _ in watchers.all:
                if by_change is own_key:
                    self.queue.add(Item(name, key), now if self.hearing_time is None else self.hearing_time(name, now))

    def _queue_keys(self, change: Change, watchers: Watchers | None, now: float) -> None:
        if watchers is None:
            return
        state, hearing_time, add = self.state, self.hearing_time, self.queue.add
        _, _, own, old, new = change
        alike: dict[IsAlike, bool] = {}
        for name, by_change, is_alike, by_object in watchers.list_concerned(old, new):
            if is_alike is None or by_object is None:
                concerned_keys: Iterable[Key] = (own,) if by_change is own_key else by_change(change, state)
            elif old is None or new is None:
                concerned_keys = by_object(new or old, state)  # type: ignore[arg-type]
            else:
                are_alike = alike.get(is_alike)
                if are_alike is None:
                    are_alike = alike[is_alike] = is_alike(old, new)
                concerned_keys = by_object(new, state) if are_alike else by_change(change, state)
            for key in concerned_keys:
                add(Item(name, key), now if hearing_time is None else hearing_time(name, now))

    def observe_list(self, group_kind: str, now: float) -> None:
        """Queue every key whose own write to this kind may have been undone unseen. Called after a list's changes.

        What was created and gone again before the list shows in no change. Keys at work or at rest are decided again
        when that ends, for the list may be older than what they wrote.
        """
        self.queue.add_in_flight(now)
        for item in self._pending_writes.take_overdue(group_kind):
            self.queue.add(item, now)

    def expire(self, now: float) -> None:
        """Take back placements nobody confirmed, and have their pods looked at again. Wait no longer for old echoes."""
        if now == self._expired_at:  # nothing that came since can be over yet
            return
        self._expired_at = now
        self.observe(self.state.expire(now), now)
        for item in self._pending_writes.expire(now):
            self.queue.finish(item)

    def is_due(self, now: float) -> bool:
        """Whether there may be something to do: never False where there is."""
        return self.queue.may_have_due(now) or self._pending_writes.has_expired(now) or self.state.has_expired(now)

    def next_due(self) -> float | None:
        """When there is something to do next; None: only when something changes."""
        earliest = self.queue.next_due()
        for at in (self.state.placements.next_expiry(), self._pending_writes.next_expiry()):
            if at is not None and (earliest is None or at < earliest):
                earliest = at
        return earliest

    def reconcile(self, item: Item, now: float) -> Outcome:
        """Ask the controller. What it binds counts at once, so that the next decision knows."""
        outcome = self.controllers[item.controller].reconcile(item.key, self.state, now)
        for action in outcome.actions:
            if isinstance(action, Bind):
                self._assume(action, now)
        for placement in outcome.assumed:
            self._assume(placement, now, WAITING_SECONDS)
        return outcome

    def confirm(self, performed: Iterable[Action]) -> None:
        """These actions have happened. What they bound counts until the watch says otherwise, as in kube-scheduler."""
        for action in performed:
            if isinstance(action, Bind):
                self.state.keep_assumed(action.key, action.node)

    def finish(
        self,
        item: Item,
        outcome: Outcome,
        now: float,
        written: Iterable[WrittenVersion] = (),
        decided_at: float | None = None,
    ) -> None:
        """All of it is done. The item rests until what we have `written` shows in the state.

        When to look again counts from `decided_at`, or from now; how long it rests always from now.
        """
        self.queue.forget(item)
        self.state.attempts.record_success(item.controller, item.key)
        if outcome.requeue_after is not None:
            self.queue.add_after(item, outcome.requeue_after, now if decided_at is None else decided_at)
        self._rest(item, written, now)

    def finish_look(self, item: Item, now: float, written: Iterable[WrittenVersion] = ()) -> None:
        """We know again what became of its action: it is decided anew, at once or when what was found shows.

        That is no success yet: if what is decided then fails, or gets lost again, its backoff goes on growing.
        """
        self.queue.add(item, now)
        self._rest(item, written, now)

    def fail(
        self,
        item: Item,
        error: Exception,
        now: float,
        jitter: float,
        undone: Sequence[Action] = (),
        written: Iterable[WrittenVersion] = (),
    ) -> float:
        """An action failed, or the controller itself: remember it and come back later; gives the seconds.

        `undone` are the actions known not to have happened. One whose outcome is unknown is not among them. `written`
        is what others before it wrote: that must show, too, before the item is decided again.
        """
        self._take_back(undone)
        self.state.attempts.record_failure(item.controller, item.key, f"{type(error).__name__}: {error}", now)
        delay = self._come_back(item, error, now, jitter)
        self._rest(item, written, now)
        return delay

    def _come_back(self, item: Item, error: Exception, now: float, jitter: float) -> float:
        """A held item comes back when the gate said; any other after a backoff, or when the server said."""
        if isinstance(error, GateRefusal) and error.again_seconds is not None:
            self.queue.add_after(item, error.again_seconds, now)
            return error.again_seconds
        retry_after = error.retry_after or 0.0 if isinstance(error, TooManyRequests) else 0.0
        backoff: Backoff | None = getattr(self.controllers[item.controller], "backoff", None)
        return self.queue.retry(item, now, jitter, at_least=retry_after, backoff=backoff)

    def abandon(self, item: Item, now: float, undone: Sequence[Action] = ()) -> None:
        """We stopped in the middle, for reasons of our own: whoever leads next looks again. Nobody failed."""
        self._take_back(undone)
        self.queue.add(item, now)
        self.queue.finish(item)

    def _rest(self, item: Item, written: Iterable[WrittenVersion], now: float) -> None:
        """Work on it has ended, once the state shows what it wrote. What the state shows already is not waited for."""
        missing = [write for write in written if write.group_kind in self._watchers and not self._shows(write)]
        if not missing or not self._pending_writes.hold(item, missing, now):
            self.queue.finish(item)

    def _shows(self, write: WrittenVersion) -> bool:
        mirrored = self.state.objects.get(write.group_kind, {}).get(write.key)
        return mirrored is not None and mirrored.metadata.resource_version == write.version

    def _assume(self, action: Bind, now: float, seconds: float = ASSUMED_SECONDS) -> None:
        try:
            self.state.assume(action.key, action.node, now, seconds)
        except KeyError:
            return  # it went while the controller thought about it: the API server will say so, too

    def _take_back(self, undone: Sequence[Action]) -> None:
        for action in undone:
            if isinstance(action, Bind):
                self.state.forget(action.key)
