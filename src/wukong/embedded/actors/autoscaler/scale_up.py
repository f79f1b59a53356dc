"""How many nodes of which group would take the pods that wait. Called by controller.py with a snapshot to try on.

As cluster-autoscaler does it: each group by itself, the largest pods first, and by the scheduler's filters alone, so
preferences buy nothing. A pod goes to a new node that was opened for another, or opens one more. Of the groups that
help somebody those of the largest weight count, and the one of them that wastes the least is taken; chance decides
among equals.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from math import ceil
from typing import NamedTuple

import numpy as np

from wukong.api.node_groups import NodeGroup
from wukong.api.quantity import parse_quantity, scheduler_amount
from wukong.embedded.actors.autoscaler.new_node import DEFAULT_CAPACITY, add_new_nodes
from wukong.embedded.world.clock import Chance
from wukong.embedded.world.objects import Pod
from wukong.engine import Scheduler, Snapshot
from wukong.engine.new_nodes import NewNode
from wukong.engine.view import View


class Option(NamedTuple):
    """So many more nodes of a group, which would take these pods."""

    group: NodeGroup
    nodes: int
    pods: list[Pod]
    waste: float  # of cpu and of memory, in shares of the new nodes' capacity, added up


class Candidate(NamedTuple):
    """A group that may grow by so many nodes. `upcoming` nodes in the snapshot are not new any more."""

    group: NodeGroup
    new_node: NewNode
    most: int


def choose_option(
    snapshot: Snapshot, candidates: Sequence[Candidate], waiting: list[Pod], upcoming: int, chance: Chance, now: float
) -> Option | None:
    """The option that wastes the least; None if no group would help anybody."""
    options = [
        option
        for candidate in candidates
        if (option := Estimate(snapshot, candidate, upcoming).run(waiting)) is not None
    ]
    if not options:
        return None
    rank = min((-option.group.weight, option.waste) for option in options)
    best = [option for option in options if (-option.group.weight, option.waste) == rank]
    return best[int(chance.share("expander", now) * len(best))]


class Estimate:
    """Bin packing of pods on new nodes of one group, on a fork of the snapshot."""

    def __init__(self, snapshot: Snapshot, candidate: Candidate, upcoming: int) -> None:
        self.candidate, self.upcoming = candidate, upcoming
        self.snapshot = snapshot.fork()
        self.scheduler = Scheduler(self.snapshot)
        self.opened: list[int] = []  # rows of the new nodes, in order
        self.used: set[int] = set()  # those of them that took a pod
        self.placed: list[Pod] = []
        self._turn = 0  # the place in `opened` that took a pod last: it is tried first

    def run(self, waiting: list[Pod]) -> Option | None:
        for alike in self._order(waiting):
            rest = self._place_on_opened(alike)
            self._place_on_new(rest)
        if not self.placed:
            return None
        return Option(self.candidate.group, len(self.used), self.placed, self._waste())

    def _order(self, waiting: list[Pod]) -> list[list[Pod]]:
        """Pods that are alike together, the largest first."""
        alike: dict[int, list[Pod]] = {}
        for pod in waiting:
            alike.setdefault(self.snapshot.table.intern(pod).number, []).append(pod)
        return sorted(alike.values(), key=lambda pods: -self._size(pods[0]))

    def _size(self, pod: Pod) -> float:
        """A pod's cpu and memory in shares of what a new node can allocate, added up."""
        needed = self.snapshot.table.intern(pod).requests.needed
        allocatable = self.candidate.new_node.example.allocatable
        names = (name for name in ("cpu", "memory") if allocatable.get(name))
        return sum(needed.get(name, 0) / allocatable[name] for name in names)

    def _place_on_opened(self, pods: list[Pod]) -> list[Pod]:
        """Give those that fit on no new node so far."""
        for index, pod in enumerate(pods):
            row = self._find_opened(self._view(pod))
            if row is None:
                return pods[index:]
            self._place(pod, row)
        return []

    def _find_opened(self, view: View) -> int | None:
        for step in range(len(self.opened)):
            turn = (self._turn + step) % len(self.opened)
            if view.feasible[self.opened[turn]]:
                self._turn = turn
                return self.opened[turn]
        return None

    def _place_on_new(self, pods: list[Pod]) -> None:
        """On the last node, or on one more. Where an empty one does not help, another would not either."""
        rest, taken = deque(pods), 0  # `taken`: how many of these pods a node took that was opened for them
        while rest:
            view = self._view(rest[0])
            if self.opened and view.feasible[self.opened[-1]]:
                self._place(rest.popleft(), self.opened[-1])
                taken += 1
                continue
            left = self.candidate.most - len(self.opened)
            if left < 1 or (self.opened and self.opened[-1] not in self.used):
                return
            if taken and self.may_open_many(view):
                self._fill_many(rest, taken, min(left, ceil(len(rest) / taken)))
                continue
            self._open(1)
            taken = 0

    def may_open_many(self, view: View) -> bool:
        """Whether each new node takes as many of these pods as the last did, whatever the others hold."""
        return view.predict_own_effect() is not None

    def _fill_many(self, rest: deque[Pod], each: int, count: int) -> None:
        """Open so many nodes and give each as many of the pods: as one after the other, but in one go."""
        for row in self._open(count):
            for _ in range(min(each, len(rest))):
                self._place(rest.popleft(), row)

    def _open(self, count: int) -> list[int]:
        nodes = [self.candidate.new_node] * count
        names = add_new_nodes(self.snapshot, nodes, self.upcoming + len(self.opened))
        rows = [self.snapshot.row_of[name] for name in names]
        self.opened += rows
        return rows

    def _view(self, pod: Pod) -> View:
        view = self.scheduler.view_of(pod)
        view.sync()
        return view

    def _place(self, pod: Pod, row: int) -> None:
        self.snapshot.assume_template(pod.key, self.snapshot.table.intern(pod), row)
        self.placed.append(pod)
        self.used.add(row)

    def _waste(self) -> float:
        capacity = {**DEFAULT_CAPACITY, **self.candidate.group.template.capacity}
        waste = 0.0
        for name in ("cpu", "memory"):
            offered = scheduler_amount(name, parse_quantity(capacity[name])) * len(self.used)
            needed = sum(self.snapshot.table.intern(pod).requests.needed.get(name, 0) for pod in self.placed)
            waste += (offered - needed) / offered if offered else 0.0
        return waste


def place_where_they_fit(snapshot: Snapshot, waiting: list[Pod]) -> list[Pod]:
    """Count the pods that fit on a node there is, or is about to be, as placed there. Gives the others.

    A pod for which others were preempted is counted on the node it was promised.
    """
    scheduler, rest = Scheduler(snapshot), list[Pod]()
    for pod in waiting:
        promised = snapshot.row_of.get(pod.status.nominated_node_name, -1)
        view = scheduler.view_of(pod)
        view.sync()
        rows = np.flatnonzero(view.feasible)
        row = promised if promised >= 0 else int(rows[0]) if len(rows) else -1
        if row < 0:
            rest.append(pod)
        else:
            snapshot.assume_template(pod.key, view.template, row)
    return rest
