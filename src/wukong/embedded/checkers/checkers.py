"""All checkers of one world. Built by scenario/play/player.py before anything happens; asked when it is over."""

from __future__ import annotations

from wukong.embedded.checkers import counts, mirrors
from wukong.embedded.checkers.bindings import Bindings
from wukong.embedded.checkers.budgets import Budgets
from wukong.embedded.checkers.findings import Finding, Findings
from wukong.embedded.checkers.histories import Histories
from wukong.embedded.checkers.own_writes import OwnWrites
from wukong.embedded.checkers.pod_creations import PodCreations
from wukong.embedded.checkers.pod_deletions import PodDeletions
from wukong.embedded.faults import Faults
from wukong.embedded.world.world import World
from wukong.state import Change


class Checkers:
    def __init__(self, world: World, faults: Faults | None = None) -> None:
        self._findings = Findings(world)
        self._pod_count = counts.PodCount(world)
        budgets = Budgets(self._findings)
        checkers = [make(self._findings) for make in (Histories, Bindings, PodCreations, PodDeletions)]
        self._observers = [budgets.observe, *(checker.observe for checker in checkers), self._pod_count.observe]
        world.listen(self._observe)
        if world.takes_time:
            world.listen_to_decisions(budgets.observe_decision)
        if faults is not None:
            own_writes = OwnWrites(self._findings)
            faults.decision_listeners.append(own_writes.observe_decision)
            faults.write_listeners.append(own_writes.observe_write)

    def _observe(self, change: Change) -> None:
        for observe in self._observers:
            observe(change)

    def finish(self, *, is_at_rest: bool) -> list[Finding]:
        """Return everything that was found. What holds only at rest is checked only there."""
        self._pod_count.check(self._findings)
        if is_at_rest:
            mirrors.check(self._findings)
            counts.check(self._findings)
        return self._findings.all
