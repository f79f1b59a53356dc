"""All checkers of one world, attached. Built by scenario/playing.py before anything happens; asked when it is over."""

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
        self._world, self._desk = world, Findings(world)
        self._pods = counts.Pods(world)
        parts = [make(self._desk) for make in (Histories, Budgets, Bindings, PodCreations, PodDeletions)]
        self._hear = [*(part.hear for part in parts), self._pods.hear]
        world.listen(self._heard)
        if faults is not None:
            own = OwnWrites(self._desk)
            faults.on_decided.append(own.decided)
            faults.on_wrote.append(own.wrote)

    def _heard(self, change: Change) -> None:
        for hear in self._hear:
            hear(change)

    def finish(self, *, is_at_rest: bool) -> list[Finding]:
        """Everything that was found. What only holds at rest is asked there."""
        self._pods.finish(self._desk)
        if is_at_rest:
            mirrors.check(self._desk)
            counts.check(self._desk)
        return self._desk.findings
