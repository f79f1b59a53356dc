"""An embedded cluster put together: server, clock, Kubernetes' own controllers, and components of ours.

Called by `wukong sim`. The twin of live.py on virtual time: everything that decides is below, here is only who gets
which port. The same seed gives the same story; it draws what Kubernetes leaves to chance, such as ties of scores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from itertools import chain
from typing import Any, NamedTuple

import msgspec

from wukong.api.kinds import ROLLOUTS
from wukong.api.node_groups import NodeGroup
from wukong.api.resources import Resource
from wukong.app.assemble import assemble
from wukong.app.component import OURS, Component, Context, Mutator, with_needs
from wukong.app.component_choice import EMBEDDED_COMPONENTS, find_unknown_names
from wukong.app.components.extender import EXTENDER
from wukong.app.components.extender.component import POLICIES
from wukong.app.components.kube_scheduler import KUBE_SCHEDULER
from wukong.app.components.ledger import LEDGER
from wukong.app.components.rollout import ROLLOUT
from wukong.app.components.wukongs import WUKONG_SETTINGS, WukongOptions
from wukong.app.options import read_section
from wukong.app.rules import load_rules
from wukong.embedded.actors import make_actors, make_autoscaler
from wukong.embedded.actors.autoscaler.cloud_provider import CloudProvider
from wukong.embedded.actors.autoscaler.controller import LOOP, Autoscaler
from wukong.embedded.actors.karpenter.provisioner import BATCH, NodeProvisioner
from wukong.embedded.actors.kubelet.controller import Kubelets
from wukong.embedded.actors.kubelet.durations import PodDurations
from wukong.embedded.actors.kubevirt.handlers import VirtHandlers
from wukong.embedded.faults import FaultCounts, Faults, plan_episodes
from wukong.embedded.scenario import Scenario, Story, play
from wukong.embedded.scenario.format.durations import build_durations
from wukong.embedded.scenario.format.planned_faults import planned_faults
from wukong.embedded.scenario.play.player import Lines, Spectator
from wukong.embedded.scenario.play.steps import Drains
from wukong.embedded.snapshot.load import LoadedSnapshot
from wukong.embedded.store import Server
from wukong.embedded.world.clock import Chance, VirtualClock
from wukong.embedded.world.timing import Timing
from wukong.embedded.world.world import Role, World
from wukong.engine.ties import RandomTies
from wukong.errors import InputError
from wukong.placement.rule import Rules
from wukong.ports import Document
from wukong.runtime.dispatch import Item
from wukong.state import State
from wukong.state.controller import Controller, Watch

ON_MACHINES = (Kubelets.name, VirtHandlers.name, CloudProvider.name)  # actors that are many, or outside the cluster
AUTOSCALER = "cluster-autoscaler"  # the process
_POLICY_KINDS = frozenset((policy.kind, policy.api_version) for policy in POLICIES)
AtEnd = Callable[[World], None]
FAULTS_AFTER = 120  # seconds after the last entry of a timeline until it is calm


class Settings(msgspec.Struct, frozen=True):
    """`takes_time`: controllers take milliseconds as in a real cluster, drawn by the seed; else none at all.

    Of `node_groups` an autoscaler adds and removes nodes, unless `keeps_nodes`: then it begins with a fork.
    """

    seed: int = 0
    components: tuple[Component[Any], ...] = (KUBE_SCHEDULER,)
    takes_time: bool = True
    options: Mapping[str, msgspec.Struct] = {}  # by the component's name
    durations: PodDurations = PodDurations()  # what is said of how long pods take
    node_groups: tuple[NodeGroup, ...] = ()
    keeps_nodes: bool = False


def play_scenario(
    scenario: Scenario,
    seed: int = 0,
    spectator: Spectator | None = None,
    lines: Lines | None = None,
    *,
    faults: Sequence[str] = (),
    at_end: AtEnd | None = None,
) -> Story:
    """Play it from an empty cluster. With policies in it, or on demand, the scheduler asks our extender.

    A `spectator` looks on and may wait; it changes nothing of the story but where it ends. `lines` gets the trace as it
    happens. `faults` are types that strike from the beginning to some time after the timeline's end, besides the
    scenario's own. `at_end` is handed the world as it is in the end.
    """
    return play_with(scenario, seed, faults, spectator, lines, at_end)[0]


def play_with(
    scenario: Scenario,
    seed: int,
    faults: Sequence[str],
    spectator: Spectator | None = None,
    lines: Lines | None = None,
    at_end: AtEnd | None = None,
) -> tuple[Story, FaultCounts | None]:
    """The story, and what the faults did, where there are any."""
    drains = Drains()
    fault_injection = faults_of(scenario, seed, faults)
    components = choose_components(scenario)
    options, durations = read_component_options(scenario), build_durations(scenario)
    groups = tuple(scenario.node_groups)
    settings = Settings(seed, components, options=options, durations=durations, node_groups=groups)
    world = build_world(settings, drains, fault_injection=fault_injection)
    story = play(world, scenario, drains, spectator, fault_injection, lines)
    if at_end is not None:
        at_end(world)
    return story, fault_injection.counts if fault_injection is not None else None


def choose_components(scenario: Scenario, documents: Iterable[Document] = ()) -> tuple[Component[Any], ...]:
    """kube-scheduler, the extender if it is asked, those that the scenario names, and who rolls out Rollouts if there
    are some; `documents` are a snapshot's.

    Raises InputError for a name that is none.
    """
    named = [EMBEDDED_COMPONENTS[name] for name in scenario.components if name in EMBEDDED_COMPONENTS]
    if problems := list(find_unknown_names(scenario.components, "$.components", EMBEDDED_COMPONENTS)):
        raise InputError(*problems)
    if EXTENDER in named and scenario.extender is False:
        raise InputError("$.extender: is false, and components names the extender. Leave out one of the two.")
    extenders = [EXTENDER] if asks_extender(scenario, documents) else []
    rollouts = [ROLLOUT] if any(map(is_rollout, chain(documents, scenario.documents))) else []
    return tuple(dict.fromkeys([KUBE_SCHEDULER, *extenders, *named, *rollouts]))


def asks_extender(scenario: Scenario, documents: Iterable[Document] = ()) -> bool:
    """Whether the scheduler asks our extender: as the scenario says, or else where it or a snapshot has policies, or
    where the scheduler is to obey what Wukongs say of resources."""
    if scenario.extender is not None:
        return scenario.extender
    wukongs = read_component_options(scenario).get(WUKONG_SETTINGS.name)
    if isinstance(wukongs, WukongOptions) and wukongs.is_judged:
        return True
    return EXTENDER.name in scenario.components or any(map(is_policy, chain(documents, scenario.documents)))


def read_component_options(scenario: Scenario) -> dict[str, msgspec.Struct]:
    """What the scenario tells components, by their names. Raises InputError with every problem."""
    known = {component.name: component for component in with_needs(EMBEDDED_COMPONENTS.values())}
    problems = list(find_unknown_names(scenario.options, "$.options", known))
    options: dict[str, msgspec.Struct] = {}
    for name in [name for name in scenario.options if name in known]:
        struct = known[name].options
        values, wrong = read_section(scenario.options[name], struct, f"$.options.{name}")
        problems += wrong
        options[name] = struct(**{field: value for field, value in values.items() if value is not None})
    if problems:
        raise InputError(*problems)
    return options


def is_rollout(document: Document) -> bool:
    return (document.get("kind"), document.get("apiVersion")) == (ROLLOUTS.kind, ROLLOUTS.api_version)


def is_policy(document: Document) -> bool:
    return (document.get("kind"), document.get("apiVersion")) in _POLICY_KINDS


def faults_of(scenario: Scenario, seed: int, types: Sequence[str]) -> Faults | None:
    end = max((moment.seconds for moment in scenario.timeline), default=0) + FAULTS_AFTER
    planned = [*plan_episodes(list_striking(scenario, types), end), *planned_faults(scenario)]
    return Faults(seed, planned) if planned else None


def list_striking(scenario: Scenario, types: Sequence[str]) -> list[str]:
    """Of these types of faults those that can strike: without a ledger nothing happens to its store."""
    keeps_ledger = LEDGER.name in scenario.components
    return [name for name in types if keeps_ledger or not name.startswith(f"{LEDGER.name}-")]


class EmbeddedCluster(NamedTuple):
    """A world, and what it was made of."""

    world: World
    drains: Drains
    processes: Processes

    def fork(self, seed: int | None = None) -> EmbeddedCluster:
        """An independent copy; with a `seed` it draws other numbers from now on. Not for one with faults."""
        drains = Drains()
        copies: list[Processes] = []

        def make(server: Server, clock: VirtualClock, state: State) -> list[Controller]:
            copies.append(self.processes.fork(server, clock, drains, seed))
            return copies[0].build_all(state)[0]

        world = self.world.fork(make, seed)
        if self.processes.settings.keeps_nodes and self.processes.settings.node_groups:
            world.enqueue(Item(Autoscaler.name, LOOP))  # from now on nodes come and go
            if any(group.node_pool for group in self.processes.settings.node_groups):
                world.enqueue(Item(NodeProvisioner.name, BATCH))
        return EmbeddedCluster(world, drains, copies[0])


def build_world(
    settings: Settings,
    drains: Drains,
    start: LoadedSnapshot | None = None,
    fault_injection: Faults | None = None,
) -> World:
    """The world of `build_cluster`."""
    return build_cluster(settings, drains, start, fault_injection).world


def build_cluster(
    settings: Settings,
    drains: Drains,
    start: LoadedSnapshot | None = None,
    fault_injection: Faults | None = None,
) -> EmbeddedCluster:
    """An empty cluster, or one that is as a snapshot says.

    One process that knows everything at once; with faults those of a real cluster, each with its own mirror.
    """
    timing = Timing(settings.seed) if settings.takes_time else None
    clock = VirtualClock(start.now) if start else VirtualClock()
    server = Server(clock, seed=settings.seed)
    processes = Processes(settings, server, clock, drains, fault_injection, start.stuck_pods if start else frozenset())
    for resource, documents in start.objects if start else ():
        server.restore(resource, documents)
    if fault_injection is not None:
        world = World(
            server=server,
            clock=clock,
            seed=settings.seed,
            roles=processes.roles(),
            fault_injection=fault_injection,
            timing=timing,
        )
        processes.is_running = lambda state: any(process.state is state for process in world.processes)
        return EmbeddedCluster(world, drains, processes)
    state = State()
    controllers, ours = processes.build_all(state)
    also = watches_of(settings.components)
    world = World(
        controllers,
        server=server,
        clock=clock,
        seed=settings.seed,
        state=state,
        gated=ours,
        also=also,
        timing=timing,
    )
    return EmbeddedCluster(world, drains, processes)


class Processes:
    """The controllers of a cluster, built for a mirror: anew for each process, and for each that starts again."""

    def __init__(
        self,
        settings: Settings,
        server: Server,
        clock: VirtualClock,
        drains: Drains,
        fault_injection: Faults | None,
        stuck_pods: frozenset[str],
    ) -> None:
        self.settings, self.server, self.clock, self.drains = settings, server, clock, drains
        self.fault_injection, self.stuck_pods = fault_injection, stuck_pods
        self.rules = _installed_rules()
        self.draws = TieDraws(settings.seed)
        self.is_running: Callable[[State], bool] = lambda state: True  # the process that has this mirror

    def fork(self, server: Server, clock: VirtualClock, drains: Drains, seed: int | None) -> Processes:
        """The same for a copy of the server; ties go on as they would here, or are drawn by another seed.

        Node groups are scaled there, also where they were not here.
        """
        settings = msgspec.structs.replace(
            self.settings, keeps_nodes=False, seed=self.settings.seed if seed is None else seed
        )
        copy = Processes(settings, server, clock, drains, None, self.stuck_pods)
        copy.draws = TieDraws(settings.seed, self.draws.turn if seed is None else 0)
        return copy

    def build_all(self, state: State) -> tuple[list[Controller], frozenset[str]]:
        """Everybody in one process, and the names of those that ask the gate: Kubernetes' own do not."""
        ours = [*self._build_components(state, self.settings.components), self.drains]
        return [*self._build_built_in(), *self._make_autoscaler(), *ours], frozenset(
            controller.name for controller in ours
        )

    def roles(self) -> list[Role]:
        """As in life: machines, kube-controller-manager with virt-controller, scheduler and extender, and ours."""
        names = dict.fromkeys([*(component.process for component in self.settings.components), OURS])
        return [
            Role("kubelets", lambda _: self._build_kubelets(), is_elected=False),
            Role("controllers", lambda _: self._build_controller_manager()),
            *([Role(AUTOSCALER, lambda _: self._build_autoscaler())] if self.settings.node_groups else []),
            *(self._role(name) for name in names),
        ]

    def _role(self, process: str) -> Role:
        components = [component for component in self.settings.components if component.process == process]

        def build(state: State) -> list[Controller]:
            return [*self._build_components(state, components), *([self.drains] if process == OURS else [])]

        return Role(process, build, also=tuple(watches_of(components)), gated=None)

    def _build_components(self, state: State, components: Sequence[Component[Any]]) -> Sequence[Controller]:
        options = self.settings.options
        context = Context(state, None, self.clock, self.rules, options, ties=RandomTies(self.draws))
        if self.fault_injection is not None:
            context = context._replace(on_extender_call=self.fault_injection.strike_extender)
        assembly = assemble(components, context)
        if mutators := assembly.build_mutators():
            self.server.set_mutators([partial(self._ask_webhook, state, mutator) for mutator in mutators])
        return assembly.controllers

    def _ask_webhook(self, state: State, mutator: Mutator, resource: Resource, document: Document) -> Document:
        """What a webhook's process answers, by its own mirror. Of one that is down the API server asks nothing."""
        return mutator(resource, document) if self.is_running(state) else document

    def _build_kubelets(self) -> list[Controller]:
        controllers = [*self._build_built_in(), *self._make_autoscaler()]
        return [controller for controller in controllers if controller.name in ON_MACHINES]

    def _build_autoscaler(self) -> list[Controller]:
        return [controller for controller in self._make_autoscaler() if controller.name not in ON_MACHINES]

    def _build_controller_manager(self) -> list[Controller]:
        return [controller for controller in self._build_built_in() if controller.name not in ON_MACHINES]

    def _make_autoscaler(self) -> list[Controller]:
        settings = self.settings
        return make_autoscaler(settings.node_groups, seed=settings.seed, is_idle=settings.keeps_nodes)

    def _build_built_in(self) -> list[Controller]:
        settings = self.settings
        return make_actors(self.server, seed=settings.seed, stuck_pods=self.stuck_pods, durations=settings.durations)


def watches_of(components: Sequence[Component[Any]]) -> list[Watch]:
    """The kinds that components read besides those their controllers watch."""
    return [watch for component in with_needs(components) for watch in component.watches]


@cache
def _installed_rules() -> Rules:
    """Looked for once: what is installed does not change while worlds are played by the thousand."""
    return load_rules()


class TieDraws:
    """kube-scheduler picks at random among nodes of the same score; here the seed does, turn by turn."""

    def __init__(self, seed: int, turn: int = 0) -> None:
        self.turn, self._chance = turn, Chance(seed, "ties")

    def __call__(self, size: int) -> int:
        turn, self.turn = self.turn, self.turn + 1
        return int(self._chance.share(turn) * size)
