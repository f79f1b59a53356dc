"""An embedded cluster put together: server, clock, Kubernetes' own controllers, our scheduler, and our extender.

Called by `wukong sim`. The twin of live.py on virtual time: everything that decides is below, here is only who gets
which port. The same seed gives the same story; it draws what Kubernetes leaves to chance, such as ties of scores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import count

import msgspec

from wukong.actions import Note
from wukong.api.core import Pod
from wukong.app.rules import load_rules
from wukong.controllers.scheduler import DEFAULT_NAME, Scheduler
from wukong.embedded.actors import built_in
from wukong.embedded.claiming import claim
from wukong.embedded.clock import Chance, VirtualClock
from wukong.embedded.loading import Loaded
from wukong.embedded.scenario import Scenario, Story, play
from wukong.embedded.scenario.acts import MANAGER, Drains
from wukong.embedded.scenario.playing import Watcher
from wukong.embedded.store import Server
from wukong.embedded.world import World
from wukong.engine import Scheduler as Engine
from wukong.engine.ties import Drawn
from wukong.engine.view import View
from wukong.ports import Document
from wukong.replies.asked import SHIPPED, asking
from wukong.replies.extender import Extender

POLICIES = ("PlacementPolicy", "ClusterPlacementPolicy")
_Told = Callable[[View], tuple[Note, ...]]


class Settings(msgspec.Struct, frozen=True):
    seed: int = 0
    extender: bool = False  # whether the scheduler asks ours


def play_scenario(scenario: Scenario, seed: int = 0, watcher: Watcher | None = None) -> Story:
    """Play it from an empty cluster. With policies in it, or on demand, the scheduler asks our extender.

    A `watcher` looks on and may wait; it changes nothing of the story but where it ends.
    """
    has_policies = any(each.get("kind") in POLICIES for each in scenario.documents)
    drains = Drains()
    asks = has_policies if scenario.extender is None else scenario.extender
    return play(assemble(Settings(seed, asks), drains), scenario, drains, watcher)


def assemble(
    settings: Settings, drains: Drains, start: Loaded | None = None, applied: Iterable[Document] = ()
) -> World:
    """An empty cluster, or one that is as a snapshot says, to which these documents will be `applied`."""
    clock = VirtualClock(start.now) if start else VirtualClock()
    server = Server(clock)
    extenders: list[Extender] = []

    def extend(engine: Engine, pod: Pod, now: float) -> tuple[Engine, _Told]:
        asker, asked = asking(engine, extenders[0], SHIPPED, now)
        return asker, lambda view: asked.answer(view).filtered.notes

    scheduler = Scheduler(
        [DEFAULT_NAME],
        ties=drawn(settings.seed),
        extend=extend if settings.extender else None,
        extended_by=POLICIES if settings.extender else (),
    )
    held = start.held if start else frozenset()
    actors = [*built_in(server, seed=settings.seed, held=held), scheduler, drains]
    for resource, documents in start.objects if start else ():
        server.restore(resource, documents)
    if start:
        claim(server, applied, MANAGER)
    world = World(actors, server=server, clock=clock, seed=settings.seed)
    if settings.extender:
        extenders.append(Extender(world.state, rules=load_rules()))
    return world


def drawn(seed: int) -> Drawn:
    """kube-scheduler picks at random among nodes of the same score; here the seed does."""
    chance, turn = Chance(seed, "ties"), count()
    return Drawn(lambda size: int(chance.share(next(turn)) * size))
