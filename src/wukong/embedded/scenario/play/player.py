"""Plays a scenario on a World, on virtual time, and gives its story: course.py with every wait a run of the world.

    last entry ─► nobody waits for anything but retries, and those change nothing ─► at rest
              └─► until ─► not at rest

Called by app/embedded.py. The trace is every action of everybody, one JSON line each; the digest is its SHA-256.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

import msgspec

from wukong.actions import Action, Delete
from wukong.api.kinds import NAMESPACES
from wukong.api.resources import Key
from wukong.embedded.checkers import Checkers
from wukong.embedded.faults import Faults
from wukong.embedded.scenario.format.fields import Scenario
from wukong.embedded.scenario.play import steps
from wukong.embedded.scenario.play.course import (
    SCENARIO,
    Drain,
    Milestone,
    Perform,
    Request,
    WaitForRest,
    WaitUntil,
    begin_drain,
    course_of,
)
from wukong.embedded.scenario.record.observed_cluster import ObservedCluster
from wukong.embedded.scenario.record.recorder import Recorder
from wukong.embedded.scenario.record.recording import Lines, Recording, StoryTrace
from wukong.embedded.scenario.record.refused_evictions import RefusedEvictions
from wukong.embedded.scenario.record.story import Story
from wukong.embedded.scenario.record.unhelped_pods import UnhelpedPods
from wukong.embedded.world.latencies import PASSING_SECONDS
from wukong.embedded.world.transport import perform
from wukong.embedded.world.world import Step, World
from wukong.errors import ClusterError, InputError
from wukong.runtime.dispatch import Item

__all__ = ["Interrupted", "Lines", "Observers", "Spectator", "WorldPlayer", "play", "trace_line"]
REST_SECONDS = 1060.0  # within which everybody who failed has tried again: controllers after 1000 s at most
SCHEDULERS = ("scheduler", "wukong-scheduler")  # their names as controllers
_encode = msgspec.json.Encoder(order="sorted").encode
KEPT_STEPS = 10_000  # of the world's trace, for whoever looks at what happened last


class Interrupted(Exception):  # noqa: N818
    """Raised by a spectator, who has seen enough: the story ends there."""


class Observers(NamedTuple):
    """What records and judges the play of a scenario."""

    recording: Recording
    checkers: Checkers


class Spectator(Protocol):
    """Looks on while a scenario is played, and may take its time at the clock's jumps and the mirror's changes."""

    def begin(self, player: WorldPlayer) -> None: ...


def play(
    world: World,
    scenario: Scenario,
    drains: steps.Drains,
    spectator: Spectator | None = None,
    faults: Faults | None = None,
    lines: Lines | None = None,
) -> Story:
    """`drains` is one of the world's controllers, `faults` its faults. Raises InputError where the API server refuses
    what is written; under faults that may be nobody's mistake, and the play goes on.

    Without `lines` those of the trace are in the story, however many they are.
    """
    player = WorldPlayer(world, scenario, drains, faults, lines)
    if spectator is not None:
        spectator.begin(player)
    return player.play()


def record(world: World, lines: Lines | None = None) -> Recording:
    """A recording that knows what the world holds now."""
    passing_seconds = PASSING_SECONDS if world.takes_time else 0.0
    recording = Recording(world, StoryTrace(lines), passing_seconds=passing_seconds)
    recording.include_present_objects()
    return recording


class WorldPlayer:
    """Drives the course of one scenario on a world. Spectators read it."""

    def __init__(
        self,
        world: World,
        scenario: Scenario,
        drains: steps.Drains,
        faults: Faults | None = None,
        lines: Lines | None = None,
        observers: Observers | None = None,
    ) -> None:
        """`observers` know the world already; without them it is looked at as a whole first."""
        self.world, self.scenario, self.drains, self.faults = world, scenario, drains, faults
        if observers is None:
            self.recording, self.checkers = record(world, lines), Checkers(world, faults)
        else:
            self.recording, self.checkers = observers
        self.is_resting = False  # after the last entry of the timeline
        self.started_at, self.first_version = world.clock.now(), world.server.database.version
        self._refused_evictions = RefusedEvictions(self.started_at)
        self._unhelped_pods = UnhelpedPods(self.started_at)
        self._has_nothing_due = False

    def play(self) -> Story:
        self.world.trace.min_kept = KEPT_STEPS
        try:
            listeners = (self._write_step, self._refused_evictions.hear, self._unhelped_pods.hear)
            with self.world.trace.notify(*listeners):
                is_at_rest, is_interrupted = self._drive(), False
        except Interrupted:
            is_at_rest, is_interrupted = False, True
        story = self.recording.tell_story(
            is_at_rest=is_at_rest,
            is_interrupted=is_interrupted,
            last_change=self.recorder.last_change,
            writes=self.world.server.database.version - self.first_version,
            events=[*self._refused_evictions.events, *self._unhelped_pods.events],
        )
        story.findings = [str(finding) for finding in self.checkers.finish(is_at_rest=is_at_rest)]
        return story

    def last_plan(self) -> float:
        """Until when somebody means to do something, other than to try again what failed."""
        queued_items = self.world.queued_items()
        plans = (
            queued.at for queued in queued_items if queued.item.controller not in SCHEDULERS and not queued.is_retry
        )
        return max(plans, default=self.started_at)

    # ---- the driver

    def _drive(self) -> bool:
        course = course_of(self.scenario, self, faults_end=self.faults.end if self.faults is not None else None)
        try:
            while True:
                self._carry_out(next(course))
        except StopIteration as end:
            return bool(end.value)

    def _carry_out(self, request: Request) -> None:
        match request:
            case Milestone.PREPARE:
                self._prepare_nodes()
            case Milestone.BEGIN:
                pass  # on virtual time nothing has taken any
            case Perform(actions, place):
                self._perform(actions, place)
            case Drain(node):
                begin_drain(node, self)
            case WaitUntil(seconds):
                self.world.run(deadline=self.started_at + seconds)
            case WaitForRest(limit):
                self.is_resting = True
                self._has_nothing_due = self.world.run(deadline=min(limit, self._last_chance())) == "quiet"

    def _prepare_nodes(self) -> None:
        """Create the nodes, and let them lose the taint of new ones, as app/sim_live waits until they are ready."""
        if self.faults is not None or not self.world.takes_time:  # faults strike from the beginning
            self._perform(self._create_nodes(), "$.nodes")
            return
        with self.world.at_once():
            self._perform(self._create_nodes(), "$.nodes")
            self.world.run(deadline=self.started_at)

    def _create_nodes(self) -> list[Action]:
        return steps.create_nodes(self.scenario.nodes, self.scenario.node_groups)

    def _perform(self, actions: list[Action], place: str) -> None:
        item = Item(SCENARIO, Key("", place))
        for action in actions:
            error_text = ""
            try:
                if isinstance(action, Delete):
                    self.world.server.get(action.resource, action.key)  # what is not there cannot be what was meant
                perform(self.world.server, action)
            except ClusterError as error:
                if self.faults is None:
                    raise InputError(f"{place}: the API server refuses it: {error}") from None
                error_text = f"{type(error).__name__}: {error}"
            self.world.trace.append(Step(self.world.clock.now(), item, action, error_text))

    def _write_step(self, step: Step) -> None:
        self.recording.trace.add(trace_line(step, self.started_at))

    # ---- what the course reads

    @property
    def recorder(self) -> Recorder:
        return self.recording.recorder

    @property
    def cluster(self) -> ObservedCluster:
        return self.world

    def namespaces(self) -> frozenset[str]:
        namespaces = self.world.server.list(NAMESPACES).items
        return frozenset(namespace["metadata"]["name"] for namespace in namespaces)

    def is_at_rest(self) -> bool:
        return self._has_nothing_due or self.world.clock.now() >= self._last_chance()

    def enqueue(self, items: Iterable[Item]) -> None:
        for item in items:
            self.world.enqueue(item)

    def _last_chance(self) -> float:
        """Until when something may happen by itself. Who only tries again what failed has had its chance by then."""
        return max(self.recorder.last_change + REST_SECONDS, self.last_plan())


def trace_line(step: Step, started_at: float) -> str:
    """One line of the trace."""
    document = {
        "at": round(step.at - started_at, 3),
        "by": step.item.controller,
        "key": str(step.item.key),
        "action": step.action,
    }
    if step.error:
        document["error"] = step.error
    return _encode(document).decode() + "\n"
