"""An embedded cluster put together: server, clock, Kubernetes' own controllers, our scheduler, and our extender.

Called by `wukong sim`. The twin of live.py on virtual time: everything that decides is below, here is only who gets
which port. The same seed gives the same story; it draws what Kubernetes leaves to chance, such as ties of scores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import count

import msgspec

from wukong.actions import Note
from wukong.api.core import Pod
from wukong.api.kinds import CLUSTER_PLACEMENT_POLICIES, PLACEMENT_POLICIES
from wukong.app.rules import load_rules
from wukong.controllers.scheduler.choice import Extend
from wukong.controllers.scheduler.controller import DEFAULT_NAME, Scheduler
from wukong.embedded.actors import make_actors
from wukong.embedded.actors.kubelet.controller import Kubelets
from wukong.embedded.faults import FaultCounts, Faults, plan_episodes
from wukong.embedded.scenario import Scenario, Story, play
from wukong.embedded.scenario.format.planned_faults import planned_faults
from wukong.embedded.scenario.play.player import Lines, Spectator
from wukong.embedded.scenario.play.steps import MANAGER, Drains
from wukong.embedded.snapshot.load import LoadedSnapshot
from wukong.embedded.snapshot.presumed_fields import presume_fields
from wukong.embedded.store import Server
from wukong.embedded.world.clock import Chance, VirtualClock
from wukong.embedded.world.world import Role, World
from wukong.engine import Scheduler as Engine
from wukong.engine.ties import RandomTies
from wukong.engine.view import View
from wukong.ports import Document
from wukong.replies.extender.plugin import DEFAULT_ENTRY, add_extender
from wukong.replies.extender.verbs import Extender
from wukong.state import State
from wukong.state.controller import Controller

POLICIES = (PLACEMENT_POLICIES, CLUSTER_PLACEMENT_POLICIES)
KUBELETS = Kubelets.name
FAULTS_AFTER = 120  # seconds after the last moment of a timeline until it is calm
_Told = Callable[[View], tuple[Note, ...]]


class Settings(msgspec.Struct, frozen=True):
    seed: int = 0
    extender: bool = False  # whether the scheduler asks ours


def play_scenario(
    scenario: Scenario,
    seed: int = 0,
    spectator: Spectator | None = None,
    lines: Lines | None = None,
    *,
    faults: Sequence[str] = (),
) -> Story:
    """Play it from an empty cluster. With policies in it, or on demand, the scheduler asks our extender.

    A `spectator` looks on and may wait; it changes nothing of the story but where it ends. `lines` gets the trace as it
    happens. `faults` are types that strike from the beginning to some time after the timeline's end, besides the
    scenario's own.
    """
    return play_with(scenario, seed, faults, spectator, lines)[0]


def play_with(
    scenario: Scenario,
    seed: int,
    faults: Sequence[str],
    spectator: Spectator | None = None,
    lines: Lines | None = None,
) -> tuple[Story, FaultCounts | None]:
    """The story, and what the faults did, where there are any."""
    drains = Drains()
    fault_injection = faults_of(scenario, seed, faults)
    world = assemble(Settings(seed, asks_extender(scenario)), drains, fault_injection=fault_injection)
    return play(
        world, scenario, drains, spectator, fault_injection, lines
    ), fault_injection.counts if fault_injection is not None else None


def asks_extender(scenario: Scenario) -> bool:
    has_policies = any(is_policy(document) for document in scenario.documents)
    return has_policies if scenario.extender is None else scenario.extender


def is_policy(document: Document) -> bool:
    return (document.get("kind"), document.get("apiVersion")) in [(it.kind, it.api_version) for it in POLICIES]


def faults_of(scenario: Scenario, seed: int, types: Sequence[str]) -> Faults | None:
    end = max((moment.seconds for moment in scenario.timeline), default=0) + FAULTS_AFTER
    found = [*plan_episodes(types, end), *planned_faults(scenario)]
    return Faults(seed, found) if found else None


def assemble(
    settings: Settings,
    drains: Drains,
    start: LoadedSnapshot | None = None,
    applied: Iterable[Document] = (),
    fault_injection: Faults | None = None,
) -> World:
    """An empty cluster, or one that is as a snapshot says, to which these documents will be `applied`.

    One process that knows everything at once; in bad fault_injection those of a real cluster, each with its own mirror.
    """
    clock = VirtualClock(start.now) if start else VirtualClock()
    server = Server(clock, seed=settings.seed)
    parts = Parts(settings, server, drains, fault_injection, start.stuck_pods if start else frozenset())
    for resource, documents in start.objects if start else ():
        server.restore(resource, documents)
    if start:
        presume_fields(server, applied, MANAGER)
    if fault_injection is not None:
        return World(
            server=server, clock=clock, seed=settings.seed, roles=parts.roles(), fault_injection=fault_injection
        )
    state = State()
    return World(parts.all(state), server=server, clock=clock, seed=settings.seed, state=state)


class Parts:
    """Who there is in a cluster, made for a mirror: anew for each process, and for each that starts again."""

    def __init__(
        self, settings: Settings, server: Server, drains: Drains, fault_injection: Faults | None, held: frozenset[str]
    ) -> None:
        self.settings, self.server, self.drains, self.fault_injection, self.held = (
            settings,
            server,
            drains,
            fault_injection,
            held,
        )
        self._built_in()  # the kinds they serve are there from now on

    def all(self, state: State) -> list[Controller]:
        return [*self._built_in(), self.scheduler(state), self.drains]

    def roles(self) -> list[Role]:
        """As in life: machines, kube-controller-manager, scheduler and extender, and what is ours."""
        return [
            Role("kubelets", lambda _: [each for each in self._built_in() if each.name == KUBELETS], is_elected=False),
            Role("controllers", lambda _: [each for each in self._built_in() if each.name != KUBELETS]),
            Role("scheduler", lambda state: [self.scheduler(state)]),
            Role("ours", lambda _: [self.drains]),
        ]

    def _built_in(self) -> list[Controller]:
        return make_actors(self.server, seed=self.settings.seed, stuck_pods=self.held)

    def scheduler(self, state: State) -> Scheduler:
        asks = self.settings.extender
        return Scheduler(
            [DEFAULT_NAME],
            ties=drawn(self.settings.seed),
            extend=self._extending(state) if asks else None,
            extended_by=POLICIES if asks else (),
            is_stock=True,
        )

    def _extending(self, state: State) -> Extend:
        extender = Extender(state, rules=load_rules())

        def extend(engine: Engine, pod: Pod, now: float) -> tuple[Engine, _Told]:
            if self.fault_injection is not None:
                self.fault_injection.strike_extender(pod.key)
            asker, asked = add_extender(engine, extender, DEFAULT_ENTRY, now)
            return asker, lambda view: asked.answer_of(view).filtered.notes

        return extend


def drawn(seed: int) -> RandomTies:
    """kube-scheduler picks at random among nodes of the same score; here the seed does."""
    chance, turn = Chance(seed, "ties"), count()
    return RandomTies(lambda size: int(chance.share(next(turn)) * size))
