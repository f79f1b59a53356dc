"""Faults of processes as a whole: a second leader, and a clock that jumps ahead. Called by faults.py."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from wukong.embedded.world.process import Process

if TYPE_CHECKING:
    from wukong.embedded.faults.faults import Faults

LONGEST_OVERLAP, FARTHEST_AHEAD, LONGEST_AHEAD = 30.0, 60.0, 60.0


class ProcessFaults:
    def __init__(self, faults: Faults) -> None:
        self.faults = faults
        self.by_type: dict[str, Callable[[], None]] = {
            "two-leaders": self.start_second_leader,
            "clock-jump": self.move_clock_ahead,
        }
        self._leader_pairs: list[tuple[Process, Process]] = []  # the old leader and the new one, while both act
        self._writers: set[Process] = set()  # of those leaders, the ones that have written
        self._ahead: set[Process] = set()  # processes whose clock is ahead, without an effect so far

    def start_second_leader(self) -> None:
        """A second instance starts. The first lost its lease because it is slow, and does not know until it stops."""
        world = self.faults.world
        elected = [process for process in world.processes if process.role.is_elected]
        if not elected:
            return
        old = self.faults.choose("leader", elected)
        if any(process.role.name == old.role.name for process in world.processes if process is not old):
            return
        new = world.start(old.role)
        self._leader_pairs.append((old, new))
        self.faults.counts.count_injected("two-leaders")
        seconds = 2.0 + LONGEST_OVERLAP * self.faults.draw_fraction("overlap")
        self.faults.slow_down(old, seconds)
        world.timers.add(world.clock.now() + seconds, partial(self._stop_old_leader, old, new))

    def _stop_old_leader(self, old: Process, new: Process) -> None:
        if {old, new} <= self._writers:
            self.faults.counts.count_effective("two-leaders")
        self._leader_pairs.remove((old, new))
        self._writers -= {old, new}
        world = self.faults.world
        if old in world.processes and new in world.processes:
            world.stop(old)

    def observe_write(self, process: Process) -> None:
        if any(process in pair for pair in self._leader_pairs):
            self._writers.add(process)

    def move_clock_ahead(self) -> None:
        world = self.faults.world
        if not world.processes:
            return
        process = self.faults.choose("clock", world.processes)
        if process.skew:
            return
        process.skew = 5.0 + FARTHEST_AHEAD * self.faults.draw_fraction("ahead")
        self._ahead.add(process)
        self.faults.counts.count_injected("clock-jump")
        world.timers.add(world.clock.now() + LONGEST_AHEAD, partial(self._set_clock_right, process))

    def _set_clock_right(self, process: Process) -> None:
        process.skew = 0.0
        self._ahead.discard(process)

    def observe_decision(self, process: Process, due: float) -> None:
        """`due` is when the key was due, by the process's own clock."""
        if process in self._ahead and due > self.faults.world.clock.now():
            self._ahead.remove(process)
            self.faults.counts.count_effective("clock-jump")
