"""A fork of a world does what the world itself would have done, and neither sees what happens to the other."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import deque
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embedded.test_snapshot_load import list_everything, play_document, scenarios, with_image, workload
from wukong.api.resources import Key, key_of
from wukong.app.component_choice import EMBEDDED_COMPONENTS
from wukong.app.embedded import EmbeddedCluster, Settings, build_cluster, choose_components
from wukong.app.snapshots import Baseline, load, play_on
from wukong.embedded.actors import make_actors
from wukong.embedded.checkers import Checkers
from wukong.embedded.checkers.placed_requests import PlacedRequests
from wukong.embedded.scenario import Scenario, read_scenario
from wukong.embedded.scenario.play import steps
from wukong.embedded.scenario.play.player import trace_line
from wukong.embedded.scenario.record import workload_status
from wukong.embedded.scenario.record.recording import Recording, StoryTrace
from wukong.embedded.store import Server
from wukong.embedded.world.clock import Chance, VirtualClock
from wukong.embedded.world.process import Process
from wukong.embedded.world.transport import perform
from wukong.embedded.world.world import Step
from wukong.engine.copy_on_write import CopyOnWriteEntries
from wukong.engine.layered_dict import LayeredDict
from wukong.errors import ClusterError
from wukong.ports import Document
from wukong.runtime.dispatch import Item

ROOT = Path(__file__).parents[2]


class Play:
    """A world with all who observe it, driven second by second."""

    def __init__(self, cluster: EmbeddedCluster, recording: Recording, checkers: Checkers, digest: Any) -> None:
        self.cluster, self.recording, self.checkers, self.digest = cluster, recording, checkers, digest
        self.world = cluster.world
        self.started_at = recording.recorder.started_at
        self.listening = self.world.trace.notify(self._hear)
        self.listening.__enter__()

    def _hear(self, step: Step) -> None:
        self.digest.update(trace_line(step, self.started_at).encode())

    def fork(self) -> Play:
        cluster = self.cluster.fork()
        recording = self.recording.fork(cluster.world, StoryTrace())
        return Play(cluster, recording, self.checkers.fork(cluster.world), self.digest.copy())

    def begin(self, scenario: Scenario) -> None:
        self.perform(steps.create_nodes(scenario.nodes))
        for document in scenario.manifests:
            self.perform(steps.apply_documents([document], frozenset({"default"})))

    def go_on(self, scenario: Scenario, since: float, until: float) -> None:
        """What the timeline has for this time."""
        for entry in sorted(scenario.timeline, key=lambda entry: entry.seconds):
            if since <= entry.seconds < until:
                self.world.run(deadline=self.started_at + entry.seconds)
                self.perform(steps.build_actions(entry, frozenset({"default"})))
                if isinstance(entry.drain, str):
                    self.drain(entry.drain)
                if isinstance(entry.uncordon, str):
                    self.cluster.drains.nodes.discard(entry.uncordon)
        self.world.run(deadline=self.started_at + until)

    def drain(self, node: str) -> None:
        """As course.begin_drain does: who is on the node already is evicted, too."""
        self.cluster.drains.nodes.add(node)
        for key in sorted(self.world.state.pods.on_node(node)):
            self.world.enqueue(Item(self.cluster.drains.name, key))

    def perform(self, actions: list[Any]) -> None:
        for action in actions:
            try:
                perform(self.world.server, action)
            except ClusterError as error:
                self.digest.update(str(error).encode())

    def end(self) -> tuple[str, Document, list[str]]:
        """Digest, story and findings."""
        recorder = self.recording.recorder
        assert {key for _, key in recorder._incomplete} == {
            key_of(workload)
            for workload in workload_status.top_level_workloads(self.world.state)
            if not workload_status.count_replicas(workload).is_complete
        }
        writes = self.world.server.database.version
        story = self.recording.tell_story(is_at_rest=True, last_change=recorder.last_change, writes=writes)
        findings = [str(finding) for finding in self.checkers.finish(is_at_rest=False)]
        return self.digest.hexdigest(), {**story.document(), "digest": ""}, findings


def a_play(scenario: Scenario, seed: int) -> Play:
    cluster = build_cluster(Settings(seed, choose_components(scenario)), steps.Drains())
    play = Play(cluster, Recording(cluster.world, StoryTrace()), Checkers(cluster.world), sha256())
    play.begin(scenario)
    return play


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(scenarios(), st.integers(0, 50), st.lists(st.floats(0.01, 200), min_size=2, max_size=2).map(sorted))
def test_a_played_fork_and_a_fork_of_it_end_like_a_world_played_from_the_start(
    document: Document, seed: int, times: list[float]
) -> None:
    scenario, end = read_scenario(msgspec.json.encode(document)), 600.0
    whole = a_play(scenario, seed)
    whole.go_on(scenario, 0, end)
    parent = a_play(scenario, seed)
    parent.go_on(scenario, 0, times[0])
    child = parent.fork()
    child.go_on(scenario, times[0], times[1])
    grandchild = child.fork()
    for play, since in ((grandchild, times[1]), (parent, times[0]), (child, times[1])):
        play.go_on(scenario, since, end)  # one after another: none may disturb those that follow
        assert play.end() == whole_end(whole)


def whole_end(play: Play) -> tuple[str, Document, list[str]]:
    return play.fork().end()  # of a fork, for a story is told only once


EXAMPLES = sorted(
    path
    for path in (ROOT / "examples" / "sim").glob("*.yaml")
    if "fault:" not in path.read_text(encoding="utf-8") and "files:" not in path.read_text(encoding="utf-8")
)


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_goes_on_alike_on_a_fork(path: Path) -> None:
    scenario = read_scenario(path.read_bytes())
    moments = [entry.seconds for entry in scenario.timeline] or [0]
    cut, end = Random(str(path.stem)).uniform(0.05, max(moments) + 20), max(moments) + 400.0
    whole = a_play(scenario, 3)
    whole.go_on(scenario, 0, end)
    parent = a_play(scenario, 3)
    parent.go_on(scenario, 0, cut)
    fork = parent.fork()
    assert list_differences(parent, fork) == []
    fork.go_on(scenario, cut, end)
    assert fork.end() == whole.end()


# What a fork does not take over: who listens, where things are looked up, what is worked out again when it is needed.
NOT_COPIED = frozenset({
    "_listeners", "_decision_listeners", "_followers", "_followers_of", "_observers",
    "_observers_of", "_reader", "_snapshot", "_choosers", "_live",
    "watches", "_watches", "_watchers", "_primary_watchers", "hearing_time", "role", "transport", "metrics", "trace",
    "findings", "_findings", "plans", "matcher",
})  # fmt: skip
PARTS = ("wukong.embedded", "wukong.runtime", "wukong.controllers", "wukong.state", "wukong.app", "wukong.replies")


def list_differences(parent: Play, fork: Play) -> list[str]:
    """Where the data of two plays differ, or are one object that both would change; walks all they are made of."""
    differences: list[str] = []
    seen: set[int] = set()

    def walk(left: object, right: object, place: str) -> None:
        if id(left) in seen or callable(left) or len(differences) > 5:
            return
        if isinstance(left, dict | LayeredDict | set | list | deque) or _has_parts(left):
            seen.add(id(left))
            if left is right and not _is_frozen(left):
                differences.append(f"{place}: shared")
                return
        if isinstance(left, dict | LayeredDict) and isinstance(right, dict | LayeredDict):
            if len(left) != len(right):
                differences.append(f"{place}: {len(left)} entries and {len(right)}")
            for (name, value), (other_name, other) in zip(left.items(), right.items(), strict=False):
                if isinstance(name, str | Key | tuple | int) and not _has_process(name) and name != other_name:
                    differences.append(f"{place}: {name} and {other_name}")
                if not (value is other and isinstance(left, CopyOnWriteEntries)):
                    walk(value, other, f"{place}[{name}]")
        elif isinstance(left, list | tuple | deque) and isinstance(right, list | tuple | deque):
            if len(left) != len(right):
                differences.append(f"{place}: {len(left)} and {len(right)}")
            for index, (value, other) in enumerate(zip(left, right, strict=False)):
                walk(value, other, f"{place}[{index}]")
        elif _has_parts(left):
            names = vars(left).keys() - NOT_COPIED
            differences.extend(f"{place}.{name}: missing" for name in names - vars(right).keys())
            for name in sorted(names & vars(right).keys()):
                walk(vars(left)[name], vars(right)[name], f"{place}.{name}")
        elif left is not right and left != right:
            differences.append(f"{place}: {left!r:.80} and {right!r:.80}")

    for name in ("cluster", "recording", "checkers"):
        walk(getattr(parent, name), getattr(fork, name), name)
    return differences


def _has_parts(value: object) -> bool:
    return (
        hasattr(value, "__dict__")
        and type(value).__module__.startswith(PARTS)
        and not isinstance(value, type | msgspec.Struct)
    )


def _has_process(name: object) -> bool:
    return isinstance(name, tuple) and any(isinstance(part, Process) for part in name)


def _is_frozen(value: object) -> bool:
    """Shared on purpose: never changed in place, or what it remembers depends on nothing but the question."""
    return isinstance(value, Chance | PlacedRequests) or _is_document(value)


def _is_document(value: object) -> bool:
    return isinstance(value, dict | list)  # of copy-on-write dicts and of documents; the plays that follow tell


def a_baseline() -> Baseline:
    web = workload("Deployment", "web", 6)
    world, _ = play_document({"nodes": [{"namePrefix": "n", "count": 5}], "manifests": [web]}, 0)
    start = load(list_everything(world), world.clock.now())
    return Baseline(start, choose_components(Scenario()))


def an_image_change(image: str = "web:2") -> Scenario:
    return Scenario(manifests=[with_image(workload("Deployment", "web", 6), image)])


def test_a_baseline_is_as_it_was_after_each_play() -> None:
    baseline = a_baseline()
    first = baseline.play(an_image_change(), 5)
    other = baseline.play(an_image_change("web:3"), 6)
    again = baseline.play(an_image_change(), 5)
    assert first.settled
    assert (first.digest, first.document()) == (again.digest, again.document())
    assert other.digest != first.digest


def test_a_play_records_anew_only_the_workloads_that_something_happens_to() -> None:
    manifests = [workload("Deployment", name, 6) for name in ("web", "still")]
    world, _ = play_document({"nodes": [{"namePrefix": "n", "count": 5}], "manifests": manifests}, 0)
    baseline = Baseline(load(list_everything(world), world.clock.now()), choose_components(Scenario()))
    recorded = dict(baseline._recording.recorder.workloads)
    story = baseline.play(an_image_change())
    assert story.workloads["default/still"] is recorded["default/still"]
    assert story.workloads["default/web"].max_pods > recorded["default/web"].max_pods == 6


def test_a_play_on_a_baseline_is_that_of_a_snapshot_loaded_for_it_alone() -> None:
    web = workload("Deployment", "web", 6)
    world, _ = play_document({"nodes": [{"namePrefix": "n", "count": 5}], "manifests": [web]}, 0)
    documents = list_everything(world)
    alone = play_on(load(documents, world.clock.now()), an_image_change(), 9)
    baseline = a_baseline()
    baseline.play(an_image_change("web:7"), 1)
    assert baseline.play(an_image_change(), 9).document() == alone.document()


def test_another_seed_draws_other_names_after_a_fork_and_none_twice() -> None:
    baseline = a_baseline()
    stories = [baseline.play(an_image_change(), seed) for seed in range(4)]
    assert len({story.digest for story in stories}) == 4
    assert all(story.settled and not story.findings for story in stories)


@pytest.mark.slow
def test_a_fork_is_the_same_in_another_process_with_another_hash_seed() -> None:
    code = "from embedded import test_fork as it; print(it.a_baseline().play(it.an_image_change(), 5).digest)"
    paths = os.pathsep.join(str(ROOT / folder) for folder in ("src", "tests", ""))
    digests = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": paths},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert digests == {a_baseline().play(an_image_change(), 5).digest}


def test_every_controller_that_remembers_something_can_hand_it_to_a_fork() -> None:
    """One with something of its own that may change has a `copy_memory`."""
    cluster = build_cluster(Settings(0, tuple(EMBEDDED_COMPONENTS.values())), steps.Drains())
    controllers = [*cluster.world.dispatch.controllers.values(), *make_actors(Server(VirtualClock()))]
    forgetful = [
        f"{controller.name}.{name}"
        for controller in controllers
        for name, value in vars(controller).items()
        if name.startswith("_") and not hasattr(controller, "copy_memory") and _may_change(value)
    ]
    assert forgetful == []


def _may_change(value: object) -> bool:
    return isinstance(value, dict | set | list) or hasattr(value, "copy_memory")
