"""The embedded cluster as a whole: server, clock, and the processes that play controllers one decision at a time.

    write ─► the server's history ─► mirrors ─► keys due ─► reconcile ─► actions ─► write …
                                                  └─ nothing due now: the clock jumps to the next moment

Built by app/embedded.py and by tests. Nothing sleeps and nothing is drawn from a global source: the same seed and the
same calls give the same trace, byte for byte. With one process its mirror is current after every write, so nobody
decides on old news. With several, each has a mirror of its own, fed by watches that faults may delay or break, and the
world keeps one more that is always current: `state` is the truth, for stories and checkers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Literal, NamedTuple, Protocol

from wukong.actions import Action
from wukong.embedded.store import Server
from wukong.embedded.world import objects
from wukong.embedded.world.clock import Chance, VirtualClock
from wukong.embedded.world.process import Crashed, Process, Role, Step, Transport, WatchesByKind, by_kind
from wukong.embedded.world.progress_guard import ProgressGuard
from wukong.embedded.world.trace import Trace
from wukong.embedded.world.transport import RetryingTransport, perform
from wukong.embedded.world.watch_selection import list_selected, selected_type
from wukong.embedded.world.watch_stream import Agenda, StreamEvent, WatchStream
from wukong.ports import EVERYTHING
from wukong.runtime.dispatch import Dispatch, Item
from wukong.runtime.pending_writes import WrittenVersion
from wukong.runtime.watch_table import merge_watches
from wukong.state import Attempt, Change, State
from wukong.state.controller import Controller, Watch

__all__ = ["Ending", "Role", "Step", "World"]
Ending = Literal["held", "quiet", "deadline"]


class Waiting(NamedTuple):
    """A key that a process will look at, and when; `is_retry`: because it failed."""

    item: Item
    at: float
    is_retry: bool


class FaultInjection(Protocol):
    """Faults, where there are any (faults/)."""

    def join(self, world: World) -> None: ...

    def transport(self, process: Process) -> Transport:
        """How this process reaches the server."""
        ...

    def started(self, process: Process, feeds: list[WatchStream]) -> None: ...


class World:
    def __init__(
        self,
        controllers: Iterable[Controller] = (),
        *,
        server: Server,
        clock: VirtualClock,
        seed: int = 0,
        roles: Sequence[Role] = (),
        fault_injection: FaultInjection | None = None,
        state: State | None = None,
        gated: Iterable[str] = (),
        also: Iterable[Watch] = (),
    ) -> None:
        """`controllers` make one process that knows everything at once, in this `state` if one is given; those named
        `gated` ask the gate, and `also` are kinds that none of them watches. `roles` make one each, with watches, which
        may suffer from the `fault_injection`."""
        self.server, self.clock, self.trace = server, clock, Trace()
        self.agenda = Agenda()
        self._fault_injection = fault_injection
        self._chance = Chance(seed, "backoff")
        self._listeners: list[Callable[[Change], None]] = []
        self._is_news_turn = False  # who decides has heard of some of what happens at the same moment, not of all
        self._seen: dict[str, int] = {}
        self._feeds: dict[str, list[WatchStream]] = {}
        self._direct: Process | None = None
        self.processes: list[Process] = []
        self.acting: Process | None = None  # who is carrying something out
        self.latest: Item | None = None  # what was decided last
        if fault_injection is not None:
            fault_injection.join(self)
        if roles:
            self.state = State()
            self.processes = [self._process(role) for role in roles]
        else:
            made = tuple(controllers)
            self._direct = self._process(Role("all", lambda _: made, also=tuple(also), gated=frozenset(gated)), state)
            self.state, self.processes = self._direct.state, [self._direct]
        self._watches = self._watches_of_truth()
        self._begin()

    @property
    def dispatch(self) -> Dispatch:
        """Of the one process."""
        assert self._direct is not None, "each process has its own"
        return self._direct.dispatch

    def listen(self, hear: Callable[[Change], None]) -> None:
        """`hear` is called with every change of the truth, in order: for stories and checkers."""
        self._listeners.append(hear)

    def waiting(self) -> Iterator[Waiting]:
        """All that processes have in their queues."""
        for process in self.processes:
            attempts = process.state.attempts
            for item, at in process.dispatch.queue.waiting.items():
                yield Waiting(item, at - process.skew, attempts.get(item.controller, item.key) is not None)

    def attempt(self, item: Item) -> Attempt | None:
        """The failures of an item since it last succeeded."""
        found = (it.state.attempts.get(item.controller, item.key) for it in self._playing(item.controller))
        return next((each for each in found if each is not None), None)

    def enqueue(self, item: Item) -> None:
        """Have this looked at now."""
        for process in self._playing(item.controller):
            process.dispatch.queue.add(item, process.now)

    def _playing(self, controller: str) -> list[Process]:
        return [process for process in self.processes if controller in process.dispatch.controllers]

    # ---- playing

    def run(
        self,
        until: Callable[[State], bool] | None = None,
        *,
        seconds: float | None = None,
        deadline: float | None = None,
    ) -> Ending:
        """Play until the predicate holds, nothing is due any more, or the time is up, whichever comes first."""
        if seconds is not None:
            deadline = self.clock.now() + seconds
        pace = ProgressGuard(self.clock.now(), has_end=deadline is not None)
        while True:
            if until is not None and until(self.state):
                return "held"
            if self.step():
                pace.watch(self.clock.now(), self.latest)
                continue
            due = self._next_due()
            if deadline is not None and (due is None or due > deadline):
                self.clock.move_to(deadline)
                return "quiet" if due is None else "deadline"
            if due is None:
                return "quiet"
            self.clock.move_to(due)

    def step(self) -> bool:
        """Play one decision that is due now, or let one thing happen, by turns; False if there is neither."""
        self._is_news_turn = not self._is_news_turn
        if self._is_news_turn and self.agenda.happen(self.clock.now()):
            return True
        return self._decide() or self.agenda.happen(self.clock.now())

    def _decide(self) -> bool:
        for process in self.processes:
            self.acting = process
            try:
                if process.step():
                    self.latest = process.latest
                    return True
            except Crashed as crash:
                self.stop(process)
                self.agenda.at(self.clock.now() + crash.seconds, partial(self._revive, process.role))
                return True
            finally:
                self.acting = None
        return False

    def _next_due(self) -> float | None:
        times = (self.agenda.next_due(), *(process.next_due() for process in self.processes))
        return min((at for at in times if at is not None), default=None)

    # ---- processes

    def start(self, role: Role) -> Process:
        """A new process, with an empty mirror that lists everything."""
        process = self._process(role)
        self.processes.append(process)
        self._connect(process)
        return process

    def _revive(self, role: Role) -> None:
        """After a crash, unless a second instance has taken over."""
        if all(process.role is not role for process in self.processes):
            self.start(role)

    def stop(self, process: Process) -> None:
        """It is gone, with all it knew."""
        self.processes.remove(process)
        for feeds in self._feeds.values():
            for feed in [each for each in feeds if each.process is process]:
                feed.disconnect()
                feeds.remove(feed)

    def streams_of(self, process: Process) -> list[WatchStream]:
        return [feed for _, feeds in sorted(self._feeds.items()) for feed in feeds if feed.process is process]

    def _process(self, role: Role, state: State | None = None) -> Process:
        process = Process(role, state, clock=self.clock, trace=self.trace, chance=self._chance)
        process.transport = (
            self._fault_injection.transport(process)
            if self._fault_injection is not None
            else DirectTransport(self.server)
        )
        return process

    def _connect(self, process: Process) -> None:
        for name in sorted(process.watches):
            feed = WatchStream(
                process, name, truth=self.state, server=self.server, clock=self.clock, agenda=self.agenda
            )
            self._feeds.setdefault(name, []).append(feed)
            feed.relist()
        if self._fault_injection is not None:
            self._fault_injection.started(process, self.streams_of(process))

    # ---- the truth

    def _watches_of_truth(self) -> WatchesByKind:
        """How the truth is kept: as the one process watches, or whole where each process selects for itself.

        Objects are decoded once for all processes. Raises InputError where two of them read a kind differently.
        """
        if self._direct is not None:
            return self._direct.watches
        watchers = [_Watcher(process.name, _whole(process.watches.values())) for process in self.processes]
        return by_kind(merge_watches(watchers))

    def _begin(self) -> None:
        """Take in what is there, then hear of every write."""
        for name, watch in sorted(self._watches.items()):
            documents = list_selected(self.server, watch)
            self._seen[name] = self.server.database.version
            kind = watch.resource.group_kind
            self._observe(self.state.replace(kind, [objects.read(kind, each, watch.struct) for each in documents]))
        if self._direct is None:
            for process in self.processes:
                self._connect(process)
        self.server.database.listen(self._heard)

    def compact(self) -> None:
        """The server forgets what happened so far. The truth has heard of it all."""
        self.server.database.compact()
        self._seen = dict.fromkeys(self._seen, self.server.database.version)

    def _heard(self, name: str) -> None:
        if name not in self._watches:
            return
        watch = self._watches[name]
        kind = watch.resource.group_kind
        for change in self.server.database.changes_since(name, self._seen[name]):
            self._seen[name] = change.version
            before = self.state.objects.get(kind, {}).get(change.key)
            found = objects.read(kind, change.document, watch.struct, before)
            if event_type := selected_type(self.server, watch, change):
                self._observe(self.state.apply(event_type, found, kind))
            for feed in self._feeds.get(name, ()):
                if event_type := selected_type(self.server, feed.watch, change):
                    feed.hear(StreamEvent(change.version, event_type, change.key, found))

    def _observe(self, changes: list[Change]) -> None:
        if self._direct is not None:
            self._direct.dispatch.observe(changes, self.clock.now())
        for change in changes:
            for hear in self._listeners:
                hear(change)


class _Watcher(NamedTuple):
    name: str
    watches: tuple[Watch, ...]


def _whole(watches: Iterable[Watch]) -> tuple[Watch, ...]:
    return tuple(watch._replace(selection=EVERYTHING) for watch in watches)


class DirectTransport:
    """The way to the server of who sees every write at once: nothing is lost, so nothing is waited for."""

    def __init__(self, server: Server) -> None:
        self.server = server

    def begin(self, item: Item, actions: Sequence[Action]) -> None:
        pass

    def perform(self, action: Action) -> None:
        perform(self.server, action)

    def look_again(self, action: Action) -> WrittenVersion | None:
        return RetryingTransport(lambda it: perform(self.server, it), self.server.get).look_again(action)
