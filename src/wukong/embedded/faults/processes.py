"""Faults of processes as a whole: a second leader, and a clock that jumps ahead. Called by faults.py."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from wukong.embedded.world.process import Process

if TYPE_CHECKING:
    from wukong.embedded.faults.faults import Faults

LONGEST_OVERLAP, FARTHEST_AHEAD, LONGEST_AHEAD = 30.0, 60.0, 60.0


class Processes:
    def __init__(self, faults: Faults) -> None:
        self.faults = faults
        self._rivals: list[tuple[Process, Process]] = []  # the old leader and the new one, while both act
        self._wrote: set[Process] = set()
        self._jumped: set[Process] = set()  # ahead, and nothing has come of it yet

    def two_leaders(self) -> None:
        """A second instance starts. The first lost its lease because it is slow, and does not know until it goes."""
        world = self.faults.world
        leading = [each for each in world.processes if each.role.is_elected]
        if not leading:
            return
        old = self.faults.chosen("leader", leading)
        if any(each.role.name == old.role.name for each in world.processes if each is not old):
            return
        new = world.start(old.role)
        self._rivals.append((old, new))
        self.faults.ledger.inject("two-leaders")
        seconds = 2.0 + LONGEST_OVERLAP * self.faults.share("overlap")
        self.faults.slow_down(old, seconds)
        world.agenda.at(world.clock.now() + seconds, partial(self._step_down, old, new))

    def _step_down(self, old: Process, new: Process) -> None:
        if {old, new} <= self._wrote:
            self.faults.ledger.confirm("two-leaders")
        self._rivals.remove((old, new))
        self._wrote -= {old, new}
        world = self.faults.world
        if old in world.processes and new in world.processes:
            world.stop(old)

    def wrote(self, process: Process) -> None:
        if any(process in pair for pair in self._rivals):
            self._wrote.add(process)

    def clock_jump(self) -> None:
        world = self.faults.world
        if not world.processes:
            return
        process = self.faults.chosen("clock", world.processes)
        if process.skew:
            return
        process.skew = 5.0 + FARTHEST_AHEAD * self.faults.share("ahead")
        self._jumped.add(process)
        self.faults.ledger.inject("clock-jump")
        world.agenda.at(world.clock.now() + LONGEST_AHEAD, partial(self._set_right, process))

    def _set_right(self, process: Process) -> None:
        process.skew = 0.0
        self._jumped.discard(process)

    def decided(self, process: Process, due: float) -> None:
        """`due` is when the key was to be taken, by the process's own clock."""
        if process in self._jumped and due > self.faults.world.clock.now():
            self._jumped.remove(process)
            self.faults.ledger.confirm("clock-jump")
