"""All checkers of one world. Built by scenario/play/player.py before anything happens; asked when it is over."""

from __future__ import annotations

from collections.abc import Callable

from wukong.embedded.checkers import counts, machines, mirrors, moves, rollouts
from wukong.embedded.checkers.active_pods import ActivePods
from wukong.embedded.checkers.bindings import Bindings
from wukong.embedded.checkers.budgets import Budgets
from wukong.embedded.checkers.covered_pods import CoveredPodsIndex
from wukong.embedded.checkers.daemon_pods import DaemonPods
from wukong.embedded.checkers.departures import Departures
from wukong.embedded.checkers.findings import Finding, Findings
from wukong.embedded.checkers.histories import Histories
from wukong.embedded.checkers.ledger import LedgerTruth
from wukong.embedded.checkers.machines import Machines
from wukong.embedded.checkers.moves import Surges
from wukong.embedded.checkers.node_changes import NodeChanges
from wukong.embedded.checkers.node_loads import NodeLoads
from wukong.embedded.checkers.object_writes import ObjectWrites
from wukong.embedded.checkers.ordinals import OrdinalPods
from wukong.embedded.checkers.own_sizes import OwnSizes
from wukong.embedded.checkers.own_writes import OwnWrites
from wukong.embedded.checkers.pod_creations import PodCreations
from wukong.embedded.checkers.pod_deletions import PodDeletions
from wukong.embedded.checkers.rollouts import RolloutSteps
from wukong.embedded.checkers.surge_steps import SurgeSteps
from wukong.embedded.checkers.touched_objects import BudgetsByNamespace, TouchedObjects
from wukong.embedded.checkers.unseen_nodes import UnseenNodes
from wukong.embedded.faults import Faults
from wukong.embedded.world.world import World
from wukong.state import Change

# These judge every change.
CHECKERS = (
    *(Histories, PodCreations, PodDeletions, Machines, NodeChanges, ObjectWrites),
    *(Surges, SurgeSteps, Departures, RolloutSteps),
)


class Checkers:
    def __init__(self, world: World, faults: Faults | None = None) -> None:
        self._world, self._findings = world, Findings(world)
        self._pod_count, self._touched = counts.PodCount(world), TouchedObjects()
        self._unseen_nodes = UnseenNodes(world)
        for index in (ActivePods, BudgetsByNamespace, CoveredPodsIndex, DaemonPods, NodeLoads, OrdinalPods):
            world.state.index_of(index)  # made now, so that a fork of the world has it
        self._touched.include((kind, objects) for kind, objects in world.state.objects.items())
        self._budgets, self._bindings = Budgets(self._findings), Bindings(self._findings)
        self._checkers = [make(self._findings) for make in CHECKERS]
        self._own_sizes, self._ledger = OwnSizes(self._findings), LedgerTruth(self._findings)
        self._checked_version: int | None = None  # up to which the mirror is known to be right
        self._listen()
        if faults is not None:
            own_writes = OwnWrites(self._findings)
            world.listen_to_decisions(own_writes.observe_decision)
            faults.write_listeners.append(own_writes.observe_write)

    def _listen(self) -> None:
        ledger = (self._ledger,) if self._ledger.is_kept else ()
        others = (self._own_sizes, *ledger, self._pod_count, self._touched, self._unseen_nodes)
        checkers = (self._budgets, self._bindings, *self._checkers, *others)
        self._observers = [(checker.observe, getattr(checker, "kinds", None)) for checker in checkers]
        self._observers_of: dict[str, list[Callable[[Change], None]]] = {}  # by kind, those that judge its changes
        self._world.listen(self._observe)
        self._world.listen_to_decisions(self._bindings.observe_decision)
        self._world.listen_to_decisions(self._unseen_nodes.observe_decision)
        if self._world.takes_time:
            self._world.listen_to_decisions(self._budgets.observe_decision)

    def fork(self, world: World) -> Checkers:
        """The same for a copy of a world without faults. Begins without findings."""
        copy = Checkers.__new__(Checkers)
        copy._world, copy._findings = world, Findings(world)
        copy._pod_count, copy._touched = self._pod_count.fork(world), self._touched.fork()
        copy._unseen_nodes = self._unseen_nodes.fork(world)
        copy._budgets, copy._bindings = self._budgets.fork(copy._findings), self._bindings.fork(copy._findings)
        copy._checkers = [checker.fork(copy._findings) for checker in self._checkers]
        copy._own_sizes = self._own_sizes.fork(copy._findings)
        copy._ledger = self._ledger.fork(copy._findings)
        copy._checked_version = self._checked_version
        copy._listen()
        return copy

    def _observe(self, change: Change) -> None:
        observers = self._observers_of.get(change.group_kind)
        if observers is None:
            observers = self._observers_of[change.group_kind] = [
                observe for observe, kinds in self._observers if kinds is None or change.group_kind in kinds
            ]
        for observe in observers:
            observe(change)

    def finish(self, *, is_at_rest: bool) -> list[Finding]:
        """Return everything that was found. What holds only at rest is checked only there, and only of what happened
        since that was last done."""
        self._pod_count.check(self._findings)
        if is_at_rest:
            mirrors.check(self._findings, self._checked_version)
            counts.check(self._findings, self._touched, self._unseen_nodes)
            machines.check(self._findings, self._touched)
            moves.check(self._findings, self._touched)
            rollouts.check(self._findings, self._touched)
            self._own_sizes.check()
            self._ledger.check()
            self._touched.clear()
            if len(self._world.processes) == 1:
                self._checked_version = self._world.server.database.version
        return self._findings.all
