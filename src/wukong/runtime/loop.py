"""The asyncio shell: followers feed the state, a pump hands due keys to their controllers, workers perform what comes.

Built by app.live. Deciding happens between awaits, in one thread; only actions are concurrent, at most `workers` keys
at a time. Acts only while every kind has been listed and, with a Leader, only while it leads; it follows all the time,
so that an instance that takes over knows the cluster already.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from wukong.actions import Action, Note, Outcome
from wukong.api.meta import Object
from wukong.api.resources import Resource
from wukong.errors import ClusterError, GateRefusal, OutcomeUnknown, WukongError
from wukong.ports import EVERYTHING, Clock, Cluster
from wukong.runtime.dispatch import Dispatch, Item
from wukong.runtime.gate import Allow, Gate, Hold, note_of
from wukong.runtime.leader import Leader
from wukong.runtime.metrics import Metrics
from wukong.runtime.pending_writes import WrittenVersion
from wukong.runtime.performer import Performer, described, subject
from wukong.runtime.source import is_from_outside
from wukong.runtime.watch_source import Changed, WatchSource
from wukong.state import Change, State
from wukong.state.controller import Controller, Watch

log = logging.getLogger(__name__)
_LONGEST_WAIT = 30.0  # after a jump of the clock, keys are late by no more than this


class LoopSettings(msgspec.Struct, frozen=True):
    workers: int = 8
    grace_seconds: float = 20.0  # how long a shutdown waits for what is in flight


class Job:
    """One key being worked on. Actions before `position` have been performed. If it `only_looks`, none is."""

    def __init__(self, item: Item, outcome: Outcome, *, only_looks: bool = False) -> None:
        self.item, self.outcome, self.position, self.only_looks = item, outcome, 0, only_looks
        self.written: list[WrittenVersion] = []

    def undone(self, *, is_unknown: bool) -> Sequence[Action]:
        """What has not happened; the action at hand is left out if nobody knows."""
        return self.outcome.actions[self.position + is_unknown :]


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
    ) -> None:
        """`random` gives numbers in [0, 1). `also` are kinds no controller watches but decisions need.

        Without a `gate`, one with the usual settings is asked.
        """
        self.cluster, self.follow, self.clock, self.random = cluster, follow, clock, random
        self.settings, self.metrics = settings or LoopSettings(), metrics or Metrics()
        self.state = state or State()
        controllers = tuple(controllers)
        gate = gate or Gate(count=self.metrics.count_gate)
        names = [controller.name for controller in controllers]
        self.dispatch = Dispatch(controllers, self.state, gates=dict.fromkeys(names, gate))
        self.performer = Performer(cluster, identity)
        self.leader = leader
        if leader is not None:
            leader.on_change = self._lead
        watches = [watch for controller in self.dispatch.controllers.values() for watch in controller.watches]
        self._watches = {watch.resource: watch for watch in (*also, *watches) if not is_from_outside(watch.resource)}
        self._unsynced = set(self._watches)
        self._listeners: list[Callable[[Change], None]] = []
        self._jobs: dict[asyncio.Task[None], Job] = {}
        # What nobody knows the outcome of. Before its key is decided again we look, for the watch may not show it yet.
        self._doubts: dict[Item, Action] = {}
        self._wake = asyncio.Event()

    @property
    def is_synced(self) -> bool:
        """Every kind has been listed at least once."""
        return not self._unsynced

    @property
    def is_leading(self) -> bool:
        return self.leader is None or self.leader.is_leading

    def listen(self, hear: Callable[[Change], None]) -> None:
        """`hear` is called with every change of the mirror, in order."""
        self._listeners.append(hear)

    def take_in(self, resource: Resource, objects: Sequence[Object]) -> None:
        """What a source hands over: all objects of its kind. Their changes are watched like any other."""
        self._observe(resource, self.state.replace(resource.group_kind, objects))

    def enqueue(self, items: Iterable[Item]) -> None:
        """Have these looked at now: something outside the cluster changed."""
        now = self.clock.now()
        for item in items:
            self.dispatch.queue.add(item, now)
        self._wake.set()

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop` is set; then finish what is in flight, give the lease back and return."""
        following = [asyncio.create_task(self._feed(watch)) for watch in self._watches.values()]
        if self.leader is not None:
            following.append(asyncio.create_task(self.leader.run()))
        pump, stopping = asyncio.create_task(self._pump()), asyncio.create_task(stop.wait())
        try:
            done, _ = await asyncio.wait([*following, pump, stopping], return_when=asyncio.FIRST_COMPLETED)
            for task in done - {stopping}:
                task.result()  # raises what ended it
        finally:
            await _cancel(pump, stopping)
            await self._finish_jobs()
            await _cancel(*following)
            if self.leader is not None:
                await self.leader.release()

    async def _feed(self, watch: Watch) -> None:
        kind = watch.resource.group_kind
        async for news in self.follow(self.cluster, watch.resource, watch.struct, EVERYTHING):
            if isinstance(news, Changed):
                changes = self.state.apply(news.event.type, news.event.object, kind)
            else:
                changes = self.state.replace(kind, news.items)
                self._unsynced.discard(watch.resource)
            self._observe(watch.resource, changes)
        raise WukongError(f"following {watch.resource.plural} has ended; it should not")

    def _observe(self, resource: Resource, changes: list[Change]) -> None:
        self.dispatch.observe(changes, self.clock.now())
        for change in changes:
            for hear in self._listeners:
                hear(change)
        count = len(self.state.objects.get(resource.group_kind, ()))
        self.metrics.mirror_objects.labels(resource.kind).set(count)
        self._wake.set()

    # ---- the pump

    async def _pump(self) -> None:
        while True:
            self._wake.clear()
            self._take()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._wait_seconds()):
                    await self._wake.wait()

    def _free(self) -> int:
        is_open = self.is_synced and self.is_leading
        return self.settings.workers - len(self._jobs) if is_open else 0

    def _take(self) -> None:
        now = self.clock.now()
        self.dispatch.expire(now)
        for item in self.dispatch.queue.due(now, self._free()):
            self._start(item, now)
        self.metrics.queue_length.set(len(self.dispatch.queue))

    def _wait_seconds(self) -> float:
        at = self.dispatch.next_due() if self._free() else None
        return _LONGEST_WAIT if at is None else min(_LONGEST_WAIT, max(0.0, at - self.clock.now()))

    def _start(self, item: Item, now: float) -> None:
        if item in self._doubts:
            self._work(Job(item, Outcome((self._doubts[item],), requeue_after=0.0), only_looks=True))
            return
        try:
            with self.metrics.reconcile_seconds.labels(item.controller).time():
                outcome = self.dispatch.reconcile(item, now)
        except Exception as error:
            log.exception("controller failed", extra={"item": str(item)})
            self.dispatch.failed(item, error, now, self.random())
            return
        if not outcome.actions:
            self.dispatch.succeeded(item, outcome, now)
            return
        self._work(Job(item, outcome))

    def _work(self, job: Job) -> None:
        task = asyncio.create_task(self._settle(job) if job.only_looks else self._perform(job))
        self._jobs[task] = job
        task.add_done_callback(self._ended)

    # ---- workers

    async def _perform(self, job: Job) -> None:
        for action in job.outcome.actions:
            if not self.is_leading:
                raise asyncio.CancelledError
            await self._ask_gate(job.item, action)
            try:
                written = await self.performer.perform(action, self.clock.now())
            except ClusterError as error:
                self._count(action, type(error).__name__)
                if not isinstance(action, Note):  # losing an Event stops nothing
                    raise
            else:
                self._count(action, "ok")
                if written is not None:
                    job.written.append(written)
            job.position += 1

    async def _ask_gate(self, item: Item, action: Action) -> None:
        """Raises GateRefusal if this may not be done now. What is refused is told once, by an Event and a log line."""
        verdict = self.dispatch.ask_gate(item, action, self.clock.now())
        if isinstance(verdict, Allow):
            return
        if verdict.is_news:
            facts = {"item": str(item), "action": described(action), "reason": verdict.reason}
            log.warning("the gate holds" if isinstance(verdict, Hold) else "the gate forbids", extra=facts)
            with suppress(ClusterError):  # losing an Event stops nothing
                await self.performer.perform(note_of(action, verdict), self.clock.now())
        again = verdict.again_seconds if isinstance(verdict, Hold) else None
        raise GateRefusal(verdict.reason, again_seconds=again)

    async def _settle(self, job: Job) -> None:
        written = await self.performer.look_again(self._doubts[job.item])
        del self._doubts[job.item]
        if written is not None:
            job.written.append(written)

    def _count(self, action: Action, result: str) -> None:
        self.metrics.actions.labels(type(action).__name__, result).inc()

    def _ended(self, task: asyncio.Task[None]) -> None:
        job, now = self._jobs.pop(task), self.clock.now()
        if task.cancelled():
            self.dispatch.abandoned(job.item, now, job.undone(is_unknown=True))
        elif (error := task.exception()) is None:
            self.dispatch.succeeded(job.item, job.outcome, now, job.written)
        else:
            self._failed(job, error, now)
        self._wake.set()

    def _failed(self, job: Job, error: BaseException, now: float) -> None:
        assert isinstance(error, Exception)
        undone = job.undone(is_unknown=isinstance(error, OutcomeUnknown))
        delay = self.dispatch.failed(job.item, error, now, self.random(), undone, job.written)
        if isinstance(error, GateRefusal):  # told already
            return
        action = job.outcome.actions[job.position]
        if isinstance(error, OutcomeUnknown) and subject(action)[1].name:
            self._doubts[job.item] = action
        again = round(delay, 3)
        told = {"item": str(job.item), "action": described(action), "error": str(error), "again_seconds": again}
        log.warning("action failed", extra=told, exc_info=None if isinstance(error, ClusterError) else error)

    # ---- leading and leaving

    def _lead(self, is_leading: bool) -> None:
        """Stepping down stops at once what is in flight: whoever leads next looks at everything again."""
        self.metrics.leader.set(is_leading)
        if not is_leading:
            for task in self._jobs:
                task.cancel()
        self._wake.set()

    async def _finish_jobs(self) -> None:
        if self._jobs:
            await asyncio.wait(list(self._jobs), timeout=self.settings.grace_seconds)
        await _cancel(*self._jobs)


async def _cancel(*tasks: asyncio.Task[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
