"""Somebody who decides, for tests of the shell: by the node's name, quickly and predictably."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from wukong.api.core import Node, Pod
from wukong.placement.slices import Slices
from wukong.serve.extender.offered_nodes import Rows
from wukong.serve.extender.response import Mask, Scores

BUSY = 'cpu is used to 93%, "hot"'  # a reason that has to be escaped
LEAVING = "leaves: spot interruption"


class Refusal(NamedTuple):
    reason: str
    mask: Mask
    is_final: bool


class FilterResult(NamedTuple):
    kept: Mask
    refusals: tuple[Refusal, ...]


class Fleet:
    def __init__(self, names: list[str]) -> None:
        self.names = names
        self.row_of = {name: row for row, name in enumerate(names)}
        kinds = [len(name) % 4 for name in names]
        self.busy = np.array([kind == 1 for kind in kinds] + [False])
        self.leaving = np.array([kind == 2 for kind in kinds] + [False])
        self.score = np.array([len(name) % 11 for name in names] + [5])


class Extender:
    """Pods named `any…` may go anywhere; others not to busy or leaving nodes."""

    def __init__(self, names: list[str]) -> None:
        self.known = Fleet(names)
        self.asked_of: list[int] = []  # sizes of the fleets made of nodes sent

    def fleet_in_slices(self, now: float) -> Slices[Fleet]:
        yield
        return self.known

    def fleet_of(self, nodes: Sequence[Node | str], now: float) -> Fleet:
        self.asked_of.append(len(nodes))
        return Fleet([node if isinstance(node, str) else node.metadata.name for node in nodes])

    def filter_in_slices(self, pod: Pod, fleet: Fleet, rows: Rows, now: float) -> Slices[FilterResult]:
        yield
        if pod.metadata.name == "broken":
            raise ZeroDivisionError("a mistake of ours")
        if pod.metadata.name.startswith("any"):
            return FilterResult(np.ones(len(rows), dtype=np.bool_), ())
        busy, leaving = fleet.busy[rows], fleet.leaving[rows]
        return FilterResult(~(busy | leaving), (Refusal(BUSY, busy, False), Refusal(LEAVING, leaving, True)))

    def prioritize_in_slices(self, pod: Pod, fleet: Fleet, rows: Rows, now: float) -> Slices[Scores]:
        yield
        scores: Scores = fleet.score[rows]
        return scores

    def preempt_in_slices(
        self, pod: Pod, candidates: Mapping[str, list[Pod] | list[str]], now: float
    ) -> Slices[list[str]]:
        yield
        return [node for node in candidates if len(node) % 2]
