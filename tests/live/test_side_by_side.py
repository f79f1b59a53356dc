"""What real controllers do while others act: a decision is carried out to its end, though its reason has changed."""

from __future__ import annotations

import asyncio

from testbed.client import Client, Event, Json, Listed, as_json
from testbed.pytest_plugin import Bed
from wukong.actions import Create
from wukong.api.core import Pod
from wukong.api.kinds import NAMESPACES, PODS, REPLICA_SETS
from wukong.api.resources import Key
from wukong.embedded.actors import make_actors
from wukong.embedded.store import Server
from wukong.embedded.world.clock import VirtualClock
from wukong.embedded.world.timing import Timing
from wukong.embedded.world.world import World
from wukong.ports import PatchBody

SECONDS = 120.0
REPLICAS, LEFT, SEEN = 300, 2, 7
SCALED = {"spec": {"replicas": LEFT}}


def a_replica_set() -> Json:
    labels = {"app": "web"}
    pod = {"containers": [{"name": "main", "image": "x"}], "schedulerName": "nobody"}  # they need not run
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec = {"replicas": REPLICAS, "selector": {"matchLabels": labels}, "template": template}
    return {"metadata": {"name": "web"}, "spec": spec}


async def scale_when_some_are_there(client: Client, namespace: str) -> tuple[int, list[int]]:
    """The version at which the set was scaled, and the versions at which its pods were created."""
    path, created, scaled_at = REPLICA_SETS.path(namespace, "web"), list[int](), 0
    async with asyncio.timeout(SECONDS):
        async for change in client.follow(PODS.path(namespace)):
            if isinstance(change, Listed) or change.type != "ADDED":
                if scaled_at and isinstance(change, Event) and change.type == "DELETED":
                    return scaled_at, created  # it deletes when it has created all
                continue
            created.append(int(as_json(change.object)["metadata"]["resourceVersion"]))
            if len(created) == SEEN:
                scaled = await client.patch(path, SCALED)
                scaled_at = int(scaled["metadata"]["resourceVersion"])
    raise AssertionError("follow never ends")


async def test_a_real_set_that_is_scaled_while_it_creates_goes_on(bed: Bed, namespace: str) -> None:
    async with bed.client() as client:
        following = asyncio.create_task(scale_when_some_are_there(client, namespace))
        await client.create(REPLICA_SETS.path(namespace), a_replica_set())
        scaled_at, created = await following
        assert len([version for version in created if version > scaled_at]) > LEFT
        await client.wait_until(
            REPLICA_SETS.path(namespace, "web"), lambda found: found["status"].get("replicas") == LEFT, SECONDS
        )


def test_so_does_an_embedded_one_whose_controllers_take_time() -> None:
    clock = VirtualClock()
    server = Server(clock)
    server.create(NAMESPACES, {"metadata": {"name": "shop"}})
    world = World(make_actors(server), server=server, clock=clock, timing=Timing(1))
    server.create(REPLICA_SETS, a_replica_set(), "shop")
    world.run(lambda state: len(state.of(Pod)) >= SEEN)
    server.patch(REPLICA_SETS, Key("shop", "web"), PatchBody("merge", SCALED))
    line = len(world.trace)
    world.run()
    assert sum(isinstance(step.action, Create) for step in world.trace[line:]) > LEFT
    assert len(world.state.of(Pod)) == LEFT
