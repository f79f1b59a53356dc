"""What happens when a change meets a cluster: its snapshot is loaded, comes to rest, and the change is played on it.

Called by `wukong sim run -s`. The twin of `play_scenario`, which begins with an empty cluster.
"""

from __future__ import annotations

from collections.abc import Iterable

from wukong.actions import Action, Create, Note, Patch
from wukong.api.kinds import CONTROLLER_REVISIONS, PODS
from wukong.app.embedded import Settings, build_world, choose_components
from wukong.embedded.scenario import Scenario, Story, play
from wukong.embedded.scenario.play.player import Lines, Spectator
from wukong.embedded.scenario.play.steps import Drains
from wukong.embedded.scenario.record.story import SettlingReport
from wukong.embedded.snapshot.load import LoadedSnapshot, load_snapshot
from wukong.embedded.world.world import Step
from wukong.ports import Document


def load(documents: Iterable[Document], now: float | None = None) -> LoadedSnapshot:
    """Made fit to be played on; its `notes` say what had to be taken for granted."""
    return load_snapshot(documents, now)


def play_on(
    start: LoadedSnapshot,
    scenario: Scenario,
    seed: int = 0,
    spectator: Spectator | None = None,
    lines: Lines | None = None,
) -> Story:
    """The scenario's nodes and manifests come to what is there. The story begins when the snapshot is at rest.

    `before` says what happened until then: a snapshot may show a cluster in the middle of something.
    """
    components = choose_components(scenario, _all(start))
    drains = Drains()
    world = build_world(Settings(seed, components), drains, start, scenario.documents)
    changes = 0

    def count(step: Step) -> None:
        nonlocal changes
        changes += not step.error and is_change(step.action)

    with world.trace.notify(count):
        first = play(world, Scenario(), drains, lines=lambda _: None)
    story = play(world, scenario, drains, spectator, lines=lines)
    story.before = SettlingReport(
        changes=changes,
        settled=first.settled,
        stuck=first.stuck,
        writes=first.writes,
        virtual_seconds=first.virtual_seconds,
        timeline=first.events,
    )
    return story


def is_change(action: Action) -> bool:
    """Whether an action changes pods, or what is wanted; not what is merely said of it."""
    match action:
        case Note():
            return False
        case Patch(resource, _, patch, _):
            return resource == PODS or not isinstance(patch.body, dict) or "spec" in patch.body
    return not (isinstance(action, Create) and action.resource == CONTROLLER_REVISIONS)


def _all(start: LoadedSnapshot) -> Iterable[Document]:
    return (document for _, documents in start.objects for document in documents)
