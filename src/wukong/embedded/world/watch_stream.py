"""How a process learns of changes: one watch per kind, which may lag, break, and list again. Used by the world.

    change ─► route: when, how often, may others overtake it ─► in transit ─► mirror ─► keys
    broken ─► nothing arrives ─► list ─► mirror: what was missed shows as changes

Without a route every change arrives at once. Two versions of one object never overtake each other: no watch does that,
and a mirror could not tell, for versions are opaque.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from wukong.api.meta import Object
from wukong.api.resources import Key
from wukong.api.unreadable import Unreadable
from wukong.embedded.store import Server
from wukong.embedded.store.database import key_of
from wukong.embedded.world import objects
from wukong.embedded.world.clock import VirtualClock
from wukong.embedded.world.process import Process
from wukong.embedded.world.timers import Timers
from wukong.embedded.world.watch_selection import list_selected, selected_type
from wukong.ports import EVERYTHING, EventType
from wukong.state import Change, State


class StreamEvent(NamedTuple):
    """A change of one object, decoded once for all processes."""

    version: int
    type: EventType
    key: Key
    subject: Object


class Arrival(NamedTuple):
    """How an event arrives: after how long, how many times, and whether later events of other objects may overtake."""

    delay: float = 0.0
    copies: int = 1
    may_be_overtaken: bool = False


AT_ONCE = Arrival()
Route = Callable[["WatchStream", StreamEvent], Arrival | None]  # None: the watch broke, and the event is lost with it
OnArrival = Callable[["WatchStream", StreamEvent, list[Change], int], None]  # the last is the number of the copy


class WatchStream:
    """One process's watch of one kind."""

    def __init__(
        self, process: Process, name: str, *, truth: State, server: Server, clock: VirtualClock, timers: Timers
    ) -> None:
        self.process, self.name, self.watch = process, name, process.watches[name]
        self.kind = self.watch.resource.group_kind
        self.is_connected, self.seen_version = False, 0
        self.route: Route | None = None
        self.on_arrival: OnArrival | None = None  # called after each copy of each event has arrived
        self._truth, self._server, self._clock, self._timers = truth, server, clock, timers
        self._epoch = 0  # counts connections: what was in transit when one broke never arrives
        self._last_due, self._last_due_of = 0.0, dict[Key, float]()
        self._in_transit: dict[int, None] = {}  # versions that are still to arrive
        self._arrived: dict[Key, int] = {}  # object → the version of it that arrived last since the list

    @property
    def is_behind(self) -> bool:
        """Whether something happened that has not reached its process."""
        return bool(self._in_transit) or not self.is_connected

    def has_shown(self, key: Key, version: int) -> bool:
        """Whether this version of an object, or a later one of it, has reached the process."""
        if version <= self._arrived.get(key, 0):
            return True
        return version not in self._in_transit and (self.is_connected or version <= self.seen_version)

    def receive(self, event: StreamEvent) -> None:
        """Take an event from the server. It arrives at once, later or never, as the route says."""
        if not self.is_connected:
            return
        arrival, now = self.route(self, event) if self.route else AT_ONCE, self._clock.now()
        if arrival is None:
            return
        due = now + arrival.delay
        if not arrival.may_be_overtaken:
            due = self._last_due = max(due, self._last_due)
        due = max(due, self._last_due_of.get(event.key, 0.0))
        if due <= now and not self._in_transit:
            self._deliver(event, arrival.copies)
            return
        self._last_due_of[event.key] = due
        self._in_transit[event.version] = None
        self._timers.add(due, partial(self._deliver_late, self._epoch, event, arrival.copies))

    def _deliver_late(self, epoch: int, event: StreamEvent, copies: int) -> None:
        if epoch == self._epoch:
            del self._in_transit[event.version]
            self._deliver(event, copies)

    def _deliver(self, event: StreamEvent, copies: int = 1) -> list[Change]:
        all_changes: list[Change] = []
        for copy in range(copies):
            changes = self.process.state.apply(event.type, event.subject, self.kind)
            self.process.observe(changes)
            if isinstance(event.subject, Unreadable):
                self.process.observe_unreadable(self.kind, [event.key])
            if self.on_arrival is not None:
                self.on_arrival(self, event, changes, copy)
            all_changes += changes
        self.seen_version = max(self.seen_version, event.version)
        self._arrived[event.key] = event.version
        return all_changes

    # ---- connections

    def disconnect(self) -> None:
        """Break the watch; what was in transit is lost."""
        self.seen_version = min(self._in_transit, default=self.seen_version + 1) - 1
        self.is_connected, self._last_due = False, 0.0
        self._epoch += 1
        self._in_transit.clear()
        self._last_due_of.clear()

    def resume(self) -> list[Change]:
        """Watch on from the version seen last. Returns what was missed. Raises Gone if the server no longer knows."""
        missed = self._server.database.changes_since(self.name, self.seen_version)
        self.is_connected, changes = True, list[Change]()
        for change in missed:
            event_type = selected_type(self._server, self.watch, change)
            mirrored = self.process.state.objects.get(self.kind, {}).get(change.key)
            if event_type and (mirrored is None or int(mirrored.metadata.resource_version or 0) < change.version):
                subject = objects.read(self.kind, change.document, self.watch.struct)
                changes += self._deliver(StreamEvent(change.version, event_type, change.key, subject))
        return changes

    def relist(self) -> list[Change]:
        """Take in all objects, as a list gives them, and watch from there. Returns what that changed in the mirror."""
        held = {**self._truth.objects.get(self.kind, {}), **self._truth.unreadable.get(self.kind, {})}
        listed = sorted(held.items())
        if self.watch.selection != EVERYTHING:
            selected = {key_of(document) for document in list_selected(self._server, self.watch)}
            listed = [(key, subject) for key, subject in listed if key in selected]
        self.seen_version, self.is_connected = self._server.database.version, True
        self._arrived.clear()
        changes = self.process.state.replace(self.kind, [subject for _, subject in listed])
        self.process.observe(changes)
        self.process.observe_unreadable(self.kind, sorted(self.process.state.unreadable.get(self.kind, ())))
        self.process.dispatch.observe_list(self.kind, self.process.now)
        return changes
