"""Which node wins among those with the same, highest score. kube-scheduler picks at random; here the caller chooses.

A tie-breaker gets the rows in name order and returns one of them. Randomness, where wanted, is handed in as a stream.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from wukong.engine.arrays import INFEASIBLE, Index, Ints


class Ties:
    """The first by name."""

    def choose(self, rows: Index) -> int:
        return int(rows[0])

    def pick(self, total: Ints) -> int | None:
        """The row to place on, or None if no node is feasible."""
        if not len(total):
            return None
        row = int(total.argmax())
        return None if total[row] == INFEASIBLE else row


class _TiedRows(Ties):
    def pick(self, total: Ints) -> int | None:
        best = super().pick(total)
        return None if best is None else self.choose(np.flatnonzero(total == total[best]))


class RoundRobin(_TiedRows):
    """The next by name after the one chosen last."""

    def __init__(self) -> None:
        self._last = -1

    def choose(self, rows: Index) -> int:
        after = rows[rows > self._last]
        self._last = int(after[0] if len(after) else rows[0])
        return self._last


class RandomTies(_TiedRows):
    """By a given stream: `draw(n)` gives a number from 0 to n - 1, such as random.Random(seed).randrange."""

    def __init__(self, draw: Callable[[int], int]) -> None:
        self._draw = draw

    def choose(self, rows: Index) -> int:
        return int(rows[self._draw(len(rows))])


FIRST_BY_NAME = Ties()
