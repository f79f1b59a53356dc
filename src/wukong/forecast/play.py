"""Plays a change once on a fork of a cluster at rest, and says what happened. Called by plan.py, in many processes.

The story is that of `wukong sim run`; what a plan needs besides is heard by listeners of the fork (course.py,
touched.py), and read from the world when the play is over (blocked_pods.py). The same seed gives the same play.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from wukong.api.core import Node
from wukong.api.kinds import DAEMON_SETS, DEPLOYMENTS, NODES, PODS, STATEFUL_SETS, VIRTUAL_MACHINES, group_kind_of
from wukong.api.meta import Object, controller_of
from wukong.app.snapshots import Baseline
from wukong.embedded.actors.daemon_set import strategy as daemon_strategy
from wukong.embedded.actors.deployment.sizes import resolve_limits
from wukong.embedded.scenario import Story
from wukong.embedded.scenario.format.fields import document_resource
from wukong.embedded.scenario.play import steps
from wukong.embedded.scenario.play.player import WorldPlayer
from wukong.embedded.scenario.record import workload_status
from wukong.embedded.scenario.record.story import WorkloadSummary
from wukong.embedded.world.objects import DaemonSet, Deployment, Pod, StatefulSet
from wukong.errors import NoProgress
from wukong.forecast.blocked_pods import count_needed_nodes, list_blocked
from wukong.forecast.course import Courses, Place
from wukong.forecast.fields import CoursePoint, NodeForecast, Play, Problem, Touched, WorkloadForecast
from wukong.forecast.planned_change import PlannedChange
from wukong.forecast.touched import TouchedObjects
from wukong.forecast.verdict import Limits, judge_play
from wukong.state import Change, State

_REFUSED = "eviction refused: "


class PlayOptions(msgspec.Struct, frozen=True):
    """How a change is played. `until` bounds what never comes to rest, in virtual time."""

    until: str = "4h"
    limits: Limits = msgspec.field(default_factory=Limits)


def play_change(baseline: Baseline, change: PlannedChange, options: PlayOptions, seed: int) -> Play:
    """What happens with this seed. The baseline stays as it is."""
    observer = _Observer(list_places(change))
    try:
        story = baseline.play(change.scenario(options.until), seed, observer, _leave_out)
    except NoProgress as error:
        problem = Problem(kind="never-ends", subject="", text=str(error))
        return Play(seed=seed, kind="never-ends", seconds=0.0, problems=[problem])
    return observer.sum_up(story, change, options, seed)


def tell_story(baseline: Baseline, change: PlannedChange, options: PlayOptions, seed: int) -> Story:
    """The same play as a story, with every event."""
    return baseline.play(change.scenario(options.until), seed, lines=_leave_out)


def list_places(change: PlannedChange) -> set[Place]:
    """The objects that the change names, by group kind and key."""
    documents = {(document_resource(document).group_kind, steps.key_of(document)) for document in change.documents}
    targets = (target for step in change.steps for target in (step.patch, step.scale, step.delete))
    return documents | {
        (target.resource.group_kind, steps.target_key(target)) for target in targets if target is not None
    }


def _leave_out(_: str) -> None:
    """No line of a trace is kept."""


class _Observer:
    """Looks on while the change is played. One of `play_change`'s alone."""

    def __init__(self, places: set[Place]) -> None:
        self._places = places
        self._incomplete: set[Place] = set()
        self._completed_at: dict[Place, float] = {}  # when it last was so again
        self._first_completed_at: dict[Place, float] = {}
        self._nodes_left: dict[str, None] = {}  # on which fewer pods run than before

    def begin(self, player: WorldPlayer) -> None:
        self._world, self._recorder = player.world, player.recorder
        self._courses = Courses(player.world, player.recorder, self._places)
        self._touched = TouchedObjects(player.world, player.recorder)
        self._nodes_before = frozenset(key.name for key in player.world.state.of(Node))
        player.world.listen(self._hear)

    def _hear(self, change: Change) -> None:
        if change.group_kind == PODS.group_kind:
            if change.new is None and isinstance(change.old, Pod) and change.old.spec.node_name:
                self._nodes_left[change.old.spec.node_name] = None
        elif change.new is not None and workload_status.is_top_level(change.new):
            place = change.group_kind, change.key
            if not workload_status.count_replicas(change.new).is_complete:
                self._incomplete.add(place)
            elif place in self._incomplete:
                self._incomplete.discard(place)
                now = self._recorder.seconds_since_start()
                self._completed_at[place] = now
                self._first_completed_at.setdefault(place, now)

    def sum_up(self, story: Story, change: PlannedChange, options: PlayOptions, seed: int) -> Play:
        state = self._world.state
        own = frozenset(self._name_places())
        stuck = {line.partition(": ")[0] for line in story.stuck}
        blocked = list_blocked(state, self._recorder, stuck)
        nodes = self._sum_up_nodes(story, change)
        if blocked:
            nodes.needed = count_needed_nodes(state, self._recorder, {pod.workload for pod in blocked}, own)
        workloads = dict(self._sum_up_workloads(story, own & stuck))
        play = Play(
            seed=seed,
            kind="completes",
            seconds=self._count_seconds(story),
            workloads=workloads,
            touched=self._sum_up_touched(story, own),
            nodes=nodes,
            blocked=blocked,
            stuck=story.stuck,
            stuck_before=story.stuck_before,
            findings=story.findings,
        )
        moves_nodes = any(step.drain or step.kill for step in change.steps)
        is_at_rest = story.at_rest or story.before is None or not story.before.at_rest
        judge_play(play, own, options.limits, is_at_rest=is_at_rest, moves_nodes=moves_nodes)
        return play

    def _name_places(self) -> Iterator[str]:
        """What the change is about and is there in the end: workloads, and pods of nobody."""
        for group_kind, key in sorted(self._places):
            if group_kind == PODS.group_kind:
                yield f"pod {key}"
            workload = self._world.state.objects.get(group_kind, {}).get(key)
            if workload is not None and workload_status.is_top_level(workload):
                yield self._recorder.name_of(workload)

    def _count_seconds(self, story: Story) -> float:
        """Until what the change is about was as it should be for the first time: what comes later, such as nodes that
        are no longer needed, is no part of it. A change that is about no workload takes until all are well again."""
        if story.stuck:
            return story.virtual_seconds
        own = [at for place, at in self._first_completed_at.items() if place in self._places]
        if own:
            return round(max(own), 1)
        disrupted = self._touched.list_disrupted()
        return round(max([0.0, *self._completed_at.values(), *(pod.at for pod in disrupted)]), 1)

    # ---- parts of the play

    def _sum_up_workloads(self, story: Story, stuck: frozenset[str]) -> Iterator[tuple[str, WorkloadForecast]]:
        """Those that something happened to. Of those that are stuck, that nothing happens is the news."""
        courses, subjects = self._courses.finish(), {event.subject for event in story.events} | stuck
        completed = {self._name_of(place): at for place, at in self._first_completed_at.items()}
        incomplete = {self._name_of(place) for place in self._incomplete}
        for name in sorted(subjects & story.workloads.keys()):
            workload = self._recorder.find_named(name)
            if workload is not None:
                forecast = _forecast_workload(story.workloads[name], workload, courses.get(name, []))
                forecast.availability = story.availability.get(name, [])
                forecast.completed_at = None if name in incomplete else completed.get(name, 0.0)
                yield name, forecast

    def _name_of(self, place: Place) -> str:
        workload = self._world.state.objects.get(place[0], {}).get(place[1])
        return self._recorder.name_of(workload) if workload is not None else ""

    def _sum_up_touched(self, story: Story, own: frozenset[str]) -> Touched:
        starved = [
            name
            for name, summary in story.workloads.items()
            if name not in own and summary.is_short_of_before and summary.before is not msgspec.UNSET
        ]
        refused = [f"{event.subject}: {event.text}" for event in story.events if event.text.startswith(_REFUSED)]
        return Touched(
            disrupted=self._touched.list_disrupted(),
            starved=starved,
            budgets=self._touched.list_budgets(),
            refused_evictions=refused,
        )

    def _sum_up_nodes(self, story: Story, change: PlannedChange) -> NodeForecast:
        state = self._world.state
        present = {key.name for key in state.of(Node)}
        drained = {name for name in change.removed_nodes if name in present and is_free(name, state)}
        after = present - drained
        freed = [name for name in self._nodes_left if name in after and is_free(name, state)]
        return NodeForecast(
            before=len(self._nodes_before),
            most=max(story.nodes.max, len(self._nodes_before)),
            after=len(after),
            added=sorted(after - self._nodes_before),
            added_labels={
                node.metadata.name: dict(node.metadata.labels)
                for node in state.all(Node)
                if node.metadata.name in after - self._nodes_before
            },
            removed=sorted(self._nodes_before - after),
            freed=sorted(freed),
        )


def is_free(node: str, state: State) -> bool:
    """Whether a node has no pods but those that every node has: of DaemonSets, and its own static ones."""
    return all(_comes_with_node(pod) or pod.is_finished for pod in state.pods_on(node))


def _comes_with_node(pod: Object) -> bool:
    owner = controller_of(pod.metadata)
    return owner is not None and owner.kind in (DAEMON_SETS.kind, NODES.kind)


def _forecast_workload(summary: WorkloadSummary, workload: Object, course: list[CoursePoint]) -> WorkloadForecast:
    before = None if summary.before is msgspec.UNSET else summary.before
    return WorkloadForecast(
        kind=summary.kind,
        key=workload.key,
        replicas=summary.replicas,
        replicas_before=before.replicas if before is not None else None,
        available=summary.available,
        available_before=before.available if before is not None else None,
        up_to_date=summary.up_to_date,
        min_available=summary.min_available,
        unavailable_limit=find_unavailable_limit(workload, summary.replicas),
        unavailable_seconds=summary.unavailable_seconds,
        evicted=summary.restarts,
        course=course,
    )


def find_unavailable_limit(workload: Object, wanted: int) -> int | None:
    """How many of so many pods the strategy of a workload lets be unavailable; None if it promises nothing."""
    if isinstance(workload, Deployment) and group_kind_of(workload) == DEPLOYMENTS.group_kind:
        strategy = workload.spec.strategy
        if strategy is not None and strategy.type == "Recreate":
            return None
        rolling = strategy.rolling_update if strategy is not None else None
        if rolling is None:
            return resolve_limits(wanted, "25%", "25%").unavailable
        return resolve_limits(wanted, rolling.max_surge, rolling.max_unavailable).unavailable
    if isinstance(workload, DaemonSet) and group_kind_of(workload) == DAEMON_SETS.group_kind:
        is_rolling = daemon_strategy.is_rolling(workload)
        return daemon_strategy.limits_of(workload, wanted).unavailable if is_rolling else None
    if isinstance(workload, StatefulSet) and group_kind_of(workload) == STATEFUL_SETS.group_kind:
        strategy = workload.spec.update_strategy
        return None if strategy is not None and strategy.type == "OnDelete" else 1  # one pod after the other
    return 0 if group_kind_of(workload) == VIRTUAL_MACHINES.group_kind else None
