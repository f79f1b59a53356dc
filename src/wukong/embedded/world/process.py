"""A process of the embedded cluster: some controllers, their own mirror, their own queue. Played by the world.

    world ─► step ─► key due ─► reconcile ─► actions ─► port ─► server        (feeding.py brings the news back)

What it does with an outcome is what runtime.loop does: a key rests until the process has seen its own write; an action
whose answer got lost is looked at before its key is decided again; what failed comes back after a backoff.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol

from wukong.actions import Action, Note, Outcome
from wukong.api.meta import Object
from wukong.api.resources import Resource
from wukong.embedded.store.kinds import store_name
from wukong.embedded.world.clock import Chance, VirtualClock
from wukong.errors import ClusterError, GateRefusal, OutcomeUnknown
from wukong.runtime.delivery import described, subject
from wukong.runtime.dispatch import Dispatch, Item
from wukong.runtime.gate import Allow, Gate, Hold, note_of
from wukong.runtime.pending_writes import WrittenVersion
from wukong.state import State
from wukong.state.controller import Controller, Watch

Structs = dict[str, tuple[Resource, type[Object]]]  # name of a kind → how it is mirrored


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
        return f"{self.at:.3f} {self.item}: {described(self.action)}" + (f": {self.error}" if self.error else "")


class Crashed(Exception):  # noqa: N818
    """The process is gone, with all it knew. It starts again after `seconds`."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.seconds = seconds


class Transport(Protocol):
    """How a process reaches the server: performing.Port, or one with faults in it."""

    def begin(self, item: Item, actions: Sequence[Action]) -> None:
        """A decision of this item is about to be carried out."""
        ...

    def perform(self, action: Action) -> WrittenVersion | None: ...

    def look_again(self, action: Action) -> WrittenVersion | None: ...


class Process:
    def __init__(
        self, role: Role, state: State | None = None, *, clock: VirtualClock, trace: list[Step], chance: Chance
    ) -> None:
        self.role, self.name, self.state = role, role.name, state or State()
        controllers = tuple(role.make(self.state))
        names = [controller.name for controller in controllers] if role.gated is None else role.gated
        self.dispatch = Dispatch(controllers, self.state, gates=dict.fromkeys(names, Gate()))
        self.transport: Transport  # set by the world
        self.clock, self.trace, self.chance = clock, trace, chance
        self.skew = 0.0  # seconds by which its clock is ahead
        self.acting: Item | None = None  # what it is carrying out
        self.latest: Item | None = None  # what it decided last
        self.turns = 0  # how often it has decided something
        self.was_due = 0.0  # when that was to be taken, by its own clock
        self.structs: Structs = {}
        watches = [watch for controller in self.dispatch.controllers.values() for watch in controller.watches]
        for watch in (*watches, *role.also):
            self.structs.setdefault(store_name(watch.resource), (watch.resource, watch.struct))
        # What nobody knows the outcome of. Before its key is decided again we look, for the watch may not show it yet.
        self._doubts: dict[Item, Action] = {}

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
        for item in self.dispatch.queue.due(now, limit=1):
            self.acting = self.latest = item
            self.turns += 1
            try:
                self._settle(item, now) if item in self._doubts else self._play(item, now)
            finally:
                self.acting = None
            return True
        return False

    def _play(self, item: Item, now: float) -> None:
        outcome = self.dispatch.reconcile(item, now)
        written: list[WrittenVersion] = []
        self.transport.begin(item, outcome.actions)
        for index, action in enumerate(outcome.actions):
            try:
                self._ask_gate(item, action)
                wrote = self.transport.perform(action)
            except (ClusterError, GateRefusal) as error:
                self._tell(item, action, error)
                if isinstance(action, Note):  # losing an Event stops nothing
                    continue
                self._failed(item, outcome, index, error, written)
                return
            self._tell(item, action)
            if wrote is not None:
                written.append(wrote)
        self.dispatch.succeeded(item, outcome, self.now, written)  # writes may have taken a while

    def _ask_gate(self, item: Item, action: Action) -> None:
        """Raises GateRefusal if this may not be done now."""
        verdict = self.dispatch.ask_gate(item, action, self.now)
        if isinstance(verdict, Allow):
            return
        if verdict.is_news:
            self._tell(item, note_of(action, verdict))
        again = verdict.again_seconds if isinstance(verdict, Hold) else None
        raise GateRefusal(verdict.reason, again_seconds=again)

    def _failed(
        self,
        item: Item,
        outcome: Outcome,
        index: int,
        error: ClusterError | GateRefusal,
        written: list[WrittenVersion],
    ) -> None:
        is_unknown = isinstance(error, OutcomeUnknown)
        undone = outcome.actions[index + is_unknown :]
        self.dispatch.failed(item, error, self.now, self._jitter(item), undone, written)
        if is_unknown and subject(outcome.actions[index])[1].name:
            self._doubts[item] = outcome.actions[index]

    def _settle(self, item: Item, now: float) -> None:
        """Only look whether it has happened; the item is decided afterwards, or once that shows."""
        try:
            written = self.transport.look_again(self._doubts[item])
        except ClusterError as error:
            self.dispatch.failed(item, error, now, self._jitter(item))
            return
        del self._doubts[item]
        self.dispatch.succeeded(item, Outcome(requeue_after=0.0), now, [written] if written is not None else [])

    def _jitter(self, item: Item) -> float:
        before = self.state.attempts.get(item.controller, item.key)
        return self.chance.share(item, before.count if before else 0)

    def _tell(self, item: Item, action: Action, error: ClusterError | GateRefusal | None = None) -> None:
        self.trace.append(Step(self.clock.now(), item, action, f"{type(error).__name__}: {error}" if error else ""))
