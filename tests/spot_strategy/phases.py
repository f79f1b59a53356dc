"""examples/sim/spot-strategy.yaml in phases, and the embedded cluster at the end of each: a real one must equal it."""

from __future__ import annotations

from pathlib import Path

from spot_strategy.judge import Judge, Layout, SeenPod
from wukong.api.core import Pod
from wukong.app.embedded import Settings, build_world, choose_components, read_component_options
from wukong.cli.inputs.sim_source import read_scenario_file
from wukong.embedded.scenario import Scenario
from wukong.embedded.scenario.format.fields import TimelineEntry
from wukong.embedded.scenario.play import steps
from wukong.embedded.world.transport import perform
from wukong.placement.pods import read_mark
from wukong.state import Change

FOLDER = Path(__file__).parents[2] / "examples" / "sim"
QUIET_SECONDS = 60  # a phase ends with a minute in which the timeline has nothing; by then all is at rest
LAST_SECONDS = 300
NAMESPACES = frozenset({"default"})


def read_strategy() -> Scenario:
    return read_scenario_file(str(FOLDER / "spot-strategy.yaml"))


def divide_timeline(scenario: Scenario) -> list[list[TimelineEntry]]:
    phases: list[list[TimelineEntry]] = []
    for entry in sorted(scenario.timeline, key=lambda entry: entry.seconds):
        if not phases or entry.seconds - phases[-1][-1].seconds >= QUIET_SECONDS:
            phases.append([])
        phases[-1].append(entry)
    return phases


def find_fewest_ready(phase: list[TimelineEntry], replicas: int) -> int:
    """What the budget of web promises in this phase, before which it had so many pods: it lets one go at a time."""
    return replicas - 1 if any(entry.drain for entry in phase) else 0


def count_web(layout: Layout) -> int:
    return sum(layout.get("web", ()))


def play_phases(scenario: Scenario, judge: Judge, seed: int = 0) -> list[Layout]:
    """The embedded cluster at the end of each phase; the judge hears of every change."""
    drains = steps.Drains()
    world = build_world(Settings(seed, choose_components(scenario), options=read_component_options(scenario)), drains)
    world.listen(lambda change: _tell(judge, change))
    for action in [
        *steps.create_nodes(scenario.nodes),
        *steps.apply_documents(scenario.manifests, NAMESPACES),
    ]:
        perform(world.server, action)
    start, layouts = world.clock.now(), list[Layout]()
    phases = divide_timeline(scenario)
    ends = [*(phase[0].seconds for phase in phases[1:]), phases[-1][-1].seconds + LAST_SECONDS]
    for phase, end in zip(phases, ends, strict=True):
        judge.fewest_ready = find_fewest_ready(phase, count_web(layouts[-1]) if layouts else 0)
        for entry in phase:
            world.run(deadline=start + entry.seconds)
            for action in steps.build_actions(entry, NAMESPACES):
                perform(world.server, action)
            drains.nodes |= {entry.drain} if isinstance(entry.drain, str) else set()
        world.run(deadline=start + end)
        assert judge.is_at_rest, phase
        layouts.append(judge.layout())
    return layouts


def _tell(judge: Judge, change: Change) -> None:
    if isinstance(change.new, Pod):
        judge.note(_read_pod(change.new))
    elif isinstance(change.old, Pod):
        judge.forget(change.old.metadata.uid)


def _read_pod(pod: Pod) -> SeenPod:
    mark = read_mark(pod.metadata.annotations)
    return SeenPod(
        pod.metadata.uid,
        pod.metadata.labels["app"],
        pod.spec.node_name,
        mark.capacity if mark is not None else "",
        pod.is_terminating or pod.is_finished,
        any(condition.type == "Ready" and condition.status == "True" for condition in pod.status.conditions),
    )
