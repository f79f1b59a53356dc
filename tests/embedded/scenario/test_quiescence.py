"""When a story is over, judged from the mirror alone: as on a real cluster."""

from __future__ import annotations

import pytest

from embedded.actors.actor_world import NAMESPACE, a_template, a_workload, a_world
from wukong.api.kinds import DEPLOYMENTS, NODES, STATEFUL_SETS
from wukong.api.resources import Key
from wukong.embedded.scenario.play.quiescence import (
    COMPLETE_SECONDS,
    STUCK_SECONDS,
    UNCLEAR_SECONDS,
    is_over,
    list_awaited,
)
from wukong.embedded.world.world import World
from wukong.ports import Document, PatchBody


def a_rollout(world: World, template: Document, **spec: object) -> None:
    world.server.create(DEPLOYMENTS, a_workload("web", 2, None, **spec), NAMESPACE)
    world.run()
    world.server.patch(DEPLOYMENTS, Key(NAMESPACE, "web"), PatchBody("merge", {"spec": {"template": template}}))


def test_what_is_complete_is_over_after_a_moment() -> None:
    world = a_world()
    world.server.create(DEPLOYMENTS, a_workload("web", 2, None), NAMESPACE)
    assert not is_over(world, 1000.0)
    world.run()
    assert not is_over(world, COMPLETE_SECONDS - 1)
    assert is_over(world, COMPLETE_SECONDS)


def test_a_deadline_is_waited_for() -> None:
    world = a_world()
    a_rollout(world, a_template("app:2", **{"sim.novasphere.dev/never-ready": "true"}), progressDeadlineSeconds=60)
    world.run(seconds=30)
    assert [*list_awaited(world)] == [f"Deployment {NAMESPACE}/web: its progress deadline"]
    assert not is_over(world, 1000.0)
    world.run(seconds=60)
    assert [*list_awaited(world)] == []
    assert not is_over(world, STUCK_SECONDS - 1)
    assert is_over(world, STUCK_SECONDS)


def test_without_a_word_on_what_is_wrong_a_minute_is_waited() -> None:
    world = a_world()
    never = a_workload("db", 1, a_template(**{"sim.novasphere.dev/never-ready": "true"}), serviceName="db")
    world.server.create(STATEFUL_SETS, never, NAMESPACE)
    world.run()
    assert not is_over(world, UNCLEAR_SECONDS - 1)
    assert is_over(world, UNCLEAR_SECONDS)


@pytest.mark.parametrize("body", [{"metadata": {"annotations": {"sim.novasphere.dev/silent": "true"}}}, None])
def test_a_node_that_is_about_to_be_missed_is_waited_for(body: Document | None) -> None:
    world = a_world(1)
    world.server.create(DEPLOYMENTS, a_workload("web", 1, None), NAMESPACE)
    world.run()
    if body is None:
        world.server.delete(NODES, Key("", "n0"))
    else:
        world.server.patch(NODES, Key("", "n0"), PatchBody("merge", body))
    assert next(list_awaited(world), None) is not None
    assert not is_over(world, 1000.0)
