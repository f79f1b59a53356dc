"""Plays a scenario on a world: nodes, manifests, the timeline, and on until nothing changes any more. Gives its story.

    begin ─► moment ─► … ─► last moment ─► nobody waits for anything but retries, and those change nothing ─► at rest
                                       └─► until ─► not at rest

Called by app/embedded.py. The trace is every action of everybody, one JSON line each; the digest is its SHA-256.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from itertools import groupby
from typing import Protocol

import msgspec

from wukong.actions import Action, Delete
from wukong.api.kinds import NAMESPACES
from wukong.api.resources import Key
from wukong.embedded.checkers import Checkers
from wukong.embedded.faults import Faults
from wukong.embedded.scenario.format.fields import Scenario, TimelineEntry, seconds_of
from wukong.embedded.scenario.play import steps
from wukong.embedded.scenario.play.quiescence import awaited
from wukong.embedded.scenario.record import workload_status
from wukong.embedded.scenario.record.availability import Availability
from wukong.embedded.scenario.record.moves import Moves
from wukong.embedded.scenario.record.recorder import Recorder
from wukong.embedded.scenario.record.refused_evictions import RefusedEvictions
from wukong.embedded.scenario.record.story import Story
from wukong.embedded.world.transport import perform
from wukong.embedded.world.world import Step, World
from wukong.errors import ClusterError, InputError
from wukong.runtime.dispatch import Item
from wukong.state import Change

REST_SECONDS = 360.0  # within which everybody who failed has tried again: the scheduler after five minutes at most
SCHEDULER = "scheduler"  # its name as a controller
SCENARIO = "scenario"  # the subject of what it does itself
KEPT_STEPS = 10_000  # of the world's trace, for whoever looks at what happened last
Lines = Callable[[str], object]  # is given each line of a trace as it happens


class Interrupted(Exception):  # noqa: N818
    """Raised by a spectator, who has seen enough: the story ends there."""


class Spectator(Protocol):
    """Looks on while a scenario is played, and may take its time at the clock's jumps and the mirror's changes."""

    def begin(self, play: Play) -> None: ...


def play(
    world: World,
    scenario: Scenario,
    drains: steps.Drains,
    spectator: Spectator | None = None,
    faults: Faults | None = None,
    lines: Lines | None = None,
) -> Story:
    """`drains` is one of the world's controllers, `faults` its faults. Raises InputError where the API server refuses
    what is written; in bad fault_injection that may be nobody's mistake, and the play goes on.

    Without `lines` those of the trace are in the story, however many they are.
    """
    playing = Play(world, scenario, drains, faults, lines)
    if spectator is not None:
        spectator.begin(playing)
    return playing.story()


class Play:
    def __init__(
        self,
        world: World,
        scenario: Scenario,
        drains: steps.Drains,
        faults: Faults | None = None,
        lines: Lines | None = None,
    ) -> None:
        self.world, self.scenario, self.drains, self.faults = world, scenario, drains, faults
        self.trace: list[str] = []
        self._lines = lines or self.trace.append
        self._digest = hashlib.sha256()
        self.recorder, self.checkers = Recorder(world), Checkers(world, faults)
        self.moves, self.availability = Moves(world, self.recorder), Availability(world, self.recorder)
        self.is_resting = False  # after the last moment of the timeline
        self.begun, self.version = world.clock.now(), world.server.database.version
        self._refusals = RefusedEvictions(self.begun)
        self._take_in()
        self.limit = self.begun + (seconds_of(scenario.until) or 0)

    def _take_in(self) -> None:
        """What is there when the story begins. Nothing of it is news."""
        for kind in (*workload_status.KINDS, "Node", "Pod"):
            for key, found in sorted(self.world.state.objects.get(kind, {}).items()):
                for listener in (self.recorder, self.moves, self.availability):
                    listener.hear(Change("ADDED", kind, key, None, found))
        self.recorder.forget_news()

    def story(self) -> Story:
        self.world.trace.most = KEPT_STEPS
        try:
            with self.world.trace.heard_by(self._write, self._refusals.hear):
                is_at_rest, is_interrupted = self._go(), False
        except Interrupted:
            is_at_rest, is_interrupted = False, True
        stuck = self.recorder.finish()
        end = self.recorder.last_change if is_at_rest else self.world.clock.now()
        return Story(
            settled=is_at_rest and not stuck,
            interrupted=is_interrupted,
            stuck=stuck,
            workloads=dict(sorted(self.recorder.fates.items())),
            nodes=self.recorder.nodes,
            moves=self.moves.made,
            availability=dict(sorted(self.availability.history.items())),
            writes=self.world.server.database.version - self.version,
            virtual_seconds=round(end - self.begun, 3),
            findings=[str(each) for each in self.checkers.finish(is_at_rest=is_at_rest)],
            digest=self._digest.hexdigest(),
            events=sorted([*self.recorder.events, *self._refusals.events], key=lambda event: event.at),
            trace=self.trace,
        )

    def _write(self, step: Step) -> None:
        written = line(step, self.begun)
        self._digest.update(written.encode())
        self._lines(written)

    def _go(self) -> bool:
        """From the first node to rest; False if it does not come to rest in time."""
        self._do(steps.nodes(self.scenario.nodes), "$.nodes")
        is_on_top = bool(self.recorder.fates)  # of what a snapshot held
        for document in self.scenario.manifests:
            self._do(
                steps.applied([document], self._namespaces()), f"{document['kind']} {document['metadata']['name']}"
            )
            if is_on_top:
                self.recorder.tell(SCENARIO, steps.told_of(document))
        self.recorder.nodes.start = len(self.world.state.objects.get("Node", {}))
        for seconds, moments in by_time(self.scenario.timeline):
            self.world.run(deadline=self.begun + seconds)
            for index, moment in moments:
                self._happen(moment, f"$.timeline[{index}]")
        if self.faults is not None:
            self.world.run(deadline=self.begun + self.faults.end)
            self.recorder.tell("faults", "calm")
        self.is_resting = True
        return self._rest()

    def _rest(self) -> bool:
        """Play on until nothing changes any more; False if that takes longer than the scenario allows."""
        while self.world.run(deadline=min(self.limit, self._last_hope())) != "quiet":
            now = self.world.clock.now()
            if now >= self._last_hope():
                return True
            if now >= self.limit:
                return next(awaited(self.world), None) is None
        return True

    def _last_hope(self) -> float:
        """Until when something may happen by itself. Who only tries again what failed has had its chance by then."""
        return max(self.recorder.last_change + REST_SECONDS, self.last_plan())

    def last_plan(self) -> float:
        """Until when somebody means to do something, other than to try again what failed."""
        waiting = self.world.waiting()
        plans = (each.at for each in waiting if each.item.controller != SCHEDULER and not each.is_retry)
        return max(plans, default=self.begun)

    # ---- what the scenario does

    def _happen(self, moment: TimelineEntry, place: str) -> None:
        if moment.fault is not None:  # known to the faults from the beginning
            self.recorder.tell("faults", f"{moment.fault.type} for {moment.fault.for_}")
            return
        name = moment.drain or moment.uncordon or ""
        if moment.drain is not None:
            self.drains.nodes.add(name)
        elif moment.uncordon is not None:
            self.drains.nodes.discard(name)
        self._do(steps.actions(moment, self._namespaces()), f"{place}.{_written(moment)}")
        for text in steps.told(moment):
            self.recorder.tell(SCENARIO, text)
        if moment.drain is not None:
            self.recorder.tell(f"node {name}", "drain begins")
            for key in sorted(self.world.state.pods.on_node(name)):
                self.world.enqueue(Item(self.drains.name, key))

    def _do(self, actions: list[Action], place: str) -> None:
        item = Item("scenario", Key("", place))
        for action in actions:
            try:
                if isinstance(action, Delete):
                    self.world.server.get(action.resource, action.key)  # what is not there cannot be what was meant
                perform(self.world.server, action)
            except ClusterError as error:
                if self.faults is None:
                    raise InputError(f"{place}: the API server refuses it: {error}") from None
                told = f"{type(error).__name__}: {error}"
            else:
                told = ""
            self.world.trace.append(Step(self.world.clock.now(), item, action, told))

    def _namespaces(self) -> frozenset[str]:
        return frozenset(each["metadata"]["name"] for each in self.world.server.list(NAMESPACES).items)


def by_time(timeline: list[TimelineEntry]) -> list[tuple[int, list[tuple[int, TimelineEntry]]]]:
    """What is written for the same second happens together, before anybody reacts, as in one call of kubectl."""
    ordered = sorted(enumerate(timeline), key=lambda entry: (entry[1].seconds, entry[0]))
    return [(seconds, list(group)) for seconds, group in groupby(ordered, lambda entry: entry[1].seconds)]


def line(step: Step, begun: float) -> str:
    """One line of the trace."""
    written = {
        "at": round(step.at - begun, 3),
        "by": step.item.controller,
        "key": str(step.item.key),
        "action": msgspec.to_builtins(step.action),
        **({"error": step.error} if step.error else {}),
    }
    return msgspec.json.encode(written, order="deterministic").decode() + "\n"


def _written(moment: TimelineEntry) -> str:
    return "".join(moment.acts)
