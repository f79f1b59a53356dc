"""What people ask of a Rollout, sent to an embedded cluster whose controller goes on from there."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable

import pytest

from rollouts import PREFERRED, a_rollout, a_scenario, a_service, blue_green, canary, play_rollout, the_rollout
from wukong.api.core import Service
from wukong.api.kinds import ROLLOUTS
from wukong.api.resources import Key
from wukong.api.rollout import HASH, Rollout
from wukong.app import rollout_requests
from wukong.cli.views.rollout_tree import build_document, build_lines
from wukong.embedded.store import Store
from wukong.embedded.world.world import World
from wukong.errors import InputError
from wukong.ports import Cluster, Document

pytestmark = pytest.mark.slow

WEB = Key("default", "web")
PAUSED = blue_green(antiAffinity=PREFERRED, autoPromotionEnabled=False, scaleDownDelaySeconds=0)
Request = Callable[[Cluster, Key], Awaitable[str]]


def a_world(strategy: Document = PAUSED) -> World:
    """The second version waits, if the strategy has it wait."""
    scenario: Document = {
        "components": ["rollout"],
        "nodes": [{"namePrefix": "n", "count": 4, "capacity": {"cpu": 6}}],
        "manifests": [a_service(), a_rollout(strategy, replicas=4)],
        "timeline": [{"at": "20s", "apply": a_rollout(strategy, "web:2", replicas=4)}],
        "until": "5m",
    }
    world, story = play_rollout(scenario)
    assert story.settled, json.dumps(story.stuck)
    return world


def ask(world: World, request: Request) -> Rollout:
    async def send() -> None:
        async with Store(server=world.server) as store:
            await request(store, WEB)

    asyncio.run(send())
    world.run(seconds=120)
    return the_rollout(world)


def selected_hash(world: World) -> str:
    service = world.state.get(Service, WEB)
    assert service is not None
    return (service.spec.selector or {})[HASH]


def test_a_promoted_version_gets_the_traffic_and_undo_takes_it_back() -> None:
    world = a_world()
    first = the_rollout(world).status.stable
    rollout = ask(world, rollout_requests.promote)
    assert (rollout.status.phase, selected_hash(world)) == ("Healthy", rollout.status.current)
    with pytest.raises(InputError, match="has been promoted already"):
        ask(world, rollout_requests.promote)
    rollout = ask(world, rollout_requests.undo)
    assert (rollout.status.current, rollout.status.phase, rollout.status.revision) == (first, "Paused", 3)
    assert "affinity" not in rollout.spec.template["spec"]


def test_an_aborted_version_can_be_retried() -> None:
    world = a_world()
    assert ask(world, rollout_requests.abort).status.phase == "Aborted"
    with pytest.raises(InputError, match="was aborted"):
        ask(world, rollout_requests.promote)
    assert ask(world, rollout_requests.retry).status.phase == "Paused"
    with pytest.raises(InputError, match="was not aborted"):
        ask(world, rollout_requests.retry)


def test_a_restart_is_a_new_revision_of_the_same_containers() -> None:
    world = a_world(canary())
    before = the_rollout(world)
    rollout = ask(world, lambda cluster, key: rollout_requests.restart(cluster, key, 1.0))
    assert (rollout.status.phase, rollout.status.revision) == ("Healthy", before.status.revision + 1)
    assert rollout.spec.template["spec"] == before.spec.template["spec"]


def test_a_canary_is_promoted_from_pause_to_pause_or_altogether() -> None:
    world = a_world(canary({"setWeight": 25}, {"pause": {}}, {"setWeight": 50}, {"pause": {}}))
    assert the_rollout(world).status.step == 1
    assert ask(world, rollout_requests.promote).status.step == 3
    full = ask(world, lambda cluster, key: rollout_requests.promote(cluster, key, is_full=True))
    assert full.status.phase == "Healthy"


def test_pause_and_resume_are_said_once() -> None:
    world = a_world()
    assert ask(world, lambda cluster, key: rollout_requests.pause(cluster, key, is_paused=True)).spec.paused
    with pytest.raises(InputError, match="paused already"):
        ask(world, lambda cluster, key: rollout_requests.pause(cluster, key, is_paused=True))
    assert not ask(world, lambda cluster, key: rollout_requests.pause(cluster, key, is_paused=False)).spec.paused


def test_a_name_that_is_not_there_gets_a_hint_and_a_revision_that_is_not_kept_the_list() -> None:
    world = a_world()

    async def ask_wrongly(cluster: Cluster, key: Key) -> str:
        return await rollout_requests.abort(cluster, Key("default", "wob"))

    with pytest.raises(InputError, match="no Rollout default/wob there"):
        ask(world, ask_wrongly)
    with pytest.raises(InputError, match="no revision 9 is kept, only 1, 2"):
        ask(world, lambda cluster, key: rollout_requests.undo(cluster, key, 9))


def test_the_tree_shows_versions_pods_and_nodes() -> None:
    world = a_world()
    rollout = the_rollout(world)
    lines = list(build_lines(rollout, world.state, world.clock.now()))
    assert lines[0] == "Rollout default/web: Paused, revision 2"
    assert sum("Ready" in line for line in lines) == 8
    assert [line.split()[4].rstrip(":") for line in lines if "revision" in line][1:] == ["Preview", "Active"]
    document = build_document(rollout, world.state)
    assert [len(version["pods"]) for version in document["versions"]] == [4, 4]


def test_what_is_left_of_a_pause_is_shown() -> None:
    world, _ = play_rollout(
        a_scenario(
            canary({"setWeight": 25}, {"pause": {"duration": "10m"}}),
            [{"at": "20s", "apply": a_rollout(canary({"setWeight": 25}, {"pause": {"duration": "10m"}}), "web:2")}],
            until="5m",
        )
    )
    lines = list(build_lines(the_rollout(world), world.state, world.clock.now()))
    assert any("the pause ends in 3" in line for line in lines)
    assert ROLLOUTS.kind in lines[0]
