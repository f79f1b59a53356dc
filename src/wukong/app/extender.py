"""The extender at work: replies.extender's answers, with what they want told: counted for Prometheus, and as Events.

Built by app.live, called by serve.extender. Events are written after the answer: a scheduler never waits for one,
and when too many wait, the oldest are dropped and counted.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec
from prometheus_client import Counter, Gauge

from wukong.actions import Note
from wukong.api.core import Node, Pod
from wukong.api.kinds import CLUSTER_PLACEMENT_POLICIES, NAMESPACES, NODES, PLACEMENT_POLICIES, PODS
from wukong.engine.arrays import Index, Ints
from wukong.errors import ClusterError, InputError
from wukong.placement.fleet import Fleet, Latencies
from wukong.placement.judge import PolicyRefusal
from wukong.placement.prices import Prices
from wukong.placement.rule import Rules
from wukong.ports import Clock
from wukong.replies.extender.verbs import Extender, FilterResult, Settings, Victim
from wukong.runtime import Loop
from wukong.runtime.metrics import ExtenderMetrics, Metrics
from wukong.runtime.performer import Performer
from wukong.serve.extender.server import build_extender_app
from wukong.serve.site import serve
from wukong.serve.tls import build_ssl_context
from wukong.state.controller import Watch

WATCHES = tuple(
    Watch(resource) for resource in (NODES, PODS, NAMESPACES, PLACEMENT_POLICIES, CLUSTER_PLACEMENT_POLICIES)
)
_MOST_WAITING = 1000
log = logging.getLogger(__name__)


class TlsFiles(NamedTuple):
    certificate: Path
    key: Path
    client_ca: Path


class ExtenderOptions(msgspec.Struct, frozen=True):
    address: tuple[str, int] = ("0.0.0.0", 8443)
    tls: TlsFiles | None = None  # None: plain HTTP
    settings: Settings = Settings()
    prices: Prices = msgspec.field(default_factory=Prices)
    latencies: Latencies = msgspec.field(default_factory=dict)


class CountingExtender:
    """An extender that counts and tells. Has the verbs serve.extender asks for."""

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

    def fleet(self, now: float) -> Fleet:
        return self.extender.fleet(now)

    def fleet_of(self, nodes: list[Node], now: float) -> Fleet:
        return self.extender.fleet_of(nodes, now)

    def filter(self, pod: Pod, fleet: Fleet, rows: Index, now: float) -> FilterResult:
        found = self.extender.filter(pod, fleet, rows, now)
        self._count(found.refusals, "enforce")
        self._count(found.observed, "observe")
        if found.is_fallback:
            self._fallbacks.inc()
        unknown = int((rows < 0).sum())
        if unknown:
            self._unknown.inc(unknown)
        self._tell(found.notes)
        self._report_faults()
        return found

    def prioritize(self, pod: Pod, fleet: Fleet, rows: Index, now: float) -> Ints:
        scores = self.extender.prioritize(pod, fleet, rows, now)
        self._report_faults()
        return scores

    def preempt(self, pod: Pod, candidates: Mapping[str, Sequence[Victim]], now: float) -> list[str]:
        return self.extender.preempt(pod, candidates, now)

    def _count(self, refusals: tuple[PolicyRefusal, ...], mode: str) -> None:
        for refusal in refusals:
            self._refused.labels(refusal.kind, mode).inc(int(refusal.mask.sum()))

    def _tell(self, notes: tuple[Note, ...]) -> None:
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


async def start_extender(
    stack: AsyncExitStack, loop: Loop, metrics: Metrics, rules: Rules, options: ExtenderOptions
) -> Coroutine[None, None, None]:
    """Listen until the stack is left. Gives what must run beside: the writing of Events."""
    extender = Extender(
        loop.state,
        options.settings,
        rules=rules,
        prices=options.prices,
        latencies=options.latencies,
        node_staleness=partial(loop.mirror.ages.staleness_of, "Node"),
    )
    answering = CountingExtender(extender, metrics, loop.clock)
    tls = build_ssl_context(*options.tls) if options.tls else None
    app = build_extender_app(answering, loop, ExtenderMetrics(metrics), loop.clock)
    host, port = options.address
    try:
        port = await serve(stack, app, host, port, tls)
    except InputError as error:
        raise error.at("--extender") from None
    log.info("the extender listens", extra={"host": host, "port": port, "tls": tls is not None})
    return keep_writing_events(answering, loop.performer, loop.clock)


async def keep_writing_events(answering: CountingExtender, performer: Performer, clock: Clock) -> None:
    """For ever: write the Events that answers left behind. One that cannot be written is lost."""
    while True:
        await answering.has_notes.wait()
        answering.has_notes.clear()
        while answering.notes:
            try:
                await performer.perform(answering.notes.popleft(), clock.now())
            except ClusterError as error:
                log.warning("an event was not written", extra={"error": str(error)})
