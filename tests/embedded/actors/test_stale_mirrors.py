"""Actors on a mirror that is behind: what they write on old news is refused, and undoes nothing."""

from __future__ import annotations

import pytest

from embedded.actors.playing import BUDGETS, LABELS, NAMESPACE, a_workload, a_world, all_pods, merging, names, status
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


def refused(world: World, actions: tuple[Action, ...]) -> None:
    (action,) = actions
    with pytest.raises(Conflict):
        perform(world.server, action)


def test_a_count_on_old_news_does_not_forget_an_eviction_that_was_charged() -> None:
    world = a_world()
    world.server.create(DEPLOYMENTS, a_workload(replicas=3), NAMESPACE)
    spec = {"maxUnavailable": 1, "selector": {"matchLabels": LABELS}}
    world.server.create(BUDGETS, {"metadata": {"name": "web"}, "spec": spec}, NAMESPACE)
    world.run()
    merging(world, BUDGETS, "web", {"spec": {"maxUnavailable": 2}})  # so that there is something to write
    before: State = world.state.fork()
    merging(world, BUDGETS, "web", {"spec": {"maxUnavailable": 1}})
    world.run()
    first, second, _ = names(all_pods(world))
    world.server.evict(Key(NAMESPACE, first))
    refused(world, Disruption().reconcile(Key(NAMESPACE, "web"), before, world.clock.now()).actions)
    assert status(world, BUDGETS)["disruptionsAllowed"] == 0
    with pytest.raises(TooManyRequests):
        world.server.evict(Key(NAMESPACE, second))


def test_taints_on_old_news_do_not_take_those_of_others_away() -> None:
    world = a_world(1)
    theirs = {"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"}
    key = Key("", "n0")
    world.server.patch(NODES, key, PatchBody("merge", {"spec": {"taints": [theirs]}}))
    before: State = world.state.fork()
    ours = {"key": "ours", "effect": "NoSchedule"}
    world.server.patch(NODES, key, PatchBody("merge", {"spec": {"taints": [theirs, ours]}}))
    refused(world, NodeLifecycle().reconcile(key, before, world.clock.now()).actions)
    world.run()
    assert [it["key"] for it in world.server.get(NODES, key)["spec"]["taints"]] == ["ours"]
