"""What happens when a change meets a cluster: its snapshot is loaded, comes to rest, and the change is played on it.

Called by `wukong sim run -s`. The twin of `play_scenario`, which begins with an empty cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from wukong.actions import Action, Create, Delete, Note, Patch
from wukong.api.kinds import CONTROLLER_REVISIONS, ENDPOINT_SLICES, PODS
from wukong.api.node_groups import NodeGroup
from wukong.app.component import Component
from wukong.app.embedded import (
    AtEnd,
    EmbeddedCluster,
    Settings,
    build_cluster,
    choose_components,
    read_component_options,
)
from wukong.cluster import pause_garbage_collector
from wukong.embedded.actors.kubelet.durations import PodDurations
from wukong.embedded.scenario import Scenario, Story
from wukong.embedded.scenario.format.durations import build_durations
from wukong.embedded.scenario.play.player import Lines, Observers, Spectator, WorldPlayer, record
from wukong.embedded.scenario.play.steps import MANAGER, Drains
from wukong.embedded.scenario.record.recording import StoryTrace
from wukong.embedded.scenario.record.story import SettlingReport
from wukong.embedded.snapshot.load import LoadedSnapshot, load_snapshot
from wukong.embedded.snapshot.presumed_fields import presume_fields
from wukong.embedded.world.rare_collection import collect_rarely
from wukong.embedded.world.world import Step
from wukong.ports import Document
from wukong.state import State


def load(documents: Iterable[Document], now: float | None = None) -> LoadedSnapshot:
    """Made fit to be played on; its `notes` say what had to be taken for granted."""
    with pause_garbage_collector():
        return load_snapshot(documents, now)


def play_on(
    start: LoadedSnapshot,
    scenario: Scenario,
    seed: int = 0,
    spectator: Spectator | None = None,
    lines: Lines | None = None,
) -> Story:
    """Play a scenario once on a snapshot: see Baseline."""
    return make_baseline(start, scenario).play(scenario, seed, spectator, lines)


def make_baseline(start: LoadedSnapshot, scenario: Scenario, durations: PodDurations | None = None) -> Baseline:
    """With the components that this scenario needs, or that the snapshot's policies do. How long pods take says the
    scenario, unless `durations` are given."""
    components, options = choose_components(scenario, list_documents(start)), read_component_options(scenario)
    if durations is None:
        durations = build_durations(scenario, list_documents(start))
    return Baseline(start, components, options, durations, scenario.node_groups)


class Baseline:
    """The cluster of a snapshot, come to rest: changes are played on it again and again, each on a fork.

    Until it is at rest it draws by seed 0, whatever the plays draw by. `before` says what happened until then: a
    snapshot may show a cluster in the middle of something.
    """

    def __init__(
        self,
        start: LoadedSnapshot,
        components: Sequence[Component[Any]],
        options: Mapping[str, msgspec.Struct] | None = None,
        durations: PodDurations = PodDurations(),  # noqa: B008  # never changed
        node_groups: Sequence[NodeGroup] = (),
    ) -> None:
        """`options` are those of the components, by their names; `durations` hold for every play. Of `node_groups`
        nodes come and go in plays; until it is at rest the nodes are the snapshot's, which a change meets."""
        settings = Settings(
            0,
            tuple(components),
            options=options or {},
            durations=durations,
            node_groups=tuple(node_groups),
            keeps_nodes=True,
        )
        with pause_garbage_collector():
            self._come_to_rest(start, settings)

    def _come_to_rest(self, start: LoadedSnapshot, settings: Settings) -> None:
        # Kept for its memory alone: given back, it would be holes all over what worker processes share, and whatever
        # these create would be written into the holes.
        self._start = start
        drains = Drains()
        self._cluster = build_cluster(settings, drains, start)
        world, changes = self._cluster.world, 0

        def count(step: Step) -> None:
            nonlocal changes
            changes += not step.error and is_change(step.action)

        player = WorldPlayer(world, Scenario(), drains, lines=_ignore)
        with world.trace.notify(count):
            story = player.play()
        self._findings = story.findings
        self._recording, self._checkers = player.recording, player.checkers
        if story.writes:
            self._recording = record(world)
            self._recording.recorder.finish(world.clock.now())
        self._recording.begin(was_at_rest=story.at_rest, stuck=story.stuck)
        world.prepare_fork()
        self.before = SettlingReport(
            changes=changes,
            settled=story.settled,
            at_rest=story.at_rest,
            stuck=story.stuck,
            writes=story.writes,
            virtual_seconds=story.virtual_seconds,
            timeline=story.events,
        )

    @property
    def state(self) -> State:
        """The mirror of the cluster at rest, to be read."""
        return self._cluster.world.state

    def fork(self, seed: int = 0, lines: Lines | None = None) -> tuple[EmbeddedCluster, Observers]:
        """A copy of the cluster, and of those who observe it."""
        cluster = self._cluster.fork(seed)
        world = cluster.world
        return cluster, Observers(self._recording.fork(world, StoryTrace(lines)), self._checkers.fork(world))

    def play(
        self,
        scenario: Scenario,
        seed: int = 0,
        spectator: Spectator | None = None,
        lines: Lines | None = None,
        at_end: AtEnd | None = None,
    ) -> Story:
        """The scenario's nodes and manifests come to what is there. The next play finds nothing of it.

        `at_end` is handed the world as it is in the end.
        """
        with collect_rarely():  # what a play makes goes with its world
            return self._play(scenario, seed, spectator, lines, at_end)

    def _play(
        self, scenario: Scenario, seed: int, spectator: Spectator | None, lines: Lines | None, at_end: AtEnd | None
    ) -> Story:
        cluster, observers = self.fork(seed, lines)
        world = cluster.world
        presume_fields(world.server, scenario.documents, MANAGER)
        player = WorldPlayer(world, scenario, cluster.drains, lines=lines, observers=observers)
        if spectator is not None:
            spectator.begin(player)
        story = player.play()
        if at_end is not None:
            at_end(world)
        if spectator is None:  # one may still look at the end
            world.close()
        story.before, story.findings = self.before, [*self._findings, *story.findings]
        return story


def _ignore(_: str) -> None: ...


def is_change(action: Action) -> bool:
    """Whether an action changes pods, or what is wanted; not what is merely said of it."""
    match action:
        case Note():
            return False
        case Patch(resource, _, patch, _):
            return resource == PODS or not isinstance(patch.body, dict) or "spec" in patch.body
    if isinstance(action, Create | Delete) and action.resource == ENDPOINT_SLICES:  # no snapshot holds them
        return False
    return not (isinstance(action, Create) and action.resource == CONTROLLER_REVISIONS)


def list_documents(start: LoadedSnapshot) -> Iterable[Document]:
    return (document for _, documents in start.objects for document in documents)
