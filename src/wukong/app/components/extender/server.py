"""The extender at work: replies.extender's answers, counted for Prometheus, and the Events that they ask for.

Built by the component, called by serve.extender. Events are written after the answer: a scheduler never waits for one,
and when too many wait, the oldest are dropped and counted.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial

from prometheus_client import Counter, Gauge

from wukong.actions import Note
from wukong.api.core import Node, Pod
from wukong.api.kinds import NODES
from wukong.app.component import Context
from wukong.app.components.extender.certificate_expiry import keep_warning, show_expiries
from wukong.app.components.extender.options import ExtenderOptions, address_of, tls_of
from wukong.app.own_pod import find_own_pod
from wukong.engine.arrays import Index, Ints
from wukong.errors import InputError
from wukong.placement.fleet import Fleet
from wukong.placement.judge import PolicyRefusal
from wukong.placement.slices import Slices
from wukong.ports import Clock
from wukong.replies.extender.verbs import Extender, FilterResult, Victim
from wukong.runtime import Loop
from wukong.runtime.metrics import ExtenderMetrics, Metrics
from wukong.runtime.performer import Performer
from wukong.serve.connections import count_connections
from wukong.serve.extender.server import build_extender_app
from wukong.serve.site import CONNECTIONS, serve
from wukong.serve.tls import CertificateFiles

_MOST_WAITING = 1000
Staleness = Callable[[float], float]
BuildExtender = Callable[[Staleness], Extender]
log = logging.getLogger(__name__)


class CountingExtender:
    """An extender that counts its answers and keeps their Events. Has the verbs that serve.extender asks for."""

    def __init__(self, extender: Extender, metrics: Metrics, clock: Clock) -> None:
        self.extender = extender
        self.notes: deque[Note] = deque(maxlen=_MOST_WAITING)
        self.has_notes = asyncio.Event()
        registry = metrics.registry
        self._refused = Counter(
            "wukong_extender_nodes_refused_total",
            "Nodes refused to pods, by reason; mode observe: that would have been",
            ["reason", "mode"],
            registry=registry,
        )
        self._fallbacks = Counter(
            "wukong_extender_fallbacks_total",
            "Pods given the other kind of capacity, the one wanted first not being left",
            registry=registry,
        )
        self._unknown = Counter(
            "wukong_extender_unknown_nodes_total", "Nodes offered that we had not heard of yet", registry=registry
        )
        self._faults = Counter(
            "wukong_rule_failures_total", "Times a rule raised instead of answering", ["rule"], registry=registry
        )
        self._dropped = Counter("wukong_extender_events_dropped_total", "Events never written", registry=registry)
        stale = Gauge(
            "wukong_usage_stale_nodes", "Nodes whose usage was measured too long ago to count", registry=registry
        )
        stale.set_function(lambda: extender.fleets.count_stale(clock.now()))
        age = Gauge("wukong_usage_age_seconds", "Age of the oldest usage of a node", registry=registry)
        age.set_function(lambda: extender.fleets.oldest_usage_seconds(clock.now()))
        stale_mirror = Gauge(
            "wukong_extender_stale_mirror",
            "1 while the mirrored nodes are too old to trust a spot node",
            registry=registry,
        )
        stale_mirror.set_function(lambda: float(extender.node_staleness(clock.now()) > 0))

    def fleet_in_slices(self, now: float) -> Slices[Fleet]:
        return self.extender.fleet_in_slices(now)

    def fleet_of(self, nodes: Sequence[Node | str], now: float) -> Fleet:
        return self.extender.fleet_of(nodes, now)

    def filter_in_slices(self, pod: Pod, fleet: Fleet, rows: Index, now: float) -> Slices[FilterResult]:
        filtered = yield from self.extender.filter_in_slices(pod, fleet, rows, now)
        self._count(filtered.refusals, "enforce")
        self._count(filtered.observed, "observe")
        if filtered.is_fallback:
            self._fallbacks.inc()
        unknown = int((rows < 0).sum())
        if unknown:
            self._unknown.inc(unknown)
        self._keep(filtered.notes)
        self._report_faults()
        return filtered

    def prioritize_in_slices(self, pod: Pod, fleet: Fleet, rows: Index, now: float) -> Slices[Ints]:
        scores = yield from self.extender.prioritize_in_slices(pod, fleet, rows, now)
        self._report_faults()
        return scores

    def preempt_in_slices(self, pod: Pod, candidates: Mapping[str, Sequence[Victim]], now: float) -> Slices[list[str]]:
        return self.extender.preempt_in_slices(pod, candidates, now)

    def _count(self, refusals: tuple[PolicyRefusal, ...], mode: str) -> None:
        for refusal in refusals:
            self._refused.labels(refusal.kind, mode).inc(int(refusal.mask.sum()))

    def _keep(self, notes: tuple[Note, ...]) -> None:
        for note in notes:
            if len(self.notes) == _MOST_WAITING:
                self._dropped.inc()
            self.notes.append(note)
            self.has_notes.set()

    def _report_faults(self) -> None:
        faults = self.extender.judge.faults
        for rule, error in faults.items():
            self._faults.labels(rule).inc()
            log.warning("a rule failed", extra={"rule": rule, "error": error})
        faults.clear()


class ExtenderServer:
    """The extender over HTTP, with mutual TLS unless told otherwise."""

    def __init__(self, build: BuildExtender, options: ExtenderOptions, context: Context) -> None:
        """`build` makes the extender of a function that gives, at a time, how stale the mirrored nodes are."""
        self.build, self.options, self.context = build, options, context

    async def start(self, stack: AsyncExitStack, loop: Loop) -> Coroutine[None, None, None]:
        """Listen until the stack is left. Returns what must run beside: Events, and a look at certificates."""
        metrics, clock = self.context.metrics, self.context.clock
        assert metrics is not None, "who listens reports how it does"
        extender = self.build(partial(loop.mirror.ages.staleness_of, NODES.kind))
        answering = CountingExtender(extender, metrics, clock)
        paths = tls_of(self.options)
        files = CertificateFiles(*paths) if paths else None
        tls = files.build_context() if files else None
        app = build_extender_app(answering, loop, ExtenderMetrics(metrics), clock)
        host, port = address_of(self.options)
        try:
            port = await serve(stack, app, host, port, tls, count_connections(metrics, "extender", CONNECTIONS))
        except InputError as error:
            raise error.at("--extender") from None
        log.info("the extender listens", extra={"host": host, "port": port, "tls": tls is not None})
        if files is None:
            return keep_writing_events(answering, loop.performer, clock)
        show_expiries(files, metrics)
        return self._run_beside(answering, files, loop.performer)

    async def _run_beside(self, answering: CountingExtender, files: CertificateFiles, performer: Performer) -> None:
        clock = self.context.clock
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(keep_writing_events(answering, performer, clock))
            tasks.create_task(keep_warning(files, performer, clock, find_own_pod(os.environ)))


async def keep_writing_events(answering: CountingExtender, performer: Performer, clock: Clock) -> None:
    """For ever: write the Events that answers left behind. One that cannot be written is lost."""
    while True:
        await answering.has_notes.wait()
        answering.has_notes.clear()
        while answering.notes:
            try:
                await performer.perform(answering.notes.popleft(), clock.now())
            except Exception as error:  # whatever it is about, the others are written
                log.warning("an event was not written", extra={"error": str(error)})
