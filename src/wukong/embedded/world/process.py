"""A process of the embedded cluster: some controllers, their own mirror, their own queue. Played by the world.

    world ─► step ─► key due ─► reconcile ─► actions ─► transport ─► server    (watch_stream.py shows the changes)

What it does with an outcome is what runtime.loop does, by the same code (runtime.work_cycle): a key rests until the
process has seen its own write; an action whose answer got lost is looked at before its key is decided again; what
failed comes back after a backoff.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from wukong.actions import Action
from wukong.api.resources import Resource
from wukong.embedded.store.kinds import store_name
from wukong.embedded.world.clock import Chance, VirtualClock
from wukong.errors import ClusterError, GateRefusal
from wukong.runtime.delivery import describe_action
from wukong.runtime.dispatch import Dispatch, Item
from wukong.runtime.gate import Allow, Gate, note_of, refusal_of
from wukong.runtime.pending_writes import WrittenVersion
from wukong.runtime.watch_table import merge_watches
from wukong.runtime.work_cycle import Work, WorkCycle, is_dispensable
from wukong.state import State
from wukong.state.controller import Controller, Watch, copy_memory

WatchesByKind = dict[str, Watch]  # name of a kind → how it is mirrored


class Role(NamedTuple):
    """What a process is started from, and started again after a crash: its controllers, made for a new mirror."""

    name: str
    make: Callable[[State], Iterable[Controller]]
    is_elected: bool = True  # a second instance waits for its lease; of a node's kubelet there is no second
    also: tuple[Watch, ...] = ()  # kinds that no controller watches, but decisions read
    gated: frozenset[str] | None = frozenset()  # the controllers that ask the gate: ours, not Kubernetes'. None: all


class Step(NamedTuple):
    """One action of one controller, and what became of it."""

    at: float
    item: Item
    action: Action
    error: str = ""

    def __str__(self) -> str:
        return f"{self.at:.3f} {self.item}: {describe_action(self.action)}" + (f": {self.error}" if self.error else "")


class Crashed(Exception):  # noqa: N818
    """The process is gone, with all it knew. It starts again after `seconds`."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.seconds = seconds


class Transport(Protocol):
    """How a process reaches the server: transport.RetryingTransport, or one with faults in it."""

    def begin(self, item: Item, actions: Sequence[Action]) -> None:
        """A decision of this item is about to be carried out."""
        ...

    def perform(self, action: Action) -> WrittenVersion | None: ...

    def look_again(self, action: Action) -> WrittenVersion | None: ...


def by_kind(table: Mapping[Resource, Watch]) -> WatchesByKind:
    return {store_name(resource): watch for resource, watch in table.items()}


class Process:
    def __init__(
        self, role: Role, state: State | None = None, *, clock: VirtualClock, trace: list[Step], chance: Chance
    ) -> None:
        self.role, self.name, self.state = role, role.name, state or State()
        self.dispatch = Dispatch(role.make(self.state), self.state)
        self.transport: Transport  # set by the world
        self.clock, self.trace, self.chance = clock, trace, chance
        self.skew = 0.0  # seconds by which its clock is ahead
        self.acting: Item | None = None  # what it is carrying out
        self.latest: Item | None = None  # what it decided last
        self.turns = 0  # how often it has decided something
        self.was_due = 0.0  # when that was to be taken, by its own clock
        self.watches = by_kind(merge_watches(self.dispatch.controllers.values(), role.also))
        gated = self.dispatch.controllers if role.gated is None else role.gated
        self._cycle = WorkCycle(self.dispatch, dict.fromkeys(gated, Gate()))

    def fork(self, role: Role, state: State, *, clock: VirtualClock, trace: list[Step], chance: Chance) -> Process:
        """An independent copy for a copy of the state. `role` makes controllers, which then remember what ours do."""
        copy = Process(role, state, clock=clock, trace=trace, chance=chance)
        controllers = copy.dispatch.controllers
        for name, controller in controllers.items():
            copy_memory(self.dispatch.controllers[name], controller, state)
        copy.dispatch = self.dispatch.fork(controllers.values(), state)
        copy._cycle = self._cycle.fork(copy.dispatch)
        copy.skew, copy.latest, copy.turns, copy.was_due = self.skew, self.latest, self.turns, self.was_due
        return copy

    @property
    def now(self) -> float:
        return self.clock.now() + self.skew

    def next_due(self) -> float | None:
        """When it has something to do, by everybody's clock."""
        due = self.dispatch.next_due()
        return None if due is None else due - self.skew

    def step(self) -> bool:
        """Play one decision that is due now; False if there is none."""
        now = self.now
        self.dispatch.expire(now)
        self.was_due = self.dispatch.queue.next_due() or 0.0
        for item in self.dispatch.queue.take_due(now, limit=1):
            self.acting = self.latest = item
            self.turns += 1
            try:
                self._work_on(self._cycle.take(item, now))
            finally:
                self.acting = None
            return True
        return False

    def _work_on(self, work: Work) -> None:
        if not work.only_looks:
            self.transport.begin(work.item, work.outcome.actions)
        try:
            while (action := work.next_action) is not None:
                work.advance(self.transport.look_again(action) if work.only_looks else self._perform(work.item, action))
        except (ClusterError, GateRefusal) as error:
            self._cycle.fail(work, error, self.now, self._jitter(work.item))
        else:
            self._cycle.finish(work, self.now)  # writes may have taken a while

    def _perform(self, item: Item, action: Action) -> WrittenVersion | None:
        try:
            self._pass_gate(item, action)
            written = self.transport.perform(action)
        except (ClusterError, GateRefusal) as error:
            self._record_step(item, action, error)
            if not is_dispensable(action):
                raise
            return None
        self._record_step(item, action)
        return written

    def _pass_gate(self, item: Item, action: Action) -> None:
        """Raises GateRefusal if this may not be done now."""
        verdict = self._cycle.ask_gate(item, action, self.now)
        if isinstance(verdict, Allow):
            return
        if verdict.is_news:
            self._record_step(item, note_of(action, verdict))
        raise refusal_of(verdict)

    def _jitter(self, item: Item) -> float:
        before = self.state.attempts.get(item.controller, item.key)
        return self.chance.share(item, before.count if before else 0)

    def _record_step(self, item: Item, action: Action, error: ClusterError | GateRefusal | None = None) -> None:
        self.trace.append(Step(self.clock.now(), item, action, f"{type(error).__name__}: {error}" if error else ""))
