"""A small embedded cluster for the conformance suite: the API server and its actors, without a scheduler.

A real cluster has controllers and kubelets, and some cases wait for them: pods bound to a node run and, once deleted,
go; budgets are counted; garbage is collected; namespaces are emptied. The embedded cluster's actors do so here, on
virtual time that runs much faster than ours. They run as a task of their own, so that, as in a real cluster, they act
after a request is answered, never within it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from wukong.api.kinds import NAMESPACES, NODES
from wukong.embedded.actors import make_actors
from wukong.embedded.actors.garbage_collector.controller import GarbageCollector
from wukong.embedded.actors.namespace.controller import Namespaces
from wukong.embedded.store import Server, Store
from wukong.embedded.world.clock import START, VirtualClock
from wukong.embedded.world.world import World
from wukong.state.controller import Controller

CAPACITY = {"cpu": "8", "memory": "16Gi", "pods": "110"}
TURN, PAUSE = 10.0, 0.02  # so many virtual seconds are played at once, and so long is waited before the next of them


SETTLED = 3.0  # virtual seconds: a namespace that cannot be emptied is looked at again every second


class ManualClock:
    """A clock that moves only when a test sets its time."""

    def __init__(self, now: float = START) -> None:
        self.time = now

    def now(self) -> float:
        return self.time


@asynccontextmanager
async def a_small_cluster(*spaces: str, nodes: int = 3) -> AsyncIterator[Store]:
    """A Store with these namespaces and some nodes, whose actors run as a task beside it."""
    clock = VirtualClock()
    server = Server(clock)
    world = World(make_actors(server), server=server, clock=clock)
    for name in spaces:
        server.create(NAMESPACES, {"metadata": {"name": name}})
    for number in range(nodes):
        server.create(NODES, {"metadata": {"name": f"node-{number}"}, "status": {"capacity": CAPACITY}})
    world.run()
    async with Store(server=server) as store:
        task = asyncio.create_task(run_world(world))
        try:
            yield store
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


async def run_world(world: World) -> None:
    """Run the actors for ever: until nothing is due, then again after every change."""
    changed = asyncio.Event()
    world.server.database.listen(lambda _: changed.set())
    while True:
        is_quiet = world.run(seconds=TURN) == "quiet"
        changed.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(None if is_quiet else PAUSE):
                await changed.wait()


def settle(server: Server) -> None:
    """Have garbage collected and namespaces emptied, in a cluster without nodes whose own clock stands still."""
    actors: list[Controller] = [GarbageCollector(server), Namespaces(server)]
    World(actors, server=server, clock=VirtualClock(server.clock.now())).run(seconds=SETTLED)
