"""A world whose controllers take milliseconds: what interleaves, what is drawn, and what stays as it was."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest

from wukong.actions import DONE, Create, Outcome, Patch
from wukong.api.core import Node, Pod
from wukong.api.kinds import DEPLOYMENTS, NODES, PODS
from wukong.api.resources import Key
from wukong.app.embedded import Settings, build_world
from wukong.embedded.actors.pods import is_ready
from wukong.embedded.checkers import Checkers
from wukong.embedded.scenario.format.fields import NodeEntry
from wukong.embedded.scenario.play import steps
from wukong.embedded.store import Server
from wukong.embedded.world.clock import VirtualClock
from wukong.embedded.world.recent_changes import RecentChanges
from wukong.embedded.world.timing import Timing
from wukong.embedded.world.transport import perform
from wukong.embedded.world.world import World
from wukong.errors import NoProgress
from wukong.ports import Document, PatchBody
from wukong.state import Change, State
from wukong.state.controller import Watch

pytestmark = pytest.mark.slow


def a_deployment(name: str, replicas: int) -> Document:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "x:1"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def a_cluster(*deployments: Document, seed: int = 0, takes_time: bool = True) -> World:
    world = build_world(Settings(seed, takes_time=takes_time), steps.Drains())
    actions = steps.create_nodes([NodeEntry(name_prefix="n", count=3)])
    for action in (*actions, *steps.apply_documents(deployments, frozenset({"default"}))):
        perform(world.server, action)
    return world


def is_running(replicas: int) -> Callable[[State], bool]:
    return lambda state: sum(pod.status.phase == "Running" for pod in state.all(Pod)) == replicas


def creations_of(world: World) -> list[str]:
    """The ReplicaSets in the order in which they created pods."""
    steps_of_sets = [step for step in world.trace if isinstance(step.action, Create) and step.action.resource == PODS]
    return [step.item.key.name for step in steps_of_sets]


@pytest.mark.slow
def test_pods_of_two_workloads_are_created_in_turns() -> None:
    turns = []
    for seed in range(10):
        world = a_cluster(a_deployment("one", 15), a_deployment("two", 15), seed=seed)
        world.run(is_running(30))
        names = creations_of(world)
        turns.append(sum(before != after for before, after in pairwise(names)))
    assert max(turns) > 2  # not one after the other
    at_once = a_cluster(a_deployment("one", 15), a_deployment("two", 15), takes_time=False)
    at_once.run(is_running(30))
    assert len(creations_of(at_once)) == 30


@pytest.mark.slow
def test_which_of_two_workloads_is_first_is_drawn() -> None:
    first = set()
    for seed in range(20):
        world = a_cluster(a_deployment("one", 1), a_deployment("two", 1), seed=seed)
        world.run(is_running(2))
        first.add(creations_of(world)[0].rpartition("-")[0])
    assert first == {"one", "two"}


def test_creations_of_one_set_follow_each_other_in_batches_that_double() -> None:
    world = a_cluster(a_deployment("web", 20))
    world.run(is_running(20))
    moments = [step.at for step in world.trace if isinstance(step.action, Create) and step.action.resource == PODS]
    assert [moments.count(moment) for moment in sorted(set(moments))] == [1, 2, 4, 8, 5]


def test_nothing_is_written_in_no_time_and_all_moments_are_whole_milliseconds() -> None:
    world = a_cluster(a_deployment("web", 5))
    start = world.clock.now()
    world.run(is_running(5))
    assert all(step.at > start for step in world.trace)
    milliseconds = [(step.at - start) * 1000 for step in world.trace]
    assert all(abs(moment - round(moment)) < 0.01 for moment in milliseconds)


def test_without_timing_everything_but_the_kubelets_takes_no_time() -> None:
    world = a_cluster(a_deployment("web", 5), takes_time=False)
    start = world.clock.now()
    world.run(is_running(5))
    assert {step.at for step in world.trace if step.item.controller != "kubelet"} == {start}


def test_what_is_prepared_at_once_moves_no_clock() -> None:
    world = a_cluster()
    start = world.clock.now()
    with world.at_once():
        for action in steps.apply_documents([a_deployment("web", 2)], frozenset({"default"})):
            perform(world.server, action)
        world.run(deadline=start)
    assert len(creations_of(world)) == 2
    assert {step.at for step in world.trace if step.item.controller == "replicaset"} == {start}


@pytest.mark.parametrize("seed", range(20))
def test_a_set_that_is_scaled_while_it_creates_goes_on_and_nobody_calls_that_wrong(seed: int) -> None:
    world = a_cluster(a_deployment("web", 60), seed=seed)
    checkers = Checkers(world)
    world.run(lambda state: len(state.of(Pod)) >= 7)
    world.server.patch(DEPLOYMENTS, Key("default", "web"), PatchBody("merge", {"spec": {"replicas": 2}}))
    world.run(seconds=60)
    assert len(world.state.of(Pod)) == 2
    assert checkers.finish(is_at_rest=True) == []


@pytest.mark.parametrize("seed", range(8))
def test_an_update_keeps_to_its_limits_whoever_is_faster(seed: int) -> None:
    world = a_cluster(a_deployment("web", 40), seed=seed)
    world.run(is_running(40))
    world.run(seconds=1)
    available: list[int] = []

    def observe(change: Change) -> None:
        ready = [pod for pod in world.state.all(Pod) if is_ready(pod) and not pod.is_terminating]
        available.append(len(ready))

    world.listen(observe)
    containers = [{"name": "main", "image": "x:2"}]
    body = {"spec": {"template": {"spec": {"containers": containers}}}}
    world.server.patch(DEPLOYMENTS, Key("default", "web"), PatchBody("strategic", body))
    world.run(seconds=60)
    assert min(available) == 30  # a quarter may be unavailable
    assert available[-1] == 40


def test_the_state_at_a_decision_is_found_by_undoing_what_changed_since() -> None:
    world = a_cluster(a_deployment("web", 3), takes_time=False)
    recent_changes, counts = RecentChanges(), list[tuple[int, int, int]]()

    def observe(change: Change) -> None:
        recent_changes.add(change)
        pods = world.state.all(Pod)
        counts.append((recent_changes.count, len(pods), sum(bool(pod.spec.node_name) for pod in pods)))

    world.listen(observe)
    world.run(is_running(3))
    assert len(counts) > 10
    for count, number, bound in counts:
        past = recent_changes.restore(world.state, count).all(Pod)
        assert (len(past), sum(bool(pod.spec.node_name) for pod in past)) == (number, bound)
    assert recent_changes.restore(world.state, recent_changes.count) is world.state


class Painter:
    """Wants every node in its colour."""

    watches = (Watch(NODES),)

    def __init__(self, colour: str) -> None:
        self.name = self.colour = colour

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        node = state.get(Node, key)
        if node is None or node.metadata.labels.get("colour") == self.colour:
            return DONE
        body = PatchBody("merge", {"metadata": {"labels": {"colour": self.colour}}})
        return Outcome((Patch(NODES, key, body),))


@pytest.mark.slow
def test_a_quarrel_that_takes_time_is_noticed_too() -> None:
    clock = VirtualClock()
    server = Server(clock, definitions=[])
    server.create(NODES, {"metadata": {"name": "n1"}})
    world = World([Painter("red"), Painter("blue")], server=server, clock=clock, timing=Timing(0))
    with pytest.raises(NoProgress, match=r"undo each other's work.* In \d+ s were looked at: .*n1 \d+ times"):
        world.run(seconds=7200.0)
