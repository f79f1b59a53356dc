"""The scheduler controller with our extender's replies plugged in: policies hold, and what they have to say is told."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from builders import a_node, a_pod
from policies import a_cluster_policy, a_policy
from scheduler_world import OURS, World
from wukong.actions import Note
from wukong.api.core import Pod
from wukong.api.kinds import CLUSTER_PLACEMENT_POLICIES, PLACEMENT_POLICIES
from wukong.controllers.scheduler.choice import Extension
from wukong.controllers.scheduler.controller import Scheduler
from wukong.engine import Scheduler as Engine
from wukong.engine.arrays import Ints
from wukong.engine.view import View
from wukong.replies.extender.plugin import DEFAULT_ENTRY, PointFinder, add_extender
from wukong.replies.extender.verbs import Extender, Settings

SPOT = {"node.kubernetes.io/capacity": "spot"}
STEADY = {"node.kubernetes.io/capacity": "on-demand"}


def extended(*, finds_points: bool = True) -> World:
    """With `finds_points` as it is built in a process; else every decision is made by a profile with the extender."""
    finders: list[PointFinder] = []

    def extend(engine: Engine, pod: Pod, now: float) -> tuple[Engine, Callable[[View], tuple[Note, ...]]]:
        extended_engine, plugin = add_extender(engine, finders[0].extender, DEFAULT_ENTRY, now, pod)
        return extended_engine, lambda view: plugin.answer_of(view).filtered.notes

    def find_points(view: View, pod: Pod, now: float) -> tuple[Ints, tuple[Note, ...]] | None:
        return finders[0].find(view, pod, now) if finds_points else None

    kinds = [PLACEMENT_POLICIES, CLUSTER_PLACEMENT_POLICIES]
    world = World(Scheduler([OURS], extension=Extension(extend, find_points), extended_by=kinds))
    finders.append(PointFinder(Extender(world.state, Settings(critical_priority=1000)), DEFAULT_ENTRY))
    return world


def test_a_policy_decides_among_the_nodes_that_fit() -> None:
    world = extended()
    world.put(a_node("a-steady", labels=STEADY), a_node("b-spot", labels=SPOT))
    world.put(a_cluster_policy("default", strategy="spot-only"), a_pod("web"))
    assert world.settle().binds() == [("web", "b-spot")]


def test_a_pod_that_a_policy_refuses_is_told_so_and_tried_when_a_node_comes() -> None:
    world = extended()
    world.put(a_node("a-steady", labels=STEADY), a_cluster_policy("default", strategy="spot-only"), a_pod("web"))
    world.settle()
    assert world.binds() == []
    assert "on-demand" in world.message("web") or "spot" in world.message("web")
    world.put(a_node("b-spot", labels=SPOT))
    assert world.settle().binds() == [("web", "b-spot")]


def test_a_policy_that_falls_back_says_so() -> None:
    world = extended()
    world.put(a_node("a-steady", labels=STEADY), a_node("b-spot", labels=SPOT, cpu="50m"))
    world.put(a_cluster_policy("default", strategy="spot-first"), a_pod("web"))
    assert world.settle().binds() == [("web", "a-steady")]
    assert [note.reason for note in world.notes()] == ["CapacityFallback", "Scheduled"]


def test_a_policy_may_forbid_preemption() -> None:
    world = extended()
    world.put(a_node("node-a", cpu="1"), a_pod("victim", cpu="1", node="node-a"))
    world.put(a_policy("web", selects={"app": "web"}, preemptionPolicy="Never"))
    world.put(a_pod("boss", cpu="1", priority=9))
    world.settle()
    assert world.message("boss").endswith("preemption: no candidate node for preemption")
    assert not world.pod("victim").is_terminating


def test_an_edited_policy_gives_another_turn_to_whom_it_refused() -> None:
    world = extended()
    world.put(a_node("a-steady", labels=STEADY), a_cluster_policy("default", strategy="spot-only"), a_pod("web"))
    world.settle()
    world.put(a_cluster_policy("default", strategy="on-demand-only"))
    assert world.settle().binds() == [("web", "a-steady")]


def test_each_of_several_pods_that_look_alike_is_told_of_its_own_fallback() -> None:
    world = extended()
    world.put(a_node("a-steady", labels=STEADY), a_node("b-spot", labels=SPOT, cpu="50m"))
    world.put(a_cluster_policy("default", strategy="spot-first"), a_pod("web-1"), a_pod("web-2"))
    world.settle()
    fallbacks = [(note.key.name, note.uid) for note in world.notes() if note.reason == "CapacityFallback"]
    assert fallbacks == [(name, world.pod(name).metadata.uid) for name in ("web-1", "web-2")]


@pytest.mark.parametrize("seed", range(24))
def test_points_added_to_what_the_engine_keeps_decide_as_a_profile_with_the_extender_does(seed: int) -> None:
    stories = []
    for finds_points in (True, False):
        rng, world = Random(seed), extended(finds_points=finds_points)
        play_at_random(rng, world)
        stories.append((world.binds(), [(note.key, note.reason, note.text) for note in world.notes()]))
    assert stories[0] == stories[1]
    assert stories[0][0]


def play_at_random(rng: Random, world: World) -> None:
    """Nodes of both kinds, some tainted, some full; policies that prefer, refuse and rank; pods with other rules."""
    has_spot = rng.random() < 0.6
    for number in range(rng.randint(2, 8)):
        labels = SPOT if has_spot and rng.random() < 0.5 else STEADY
        taints = rng.choice([(), (), ("slow=true:PreferNoSchedule",), ("closed=true:NoSchedule",)])
        world.put(a_node(f"n{number}", labels=labels, taints=taints, cpu=rng.choice(["1", "4"]), zone=f"z{number % 2}"))
    strategy = rng.choice(["spot-first", "spot-only", "spot-preferred", "on-demand-first"])
    rules = [{"name": "cost-aware", "type": rng.choice(["score", "prioritize"]), "weight": 50}]
    world.put(a_policy("web", selects={"app": "web"}, strategy=strategy, rules=rng.choice([[], rules])))
    for number in range(rng.randint(4, 16)):
        world.put(
            a_pod(
                f"pod-{number}",
                app=rng.choice(["web", "web", "db"]),
                cpu=rng.choice(["100m", "600m", "3"]),
                priority=rng.choice([0, 0, 0, 2000]),
                tolerates=rng.choice(["", "", "closed"]),
            )
        )
        if rng.random() < 0.3:
            world.settle(rng.choice([0.0, 1.0]))
    world.settle(5)
