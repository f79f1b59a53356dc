"""The asyncio shell: followers feed the state, a pump hands due keys to their controllers, workers perform what comes.

Built by app.live. Deciding happens between awaits, in one thread; only actions are concurrent, at most `workers` keys
at a time. Acts only while every kind has been listed and, with a Leader, only while it leads; it follows all the time,
so that an instance that takes over knows the cluster already.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from wukong.actions import Action, Note
from wukong.api.meta import Object
from wukong.api.resources import Resource, key_of
from wukong.errors import ClusterError, GateRefusal, WukongError
from wukong.ports import Clock, Cluster, KindMissing, Listing
from wukong.runtime.dispatch import Dispatch, Item
from wukong.runtime.event_queue import EventQueue
from wukong.runtime.gate import Allow, Gate, Hold, note_of, refusal_of
from wukong.runtime.leader import Leader
from wukong.runtime.ledger_source import WatchedLedger
from wukong.runtime.metrics import Metrics
from wukong.runtime.mirror_age import LIMIT_SECONDS, OldWatch
from wukong.runtime.mirror_feed import MirrorFeed, list_unreadable
from wukong.runtime.pending_writes import WrittenVersion
from wukong.runtime.performer import Performer, describe_action
from wukong.runtime.source import is_from_outside
from wukong.runtime.watch_source import WatchSource
from wukong.runtime.watch_table import merge_watches
from wukong.runtime.work_cycle import Work, WorkCycle
from wukong.state import Change, State
from wukong.state.controller import Controller, Watch

log = logging.getLogger(__name__)
_TURN_SECONDS = 0.01  # so long decisions are made before others have a turn
_LONGEST_WAIT = 30.0  # after a jump of the clock, keys are late by no more than this


class LoopSettings(msgspec.Struct, frozen=True):
    workers: int = 8
    grace_seconds: float = 20.0  # how long a shutdown waits for what is in flight
    mirror_age_limit_seconds: float = LIMIT_SECONDS  # an older mirror is not ready


class Loop:
    def __init__(
        self,
        cluster: Cluster,
        controllers: Iterable[Controller],
        follow: WatchSource,
        *,
        clock: Clock,
        random: Callable[[], float],
        leader: Leader | None = None,
        also: Iterable[Watch] = (),
        identity: str = "wukong",
        settings: LoopSettings | None = None,
        state: State | None = None,
        metrics: Metrics | None = None,
        gate: Gate | None = None,
        ledger: WatchedLedger | None = None,
    ) -> None:
        """`random` gives numbers in [0, 1). `also` are kinds no controller watches but decisions need.

        Without a `gate`, one with the usual settings is asked. The `ledger` is for controllers that record.
        """
        self.cluster, self.follow, self.clock, self.random = cluster, follow, clock, random
        self.settings, self.metrics = settings or LoopSettings(), metrics or Metrics()
        self.state = state or State()
        self.dispatch = Dispatch(controllers, self.state)
        self.ledger = ledger
        self.performer = Performer(cluster, identity, ledger)
        self.leader = leader
        if leader is not None:
            leader.on_change = self._follow_leadership
        watches = merge_watches(self.dispatch.controllers.values(), also)
        self._watches = {resource: watch for resource, watch in watches.items() if not is_from_outside(resource)}
        limit = self.settings.mirror_age_limit_seconds
        self.mirror = MirrorFeed(self._watches, self.state, clock, self.metrics, limit)
        self._listeners: list[Callable[[Change], None]] = []
        gate = gate or Gate(count=self.metrics.count_gate)
        self._cycle = WorkCycle(self.dispatch, dict.fromkeys(self.dispatch.controllers, gate))
        self._events = EventQueue(self._write_event, lambda note: self._count(note, "dropped"))
        self._running: dict[asyncio.Task[None], Work] = {}
        self._wake = asyncio.Event()

    @property
    def is_synced(self) -> bool:
        """Every kind has been listed at least once, or is optional and not installed."""
        return self.mirror.is_synced

    def old_watches(self) -> list[OldWatch]:
        """The kinds of which nothing was heard for longer than the limit, the oldest first."""
        return self.mirror.ages.old_watches(self.clock.now())

    def list_troubles(self) -> list[str]:
        """Why this process is not ready though every kind was listed: old watches, and a ledger that fails."""
        troubles = [str(watch) for watch in self.old_watches()]
        if self.ledger is not None and self.ledger.trouble:
            troubles.append(f"the ledger fails: {self.ledger.trouble}")
        return troubles

    @property
    def is_leading(self) -> bool:
        return self.leader is None or self.leader.is_leading

    def listen(self, listener: Callable[[Change], None]) -> None:
        """`listener` is called with every change of the mirror, in order."""
        self._listeners.append(listener)

    def take_in(self, resource: Resource, objects: Sequence[Object]) -> None:
        """What a source hands over: all objects of its kind. Their changes are watched like any other."""
        changes = self.state.replace(resource.group_kind, objects)
        self.metrics.mirror_objects.labels(resource.kind).set(len(self.state.objects.get(resource.group_kind, ())))
        self._observe(changes)

    def describe_unsynced(self) -> list[str]:
        """The kinds that have not been listed yet, each with the reason where one is known."""
        return self.mirror.describe_unsynced()

    def enqueue(self, items: Iterable[Item]) -> None:
        """Have these looked at now: something outside the cluster changed."""
        now = self.clock.now()
        for item in items:
            self.dispatch.queue.add(item, now)
        self._wake.set()

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop` is set; then finish what is in flight, give the lease back and return."""
        self.mirror.ages.start(self.clock.now())
        following = [asyncio.create_task(self._feed_mirror(watch)) for watch in self._watches.values()]
        following.append(asyncio.create_task(self._events.run()))
        if self.leader is not None:
            following.append(asyncio.create_task(self.leader.run()))
        pump, stopping = asyncio.create_task(self._pump()), asyncio.create_task(stop.wait())
        try:
            done, _ = await asyncio.wait([*following, pump, stopping], return_when=asyncio.FIRST_COMPLETED)
            for task in done - {stopping}:
                task.result()  # raises what ended it
        finally:
            await _cancel(pump, stopping)
            await self._finish_running()
            await _cancel(*following)
            if self.leader is not None:
                await self.leader.release()

    async def _feed_mirror(self, watch: Watch) -> None:
        source = self.follow(self.cluster, watch.resource, watch.struct, watch.selection, watch.optional)
        async for update in source:
            group_kind = watch.resource.group_kind
            self._observe(self.mirror.take_in(watch, update))
            self.dispatch.observe_unreadable(group_kind, map(key_of, list_unreadable(update)), self.clock.now())
            if isinstance(update, KindMissing) or (isinstance(update, Listing) and update.is_last):
                self.dispatch.observe_list(group_kind, self.clock.now())
        raise WukongError(f"following {watch.resource.plural} has ended; it should not")

    def _observe(self, changes: list[Change]) -> None:
        self.dispatch.observe(changes, self.clock.now())
        for change in changes:
            for listener in self._listeners:
                listener(change)
        self._wake.set()

    # ---- the pump

    async def _pump(self) -> None:
        while True:
            self._wake.clear()
            self._start_due()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._wait_seconds()):
                    await self._wake.wait()

    def _count_free_workers(self) -> int:
        may_act = self.is_synced and self.is_leading
        return self.settings.workers - len(self._running) if may_act else 0

    def _start_due(self) -> None:
        now = self.clock.now()
        self.dispatch.expire(now)
        began = time.perf_counter()
        while self._count_free_workers() > 0 and (due := self.dispatch.queue.take_due(now, 1)):
            self._start(due[0], now)
            if time.perf_counter() - began > _TURN_SECONDS:
                break  # the rest is due at once, after everybody else had a turn
        self.metrics.queue_length.set(len(self.dispatch.queue))

    def _wait_seconds(self) -> float:
        due_at = self.dispatch.next_due() if self._count_free_workers() else None
        return _LONGEST_WAIT if due_at is None else min(_LONGEST_WAIT, max(0.0, due_at - self.clock.now()))

    def _start(self, item: Item, now: float) -> None:
        work = self._cycle.take_doubt(item) or self._decide(item, now)
        if work is None:
            return
        if work.next_action is None:
            self._cycle.finish(work, now)
            return
        task = asyncio.create_task(self._work_on(work))
        self._running[task] = work
        task.add_done_callback(self._end_work)

    def _decide(self, item: Item, now: float) -> Work | None:
        """None if the controller failed."""
        try:
            with self.metrics.reconcile_seconds.labels(item.controller).time():
                return self._cycle.decide(item, now)
        except Exception as error:
            log.exception("controller failed", extra={"item": str(item)})
            self.dispatch.fail(item, error, now, self.random())
            return None

    # ---- workers

    async def _work_on(self, work: Work) -> None:
        while (action := work.next_action) is not None:
            look = self.performer.look_again
            work.advance(await (look(action) if work.only_looks else self._perform(work.item, action)))

    async def _perform(self, item: Item, action: Action) -> WrittenVersion | None:
        if not self.is_leading:
            raise asyncio.CancelledError
        if isinstance(action, Note):  # what comes after it need not wait, nor any other key
            self._events.put(action)
            return None
        await self._pass_gate(item, action)
        try:
            written = await self.performer.perform(action, self.clock.now())
        except ClusterError as error:
            self._count(action, type(error).__name__)
            raise
        self._count(action, "ok")
        return written

    async def _write_event(self, note: Note) -> None:
        """Losing an Event stops nothing."""
        try:
            await self.performer.perform(note, self.clock.now())
        except ClusterError as error:
            self._count(note, type(error).__name__)
        else:
            self._count(note, "ok")

    async def _pass_gate(self, item: Item, action: Action) -> None:
        """Raises GateRefusal if this may not be done now. What is refused is told once, by an Event and a log line."""
        verdict = self._cycle.ask_gate(item, action, self.clock.now())
        if isinstance(verdict, Allow):
            return
        if verdict.is_news:
            facts = {"item": str(item), "action": describe_action(action), "reason": verdict.reason}
            log.warning("the gate holds" if isinstance(verdict, Hold) else "the gate forbids", extra=facts)
            self._events.put(note_of(action, verdict))
        raise refusal_of(verdict)

    def _count(self, action: Action, result: str) -> None:
        self.metrics.actions.labels(type(action).__name__, result).inc()

    def _end_work(self, task: asyncio.Task[None]) -> None:
        work, now = self._running.pop(task), self.clock.now()
        if task.cancelled():
            self._cycle.abandon(work, now)
        elif (error := task.exception()) is None:
            self._cycle.finish(work, now)
        else:
            self._fail_work(work, error, now)
        self._wake.set()

    def _fail_work(self, work: Work, error: BaseException, now: float) -> None:
        assert isinstance(error, Exception)
        delay = self._cycle.fail(work, error, now, self.random())
        if isinstance(error, GateRefusal):  # told already
            return
        action = work.next_action
        assert action is not None
        again = round(delay, 3)
        facts = {"item": str(work.item), "action": describe_action(action), "error": str(error), "again_seconds": again}
        log.warning("action failed", extra=facts, exc_info=None if isinstance(error, ClusterError) else error)

    # ---- leading and leaving

    def _follow_leadership(self, is_leading: bool) -> None:
        """Stepping down stops at once what is in flight: whoever leads next looks at everything again."""
        self.metrics.leader.set(is_leading)
        if not is_leading:
            for task in self._running:
                task.cancel()
        self._wake.set()

    async def _finish_running(self) -> None:
        if self._running:
            await asyncio.wait(list(self._running), timeout=self.settings.grace_seconds)
        await _cancel(*self._running)
        await self._events.drain(self.settings.grace_seconds)


async def _cancel(*tasks: asyncio.Task[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
