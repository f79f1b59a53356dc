"""A process of the embedded cluster: some controllers, their own mirror, their own queue. Played by the world.

    world ─► step ─► key due ─► reconcile ─► actions ─► transport ─► server    (watch_stream.py shows the changes)

What it does with an outcome is what runtime.loop does, by the same code (runtime.work_cycle): a key rests until the
process has seen its own write; an action whose answer got lost is looked at before its key is decided again; what
failed comes back after a backoff. Without `workers` it decides and writes in no time; with them (workers.py) a decision
is carried out over some milliseconds, and others are made meanwhile. What lasts goes by the world's clock; when a key
is due goes by the clock of the process, which may be ahead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from wukong.actions import Action, Note
from wukong.api.resources import Key, Resource
from wukong.embedded.store.kinds import store_name
from wukong.embedded.world.clock import Chance, VirtualClock
from wukong.embedded.world.workers import Decision, Freed, Workers, count_together
from wukong.errors import ClusterError, GateRefusal
from wukong.runtime.delivery import describe_action
from wukong.runtime.dispatch import Dispatch, Item
from wukong.runtime.gate import Allow, Gate, note_of, refusal_of
from wukong.runtime.pending_writes import WrittenVersion
from wukong.runtime.watch_table import merge_watches
from wukong.runtime.work_cycle import Work, WorkCycle, is_dispensable
from wukong.state import Change, State
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

    def perform(self, action: Action) -> WrittenVersion | None: ...

    def look_again(self, action: Action) -> WrittenVersion | None: ...


DecisionListener = Callable[["Process", Item, Sequence[Action]], None]


def by_kind(table: Mapping[Resource, Watch]) -> WatchesByKind:
    return {store_name(resource): watch for resource, watch in table.items()}


class Process:
    def __init__(
        self,
        role: Role,
        state: State | None = None,
        *,
        clock: VirtualClock,
        trace: list[Step],
        chance: Chance,
        workers: Workers | None = None,
        decision_listeners: Sequence[DecisionListener] = (),
    ) -> None:
        """`decision_listeners` hear of every decision before anything of it is carried out."""
        self.role, self.name, self.state = role, role.name, state or State()
        self.dispatch = Dispatch(role.make(self.state), self.state)
        self.transport: Transport  # set by the world
        self.clock, self.trace, self.chance = clock, trace, chance
        self.skew = 0.0  # seconds by which its clock is ahead
        self.acting: Item | None = None  # what it is carrying out
        self.acting_work: Work | None = None  # the actions about that, and how many are performed
        self.acting_decision: Decision | None = None  # the decision about that, where it takes time
        self.latest: Item | None = None  # what it decided last
        self.turns = 0  # how often it has decided something
        self.was_due = 0.0  # when that was to be taken, by its own clock
        self.watches = by_kind(merge_watches(self.dispatch.controllers.values(), role.also))
        gated = self.dispatch.controllers if role.gated is None else role.gated
        self._cycle = WorkCycle(self.dispatch, dict.fromkeys(gated, Gate()))
        self._decision_listeners = decision_listeners
        self.use_workers(workers)

    def use_workers(self, workers: Workers | None) -> None:
        """Let these workers take their time from now on; None: everything is decided and written in no time."""
        self.workers = workers
        self.dispatch.hearing_time = None if workers is None else self._hearing_time

    def _hearing_time(self, controller: str, _: float) -> float:
        """When this controller takes up what changes now, by its own clock."""
        assert self.workers is not None
        return self.workers.timing.hearing_time(controller, self.clock.now()) + self.skew

    def fork(
        self,
        role: Role,
        state: State,
        *,
        clock: VirtualClock,
        trace: list[Step],
        chance: Chance,
        seed: int | None,
        decision_listeners: Sequence[DecisionListener],
    ) -> Process:
        """An independent copy for a copy of the state. `role` makes controllers, which then remember what ours do.

        With a `seed` its controllers take other times from now on.
        """
        copy = Process(role, state, clock=clock, trace=trace, chance=chance, decision_listeners=decision_listeners)
        controllers = copy.dispatch.controllers
        for name, controller in controllers.items():
            copy_memory(self.dispatch.controllers[name], controller, state)
        copy.dispatch = self.dispatch.fork(controllers.values(), state)
        copy._cycle = self._cycle.fork(copy.dispatch)
        copy.use_workers(None if self.workers is None else self.workers.fork(seed))
        copy.skew, copy.latest, copy.turns, copy.was_due = self.skew, self.latest, self.turns, self.was_due
        return copy

    def close(self) -> None:
        """Hear of nothing any more. A controller that watches by methods of its own refers to itself by them."""
        self.use_workers(None)
        for controller in self.dispatch.controllers.values():
            vars(controller).pop("watches", None)

    @property
    def now(self) -> float:
        return self.clock.now() + self.skew

    def next_due(self) -> float | None:
        """When it has something to do, by everybody's clock."""
        due = self.dispatch.next_due()
        next_decision = None if due is None else due - self.skew
        next_write = None if self.workers is None else self.workers.next_due()
        if next_decision is None or next_write is None:
            return next_write if next_decision is None else next_decision
        return min(next_decision, next_write)

    def is_due(self, now: float) -> bool:
        """Whether it may have something to do now, by everybody's clock. Asked of every process at every moment, so it
        does not look twice: what is due may turn out to have been taken back."""
        if self.workers is not None and self.workers.has_due(now):
            return True
        return self.dispatch.is_due(now + self.skew)

    def list_due(self) -> Iterator[tuple[Item, float]]:
        """What it will decide or go on with, and when, by everybody's clock."""
        yield from ((item, at - self.skew) for item, at in self.dispatch.queue.waiting.items())
        if self.workers is not None:
            yield from self.workers.list_due()

    def observe(self, changes: list[Change]) -> None:
        """Queue what these changes of its mirror concern."""
        self.dispatch.observe(changes, self.now)
        if self.workers is not None:
            self.workers.observe(changes)

    def observe_unreadable(self, group_kind: str, keys: Iterable[Key]) -> None:
        """Queue the objects that came by and cannot be read."""
        self.dispatch.observe_unreadable(group_kind, keys, self.now)

    def mirror_at_decision(self) -> State:
        """What the decision that it is carrying out was based on. May be a copy: only for those who look on."""
        if self.workers is None or self.acting_decision is None:
            return self.state
        return self.workers.recent_changes.restore(self.state, self.acting_decision.change_count)

    def step(self, now: float) -> bool:
        """Play one decision that is due now by everybody's clock, or the next writes of one; False if there is none."""
        own_time = now + self.skew
        self.dispatch.expire(own_time)
        return (self.workers is not None and self._continue_work(self.workers, now)) or self._take_item(own_time)

    def _take_item(self, now: float) -> bool:
        due = self.dispatch.queue.next_due()
        self.was_due = due or 0.0
        if due is None or due > now:
            return False
        item = self.dispatch.queue.take_first()
        if self.workers is None or self.workers.occupy(item):
            self._decide(item, now)
        return True

    def _continue_work(self, workers: Workers, now: float) -> bool:
        """Go on with what a worker has due."""
        match workers.pop_due(now):
            case None:
                return False
            case Decision() as decision:
                self._write(decision, workers)
            case Freed(controller):
                workers.release(controller, now)
            case Item() as item:  # it has waited for a worker
                self.dispatch.queue.restart(item, now + self.skew)
                self._decide(item, now + self.skew)
        workers.forget_changes()
        return True

    def _decide(self, item: Item, now: float) -> None:
        self.acting = self.latest = item
        self.turns += 1
        try:
            work = self._cycle.take(item, now)
            if not work.only_looks:
                for listener in self._decision_listeners:
                    listener(self, item, work.outcome.actions)
            if self.workers is None:
                self._work_on(work, len(work.outcome.actions))
            elif not work.outcome.actions or all(isinstance(action, Note) for action in work.outcome.actions):
                self._work_on(work, len(work.outcome.actions))
                self.workers.release(item.controller, self.clock.now())
            else:
                decision = Decision(work, now, self.turns, self.workers.recent_changes.count)
                self.workers.begin(decision, self.clock.now())
        finally:
            self.acting = None

    def _write(self, decision: Decision, workers: Workers) -> None:
        """Perform the actions of a decision that come next."""
        work, now = decision.work, self.clock.now()
        self.acting, self.acting_decision = work.item, decision
        try:
            is_over = self._work_on(work, count_together(work.outcome.actions, work.position), decision.at)
        finally:
            self.acting = self.acting_decision = None
        if is_over:
            workers.end(decision, now)
        else:
            workers.proceed(decision, now)

    def _work_on(self, work: Work, count: int, decided_at: float | None = None) -> bool:
        """Perform so many actions. Returns whether nothing is left to do: all is done, or something failed.

        When to look again counts from the decision; where its time is not given, from the end of its writes.
        """
        self.acting_work = work
        try:
            for action in work.outcome.actions[work.position : work.position + count]:
                work.advance(self.transport.look_again(action) if work.only_looks else self._perform(work.item, action))
        except (ClusterError, GateRefusal) as error:
            self._cycle.fail(work, error, self.now, self._jitter(work.item))
            return True
        finally:
            self.acting_work = None
        if work.next_action is not None:
            return False
        self._cycle.finish(work, self.now, decided_at)
        return True

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
        if item.controller not in self._cycle.gates:
            return
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
