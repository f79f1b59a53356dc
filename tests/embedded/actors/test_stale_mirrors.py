"""Actors on a mirror that is behind: what they write on a stale view is refused, and undoes nothing."""

from __future__ import annotations

import pytest

from embedded.actors.actor_world import (
    BUDGETS,
    LABELS,
    NAMESPACE,
    a_workload,
    a_world,
    list_pods,
    merge,
    names_of,
    status_of,
)
from wukong.actions import Action
from wukong.api.kinds import DEPLOYMENTS, NODES
from wukong.api.resources import Key
from wukong.embedded.actors.disruption.controller import Disruption
from wukong.embedded.actors.node_lifecycle.controller import NodeLifecycle
from wukong.embedded.world.transport import perform
from wukong.embedded.world.world import World
from wukong.errors import Conflict, TooManyRequests
from wukong.ports import PatchBody
from wukong.state import State


def expect_conflict(world: World, actions: tuple[Action, ...]) -> None:
    (action,) = actions
    with pytest.raises(Conflict):
        perform(world.server, action)


def test_a_count_on_a_stale_view_does_not_forget_an_eviction_that_was_charged() -> None:
    world = a_world()
    world.server.create(DEPLOYMENTS, a_workload(replicas=3), NAMESPACE)
    spec = {"maxUnavailable": 1, "selector": {"matchLabels": LABELS}}
    world.server.create(BUDGETS, {"metadata": {"name": "web"}, "spec": spec}, NAMESPACE)
    world.run()
    merge(world, BUDGETS, "web", {"spec": {"maxUnavailable": 2}})  # so that there is something to write
    before: State = world.state.fork()
    merge(world, BUDGETS, "web", {"spec": {"maxUnavailable": 1}})
    world.run()
    first, second, _ = names_of(list_pods(world))
    world.server.evict(Key(NAMESPACE, first))
    expect_conflict(world, Disruption().reconcile(Key(NAMESPACE, "web"), before, world.clock.now()).actions)
    assert status_of(world, BUDGETS)["disruptionsAllowed"] == 0
    with pytest.raises(TooManyRequests):
        world.server.evict(Key(NAMESPACE, second))


def test_taints_on_a_stale_view_do_not_take_those_of_others_away() -> None:
    world = a_world(1)
    theirs = {"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"}
    key = Key("", "n0")
    world.server.patch(NODES, key, PatchBody("merge", {"spec": {"taints": [theirs]}}))
    before: State = world.state.fork()
    ours = {"key": "ours", "effect": "NoSchedule"}
    world.server.patch(NODES, key, PatchBody("merge", {"spec": {"taints": [theirs, ours]}}))
    expect_conflict(world, NodeLifecycle().reconcile(key, before, world.clock.now()).actions)
    world.run()
    assert [taint["key"] for taint in world.server.get(NODES, key)["spec"]["taints"]] == ["ours"]
