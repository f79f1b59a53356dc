"""How a process hears of changes: one watch per kind, which may lag, break, and list again. Used by the world.

    change ─► route: when, how often, may others overtake it ─► on its way ─► mirror ─► keys
    broken ─► nothing comes ─► list ─► mirror: what was missed shows as changes

Without a route every change arrives at once. Two versions of one object never overtake each other: no watch does that,
and a mirror could not tell, for versions are opaque.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from heapq import heappop, heappush
from typing import NamedTuple

from wukong.api.meta import Object
from wukong.api.resources import Key
from wukong.embedded.store import Server
from wukong.embedded.store.database import key_of
from wukong.embedded.world import objects
from wukong.embedded.world.clock import VirtualClock
from wukong.embedded.world.process import Process
from wukong.embedded.world.watch_selection import list_selected, selected_type
from wukong.ports import EVERYTHING, EventType
from wukong.state import Change, State


class Agenda:
    """What will happen at which moment, besides what processes have due themselves."""

    def __init__(self) -> None:
        self._entries: list[tuple[float, int, Callable[[], object]]] = []
        self._sequence = 0  # of two at the same moment, the one noted first

    def at(self, moment: float, happen: Callable[[], object]) -> None:
        self._sequence += 1
        heappush(self._entries, (moment, self._sequence, happen))

    def next_due(self) -> float | None:
        return self._entries[0][0] if self._entries else None

    def happen(self, now: float) -> bool:
        """The first entry whose moment has come; False if there is none."""
        if not self._entries or self._entries[0][0] > now:
            return False
        heappop(self._entries)[2]()
        return True


class StreamEvent(NamedTuple):
    """A change of one object, decoded once for all processes."""

    version: int
    type: EventType
    key: Key
    found: Object


class Arrival(NamedTuple):
    """How news comes: after how long, how many times, and whether later news of other objects may come before."""

    delay: float = 0.0
    copies: int = 1
    may_be_overtaken: bool = False


AT_ONCE = Arrival()
Route = Callable[["WatchStream", StreamEvent], Arrival | None]  # None: the watch broke, and the news is lost with it


class WatchStream:
    """One process's watch of one kind."""

    def __init__(
        self, process: Process, name: str, *, truth: State, server: Server, clock: VirtualClock, agenda: Agenda
    ) -> None:
        self.process, self.name, self.watch = process, name, process.watches[name]
        self.kind = self.watch.resource.group_kind
        self.is_connected, self.seen = False, 0
        self.route: Route | None = None
        self.told: Callable[[WatchStream, StreamEvent, list[Change], int], None] | None = (
            None  # hears of each arrival, of each copy
        )
        self._truth, self._server, self._clock, self._agenda = truth, server, clock, agenda
        self._epoch = 0  # counts connections: what was on its way when one broke never comes
        self._last, self._last_of = 0.0, dict[Key, float]()
        self._under_way: dict[int, None] = {}  # versions that are still to arrive

    @property
    def is_behind(self) -> bool:
        """Whether something happened that its process has not heard of."""
        return bool(self._under_way) or not self.is_connected

    def has_shown(self, version: int) -> bool:
        """Whether the process has heard of this version of its kind."""
        return version not in self._under_way and (self.is_connected or version <= self.seen)

    def hear(self, news: StreamEvent) -> None:
        if not self.is_connected:
            return
        arrival, now = self.route(self, news) if self.route else AT_ONCE, self._clock.now()
        if arrival is None:
            return
        due = now + arrival.delay
        if not arrival.may_be_overtaken:
            due = self._last = max(due, self._last)
        due = max(due, self._last_of.get(news.key, 0.0))
        if due <= now and not self._under_way:
            self._arrive(news, arrival.copies)
            return
        self._last_of[news.key] = due
        self._under_way[news.version] = None
        self._agenda.at(due, partial(self._late, self._epoch, news, arrival.copies))

    def _late(self, epoch: int, news: StreamEvent, copies: int) -> None:
        if epoch == self._epoch:
            del self._under_way[news.version]
            self._arrive(news, copies)

    def _arrive(self, news: StreamEvent, copies: int = 1) -> list[Change]:
        made: list[Change] = []
        for copy in range(copies):
            changes = self.process.state.apply(news.type, news.found, self.kind)
            self.process.dispatch.observe(changes, self.process.now)
            if self.told is not None:
                self.told(self, news, changes, copy)
            made += changes
        self.seen = max(self.seen, news.version)
        return made

    # ---- connections

    def disconnect(self) -> None:
        """The watch breaks; what was on its way is lost."""
        self.seen = min(self._under_way, default=self.seen + 1) - 1
        self.is_connected, self._last = False, 0.0
        self._epoch += 1
        self._under_way.clear()
        self._last_of.clear()

    def resume(self) -> list[Change]:
        """Watch on from what was seen last; gives what was missed. Raises Gone if the server no longer knows."""
        missed = self._server.database.changes_since(self.name, self.seen)
        self.is_connected, changes = True, list[Change]()
        for change in missed:
            event_type = selected_type(self._server, self.watch, change)
            held = self.process.state.objects.get(self.kind, {}).get(change.key)
            if event_type and (held is None or int(held.metadata.resource_version or 0) < change.version):
                found = objects.read(self.kind, change.document, self.watch.struct)
                changes += self._arrive(StreamEvent(change.version, event_type, change.key, found))
        return changes

    def relist(self) -> list[Change]:
        """Take in all there is, as a list gives it, and watch from there."""
        listed = sorted(self._truth.objects.get(self.kind, {}).items())
        if self.watch.selection != EVERYTHING:
            selected = {key_of(document) for document in list_selected(self._server, self.watch)}
            listed = [(key, found) for key, found in listed if key in selected]
        self.seen, self.is_connected = self._server.database.version, True
        changes = self.process.state.replace(self.kind, [found for _, found in listed])
        self.process.dispatch.observe(changes, self.process.now)
        return changes
