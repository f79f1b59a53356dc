"""What happens when a change meets a cluster: its snapshot is loaded, comes to rest, and the change is played on it.

Called by `wukong sim run -s`. The twin of `play_scenario`, which begins with an empty cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from wukong.actions import Action, Create, Note, Patch
from wukong.api.kinds import CONTROLLER_REVISIONS, PODS
from wukong.app.component import Component
from wukong.app.embedded import EmbeddedCluster, Settings, build_cluster, choose_components, read_component_options
from wukong.cluster import pause_garbage_collector
from wukong.embedded.scenario import Scenario, Story
from wukong.embedded.scenario.play.player import Lines, Observers, Spectator, WorldPlayer, record
from wukong.embedded.scenario.play.steps import MANAGER, Drains
from wukong.embedded.scenario.record.recording import StoryTrace
from wukong.embedded.scenario.record.story import SettlingReport
from wukong.embedded.snapshot.load import LoadedSnapshot, load_snapshot
from wukong.embedded.snapshot.presumed_fields import presume_fields
from wukong.embedded.world.world import Step
from wukong.ports import Document


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


def make_baseline(start: LoadedSnapshot, scenario: Scenario) -> Baseline:
    """With the components that this scenario needs, or that the snapshot's policies do."""
    return Baseline(start, choose_components(scenario, list_documents(start)), read_component_options(scenario))


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
    ) -> None:
        """`options` are those of the components, by their names."""
        with pause_garbage_collector():
            self._come_to_rest(start, Settings(0, tuple(components), options=options or {}))

    def _come_to_rest(self, start: LoadedSnapshot, settings: Settings) -> None:
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
            self._recording.recorder.finish()
        self._recording.begin()
        world.prepare_fork()
        self.before = SettlingReport(
            changes=changes,
            settled=story.settled,
            stuck=story.stuck,
            writes=story.writes,
            virtual_seconds=story.virtual_seconds,
            timeline=story.events,
        )

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
    ) -> Story:
        """The scenario's nodes and manifests come to what is there. The next play finds nothing of it."""
        cluster, observers = self.fork(seed, lines)
        world = cluster.world
        presume_fields(world.server, scenario.documents, MANAGER)
        player = WorldPlayer(world, scenario, cluster.drains, lines=lines, observers=observers)
        if spectator is not None:
            spectator.begin(player)
        story = player.play()
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
    return not (isinstance(action, Create) and action.resource == CONTROLLER_REVISIONS)


def list_documents(start: LoadedSnapshot) -> Iterable[Document]:
    return (document for _, documents in start.objects for document in documents)
