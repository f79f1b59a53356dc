"""The scheduler controller with our extender's replies plugged in: policies hold, and what they have to say is told."""

from __future__ import annotations

from collections.abc import Callable

from builders import a_node, a_pod
from policies import a_cluster_policy, a_policy
from scheduler_world import OURS, World
from wukong.actions import Note
from wukong.api.core import Pod
from wukong.api.kinds import CLUSTER_PLACEMENT_POLICIES, PLACEMENT_POLICIES
from wukong.controllers.scheduler.choice import Extension
from wukong.controllers.scheduler.controller import Scheduler
from wukong.engine import Scheduler as Engine
from wukong.engine.view import View
from wukong.replies.extender.plugin import DEFAULT_ENTRY, add_extender
from wukong.replies.extender.verbs import Extender, Settings

SPOT = {"node.kubernetes.io/capacity": "spot"}
STEADY = {"node.kubernetes.io/capacity": "on-demand"}


def extended() -> World:
    extenders: list[Extender] = []

    def extend(engine: Engine, pod: Pod, now: float) -> tuple[Engine, Callable[[View], tuple[Note, ...]]]:
        extender = extenders[0]
        extended_engine, plugin = add_extender(engine, extender, DEFAULT_ENTRY, now)
        return extended_engine, lambda view: plugin.answer_of(view).filtered.notes

    kinds = [PLACEMENT_POLICIES, CLUSTER_PLACEMENT_POLICIES]
    world = World(Scheduler([OURS], extension=Extension(extend), extended_by=kinds))
    extenders.append(Extender(world.state, Settings(critical_priority=1000)))
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
