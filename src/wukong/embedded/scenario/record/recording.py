"""Everything that is recorded of a cluster while a scenario is played on it, and the story made of it.

Built by the two players (play/player.py, app/sim_live/player.py): what it gives means the same on both.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable

from wukong.api.kinds import KINDS, NODES, PODS, VIRTUAL_MACHINE_INSTANCES
from wukong.embedded.scenario.record.availability import Availability
from wukong.embedded.scenario.record.moves import Moves
from wukong.embedded.scenario.record.observed_cluster import ObservedCluster
from wukong.embedded.scenario.record.recorder import Covers, Recorder
from wukong.embedded.scenario.record.start_state import StartState
from wukong.embedded.scenario.record.story import Event, Story
from wukong.embedded.scenario.record.stuck_details import describe_stuck
from wukong.embedded.world.objects import Pod
from wukong.state import Change

Lines = Callable[[str], object]  # is given each line of a trace as it happens


class StoryTrace:
    """The lines of a trace, and their SHA-256. They go to `write_line`; without one they are kept."""

    def __init__(self, write_line: Lines | None = None) -> None:
        self.lines: list[str] = []
        self._write_line = write_line or self.lines.append
        self._digest = hashlib.sha256()

    def add(self, line: str) -> None:
        self._digest.update(line.encode())
        self._write_line(line)

    @property
    def digest(self) -> str:
        return self._digest.hexdigest()


class Recording:
    def __init__(
        self,
        cluster: ObservedCluster,
        trace: StoryTrace,
        covers: Covers = lambda kind, key: True,
        *,
        passing_seconds: float = 0.0,
    ) -> None:
        """`covers` and `passing_seconds` are the recorder's."""
        self.cluster, self.trace = cluster, trace
        self.recorder = Recorder(cluster, covers, passing_seconds=passing_seconds)
        self._start = StartState()
        self.moves = Moves(cluster, self.recorder)
        self.availability = Availability(cluster, self.recorder)

    def fork(self, cluster: ObservedCluster, trace: StoryTrace) -> Recording:
        """The same for a copy of the cluster, to which it listens. The lines of the story so far are not in `trace`."""
        copy = Recording.__new__(Recording)
        copy.cluster, copy.trace, copy.recorder = cluster, trace, self.recorder.fork(cluster)
        copy._start = self._start
        copy.moves = self.moves.fork(cluster, copy.recorder)
        copy.availability = self.availability.fork(cluster, copy.recorder)
        return copy

    def include_present_objects(self) -> None:
        """Record what the cluster holds before the story begins. None of it is an event."""
        objects = self.cluster.state.objects
        kinds = (
            *(kind.group_kind for kind in KINDS.workloads()),
            VIRTUAL_MACHINE_INSTANCES.group_kind,
            NODES.group_kind,
        )
        for kind in kinds:
            for key, present in sorted(objects.get(kind, {}).items()):
                for listener in (self.recorder, self.moves, self.availability):
                    listener.hear(Change("ADDED", kind, key, None, present))
        pods = [pod for _, pod in sorted(objects.get(PODS.group_kind, {}).items()) if isinstance(pod, Pod)]
        self.recorder.include_pods(pods)
        for pod in pods:
            self.moves.include(pod)
        self.recorder.clear_events()

    def begin(self, *, was_at_rest: bool, stuck: Iterable[str]) -> None:
        """Have the story begin now: what was before is not part of it, nor is it counted against it."""
        self.recorder.begin()
        self._start = StartState.of(stuck, self.recorder, was_at_rest=was_at_rest)

    def tell_story(
        self,
        *,
        is_at_rest: bool,
        is_interrupted: bool = False,
        last_change: float,
        writes: int,
        events: Iterable[Event] = (),
    ) -> Story:
        """The story so far: it ends with the `last_change` if the cluster is at rest, else now. `events` come on top of
        the recorder's own. Called once, in the end.
        """
        end = last_change if is_at_rest else self.cluster.clock.now()
        reasons = self.recorder.finish(end)
        stuck, stuck_before = self._start.split_stuck(reasons, self.recorder)
        return Story(
            settled=(is_at_rest or not self._start.was_at_rest) and not stuck and not is_interrupted,
            interrupted=is_interrupted,
            at_rest=is_at_rest,
            stuck=stuck,
            stuck_before=stuck_before,
            stuck_details=describe_stuck(self.recorder) if reasons else [],
            workloads=dict(sorted(self.recorder.workloads.items())),
            nodes=self.recorder.nodes,
            moves=self.moves.completed,
            availability=dict(sorted(self.availability.history.items())),
            writes=writes,
            virtual_seconds=round(max(0.0, end - self.recorder.started_at), 3),
            digest=self.trace.digest,
            events=sorted([*self.recorder.events, *events], key=lambda event: event.at),
            trace=self.trace.lines,
        )
