"""The embedded cluster as a whole: server, clock, and the processes that run controllers one decision at a time.

    write ─► the server's history ─► mirrors ─► keys due ─► reconcile ─► actions ─► write …
                                                  └─ nothing due now: the clock jumps to the next moment

Built by app/embedded.py and by tests. Nothing sleeps and nothing is drawn from a global source: the same seed and the
same calls give the same trace, byte for byte. With `timing` a controller hears of a change some milliseconds later,
and takes as long for each write, so that which of two controllers is first is drawn, too. With one process its mirror
is current after every write, so no decision is taken on a stale one. With several processes, each has a mirror of its
own, fed by watches that faults may delay or break, and the world keeps one more that is always current: `state` is the
truth, for stories and checkers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Literal, NamedTuple, Protocol

from wukong.actions import Action
from wukong.api.meta import Object
from wukong.api.profile import SYSTEM_DEFAULT_CONSTRAINTS
from wukong.api.resources import Key
from wukong.api.unreadable import Unreadable
from wukong.embedded.store import Server
from wukong.embedded.world import objects
from wukong.embedded.world.clock import Chance, VirtualClock
from wukong.embedded.world.object_reader import ObjectReader
from wukong.embedded.world.process import (
    Crashed,
    DecisionListener,
    Process,
    Role,
    Step,
    Transport,
    WatchesByKind,
    by_kind,
)
from wukong.embedded.world.progress_guard import ProgressGuard
from wukong.embedded.world.rare_collection import collect_rarely
from wukong.embedded.world.timers import Timers
from wukong.embedded.world.timing import Timing
from wukong.embedded.world.trace import Trace
from wukong.embedded.world.transport import RetryingTransport, perform, write
from wukong.embedded.world.watch_selection import list_selected, selected_type
from wukong.embedded.world.watch_stream import StreamEvent, WatchStream
from wukong.embedded.world.workers import Workers
from wukong.ports import EVERYTHING
from wukong.runtime.dispatch import Dispatch, Item
from wukong.runtime.pending_writes import WrittenVersion
from wukong.runtime.watch_table import merge_watches
from wukong.state import Attempt, Change, State
from wukong.state.controller import Controller, Watch

__all__ = ["Ending", "Role", "Step", "World"]
Ending = Literal["held", "quiet", "deadline"]
MakeControllers = Callable[[Server, VirtualClock, State], Iterable[Controller]]


class QueuedItem(NamedTuple):
    """An item that a process will decide or go on with, and when; `is_retry`: again, because it failed."""

    item: Item
    at: float
    is_retry: bool


class FaultInjection(Protocol):
    """What the world needs of faults, where there are any (faults/)."""

    def join(self, world: World) -> None: ...

    def transport(self, process: Process) -> Transport:
        """How this process reaches the server."""
        ...

    def observe_start(self, process: Process, streams: list[WatchStream]) -> None: ...


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
        timing: Timing | None = None,
    ) -> None:
        """`controllers` run in one process that sees every change at once, in this `state` if one is given; those named
        `gated` ask the gate, and `also` are kinds that none of them watches. Of `roles` each runs in a process of its
        own, with watches, which may suffer from the `fault_injection`. All decide and write in no time, or as the
        `timing` draws it: for each process of several, and each that starts again, numbers of its own."""
        self.server, self.clock, self.trace = server, clock, Trace()
        self.timers = Timers()
        self._reader = ObjectReader()
        self._fault_injection = fault_injection
        self.takes_time = timing is not None  # controllers hear of changes later, and their writes take time
        self._timing = timing
        self._starts: dict[str, int] = {}  # role → how often it was started
        self._chance = Chance(seed, "backoff")
        self._listeners: list[Callable[[Change], None]] = []
        self._decision_listeners: list[DecisionListener] = []
        self._is_timer_turn = False  # timers and decisions of one moment take turns: neither kind comes wholly first
        self._seen_versions: dict[str, int] = {}  # kind → the version up to which the truth is current
        self._streams: dict[str, list[WatchStream]] = {}  # by kind
        self._only_process: Process | None = None
        self.processes: list[Process] = []
        self.acting: Process | None = None  # the process that is deciding
        self.latest: Item | None = None  # what the last step decided; None if that was no decision
        if fault_injection is not None:
            fault_injection.join(self)
        if roles:
            self.state = State()
            self.processes = [self._make_process(role, workers=self._derive_workers(role)) for role in roles]
        else:
            all_controllers = tuple(controllers)
            role = Role("all", lambda _: all_controllers, also=tuple(also), gated=frozenset(gated))
            self._only_process = self._make_process(role, state, Workers(timing) if timing is not None else None)
            self.state, self.processes = self._only_process.state, [self._only_process]
        self._watches = self._watches_of_truth()
        self._structs = _structs_of(self._watches)
        self._begin()

    def fork(self, make: MakeControllers, seed: int | None = None) -> World:
        """An independent copy of a world with one process: played on, it does what this one would.

        Costs what has to be copied of its indexes; objects are shared. `make` makes the controllers, which then
        remember what those of this world do. With a `seed` it draws other numbers from now on. Nobody listens to it
        yet.
        """
        assert self._only_process is not None, "a world of several processes does not fork"
        assert self.timers.next_due() is None, "what a timer would do cannot be copied"
        clock, role = VirtualClock(self.clock.now()), self._only_process.role
        copy = World.__new__(World)
        copy.server, copy.clock, copy.trace = self.server.fork(clock, seed), clock, self.trace.fork()
        copy.timers, copy._reader, copy._fault_injection = Timers(), ObjectReader(), None
        copy.takes_time, copy._timing, copy._starts = self.takes_time, None, {}
        copy._chance = self._chance if seed is None else Chance(seed, "backoff")
        copy._listeners, copy._decision_listeners, copy._streams = [], [], {}
        copy._is_timer_turn, copy._seen_versions = self._is_timer_turn, dict(self._seen_versions)
        copy.state, copy.acting, copy.latest = self.state.fork(), None, self.latest
        controllers = tuple(make(copy.server, clock, copy.state))
        process = self._only_process.fork(
            role._replace(make=lambda _: controllers),
            copy.state,
            clock=clock,
            trace=copy.trace,
            chance=copy._chance,
            seed=seed,
            decision_listeners=copy._decision_listeners,
        )
        process.transport = DirectTransport(copy.server)
        copy._only_process, copy.processes, copy._watches = process, [process], process.watches
        copy._structs = _structs_of(process.watches)
        copy.server.database.listen(copy._follow)
        return copy

    def close(self) -> None:
        """Let go of whoever listens and of the processes: a world whose story is told goes as soon as nobody holds it,
        and its memory serves the next. Else it would stay until the garbage collector comes by."""
        self.server.database.close()
        self._listeners.clear()
        self._decision_listeners.clear()
        for process in self.processes:
            process.close()

    def prepare_fork(self) -> None:
        """Work out now what every fork would have to work out for itself."""
        snapshot = self.state.snapshot
        snapshot.index_images()
        snapshot.column_of_rows()
        for constraint in SYSTEM_DEFAULT_CONSTRAINTS:
            snapshot.column(constraint.topology_key)

    @property
    def dispatch(self) -> Dispatch:
        """The dispatch of the only process."""
        assert self._only_process is not None, "each process has its own"
        return self._only_process.dispatch

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Let everybody decide and write in no time: for what is prepared before a story begins, in a world with one
        process."""
        process = self._only_process
        assert process is not None, "what faults strike takes time"
        if process.workers is None:
            yield
            return
        workers = process.workers
        assert workers.is_idle, "what is under way takes the time it takes"
        process.use_workers(None)
        try:
            yield
        finally:
            process.use_workers(workers)

    def listen_to_decisions(self, listener: DecisionListener) -> None:
        """Call `listener` with every decision of every process, before anything of it is carried out."""
        self._decision_listeners.append(listener)

    def listen(self, listener: Callable[[Change], None]) -> None:
        """Call `listener` with every change of the truth, in order: for stories and checkers."""
        self._listeners.append(listener)

    def queued_items(self) -> Iterator[QueuedItem]:
        """All that processes have in their queues, and what their workers are busy with."""
        for process in self.processes:
            attempts = process.state.attempts
            for item, at in process.list_due():
                yield QueuedItem(item, at, attempts.get(item.controller, item.key) is not None)

    def attempt(self, item: Item) -> Attempt | None:
        """The failures of an item since it last succeeded."""
        for process in self._processes_of(item.controller):
            attempt = process.state.attempts.get(item.controller, item.key)
            if attempt is not None:
                return attempt
        return None

    def failing_keys(self, controller: str) -> list[Key]:
        """The keys that this controller has failed at since it last succeeded. Sorted."""
        processes = self._processes_of(controller)
        return sorted({key for process in processes for key in process.state.attempts.list_failing(controller)})

    def enqueue(self, item: Item) -> None:
        """Have this item decided now."""
        for process in self._processes_of(item.controller):
            process.dispatch.queue.add(item, process.now)

    def _processes_of(self, controller: str) -> list[Process]:
        return [process for process in self.processes if controller in process.dispatch.controllers]

    # ---- running

    def run(
        self,
        until: Callable[[State], bool] | None = None,
        *,
        seconds: float | None = None,
        deadline: float | None = None,
    ) -> Ending:
        """Run until the predicate holds, nothing is due any more, or the time is up, whichever comes first."""
        with collect_rarely():
            return self._run(until, self.clock.now() + seconds if seconds is not None else deadline)

    def _run(self, until: Callable[[State], bool] | None, deadline: float | None) -> Ending:
        guard = ProgressGuard(self.clock.now(), has_deadline=deadline is not None)
        while True:
            if until is not None and until(self.state):
                return "held"
            if self.step():
                guard.observe(self.clock.now(), self.latest)
                continue
            due = self._next_due()
            if deadline is not None and (due is None or due > deadline):
                self.clock.move_to(deadline)
                return "quiet" if due is None else "deadline"
            if due is None:
                return "quiet"
            self.clock.move_to(due)

    def step(self) -> bool:
        """Take one decision that is due now, or fire one timer, by turns. Returns False if there is neither."""
        now = self.clock.now()
        self._is_timer_turn, self.latest = not self._is_timer_turn, None
        if self._is_timer_turn and self.timers.fire_next(now):
            return True
        return self._decide(now) or self.timers.fire_next(now)

    def _decide(self, now: float) -> bool:
        for process in self.processes:
            if not process.is_due(now):
                continue
            self.acting, turns = process, process.turns
            try:
                if process.step(now):
                    # A key that begins to wait for a worker, and a write of an earlier decision, are no decisions.
                    self.latest = process.latest if process.turns > turns else None
                    return True
            except Crashed as crash:
                self.stop(process)
                self.timers.add(self.clock.now() + crash.seconds, partial(self._restart, process.role))
                return True
            finally:
                self.acting = None
        return False

    def _next_due(self) -> float | None:
        earliest = self.timers.next_due()
        for process in self.processes:
            at = process.next_due()
            if at is not None and (earliest is None or at < earliest):
                earliest = at
        return earliest

    # ---- processes

    def start(self, role: Role) -> Process:
        """Start a process with an empty mirror, which lists everything."""
        process = self._make_process(role, workers=self._derive_workers(role))
        self.processes.append(process)
        self._connect(process)
        return process

    def _restart(self, role: Role) -> None:
        """Start a role again after a crash, unless a second instance has taken over."""
        if all(process.role is not role for process in self.processes):
            self.start(role)

    def stop(self, process: Process) -> None:
        """Remove a process, with all it knew."""
        self.processes.remove(process)
        for streams in self._streams.values():
            for stream in [stream for stream in streams if stream.process is process]:
                stream.disconnect()
                streams.remove(stream)

    def streams_of(self, process: Process) -> list[WatchStream]:
        return [
            stream for _, streams in sorted(self._streams.items()) for stream in streams if stream.process is process
        ]

    def _make_process(self, role: Role, state: State | None = None, workers: Workers | None = None) -> Process:
        process = Process(
            role,
            state,
            clock=self.clock,
            trace=self.trace,
            chance=self._chance,
            workers=workers,
            decision_listeners=self._decision_listeners,
        )
        process.transport = (
            self._fault_injection.transport(process)
            if self._fault_injection is not None
            else DirectTransport(self.server)
        )
        return process

    def _derive_workers(self, role: Role) -> Workers | None:
        """Workers of one of several processes, which draw other numbers than those of any process before it."""
        if self._timing is None:
            return None
        number = self._starts[role.name] = self._starts.get(role.name, 0) + 1
        return Workers(self._timing.derive(f"{role.name} {number}"))

    def _connect(self, process: Process) -> None:
        for name in sorted(process.watches):
            stream = WatchStream(
                process, name, truth=self.state, server=self.server, clock=self.clock, timers=self.timers
            )
            self._streams.setdefault(name, []).append(stream)
            stream.relist()
        if self._fault_injection is not None:
            self._fault_injection.observe_start(process, self.streams_of(process))

    # ---- the truth

    def _watches_of_truth(self) -> WatchesByKind:
        """How the truth is kept: as the one process watches, or whole where each process selects for itself.

        Objects are decoded once for all processes. Raises InputError where two of them read a kind differently.
        """
        if self._only_process is not None:
            return self._only_process.watches
        watchers = [_Watcher(process.name, _whole(process.watches.values())) for process in self.processes]
        return by_kind(merge_watches(watchers))

    def _begin(self) -> None:
        """Take in all objects, then follow every write."""
        for name, watch in sorted(self._watches.items()):
            documents = list_selected(self.server, watch)
            self._seen_versions[name] = self.server.database.version
            kind, struct = watch.resource.group_kind, watch.struct
            changes = self.state.replace(kind, objects.read_all(kind, documents, struct))
            if self._only_process is not None:
                self._only_process.dispatch.observe_first(changes, self.clock.now())
                self._only_process.observe_unreadable(kind, self.state.unreadable.get(kind, ()))
        if self._only_process is None:
            for process in self.processes:
                self._connect(process)
        self.server.database.listen(self._follow)

    def compact(self) -> None:
        """Have the server forget its history. The truth is current, so it loses nothing."""
        self.server.database.compact()
        self._seen_versions = dict.fromkeys(self._seen_versions, self.server.database.version)

    def _follow(self, name: str) -> None:
        """Take in what was written to a kind, and hand it to the watches."""
        if name not in self._watches:
            return
        watch = self._watches[name]
        kind, struct = watch.resource.group_kind, self._structs[name]
        for change in self.server.database.changes_since(name, self._seen_versions[name]):
            self._seen_versions[name] = change.version
            before = self.state.objects.get(kind, {}).get(change.key)
            subject = self._reader.read(kind, change.document, struct, before)
            if event_type := selected_type(self.server, watch, change):
                self._observe(self.state.apply(event_type, subject, kind))
                if self._only_process is not None and isinstance(subject, Unreadable):
                    self._only_process.observe_unreadable(kind, [change.key])
            for stream in self._streams.get(name, ()):
                if event_type := selected_type(self.server, stream.watch, change):
                    stream.receive(StreamEvent(change.version, event_type, change.key, subject))

    def _observe(self, changes: list[Change]) -> None:
        if self._only_process is not None:
            self._only_process.observe(changes)
        for change in changes:
            for listener in self._listeners:
                listener(change)


class _Watcher(NamedTuple):
    name: str
    watches: tuple[Watch, ...]


def _structs_of(watches: WatchesByKind) -> dict[str, type[Object]]:
    """The struct that the objects of each kind are read into."""
    return {name: watch.struct for name, watch in watches.items()}


def _whole(watches: Iterable[Watch]) -> tuple[Watch, ...]:
    return tuple(watch._replace(selection=EVERYTHING) for watch in watches)


class DirectTransport:
    """How the only process reaches the server: it sees every write at once and nothing is lost, so it never waits."""

    def __init__(self, server: Server) -> None:
        self.server = server

    def perform(self, action: Action) -> None:
        write(self.server, action)

    def look_again(self, action: Action) -> WrittenVersion | None:
        return RetryingTransport(lambda write: perform(self.server, write), self.server.get).look_again(action)
