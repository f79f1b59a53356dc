"""What nodes hold whose pods ask for absurd amounts, summed exactly and then capped, so that no sum leaves 64 bits.

Anybody who may create a pod can name its node and ask for 8Ei there, ten thousand times. A sum that is capped cannot be
taken apart again, and one that wraps shows a full node as empty. So the few nodes with such a pod have their load kept
as whole numbers of any size beside the column. Kept by Snapshot.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from wukong.api.quantity import LARGEST_AMOUNT
from wukong.engine.arrays import Ints

OVERSIZED = 1 << 45  # 32 TiB: of what is less, a quarter of a million pods add up within 64 bits


def is_oversized(vector: Ints) -> bool:
    """Whether a pod that adds this to its node's load asks for so much that it is counted here."""
    return bool(len(vector)) and max(int(vector.max()), -int(vector.min())) >= OVERSIZED


class _ExactLoad:
    __slots__ = ("pods", "sums")

    def __init__(self, pods: int, sums: list[int]) -> None:
        self.pods, self.sums = pods, sums  # how many oversized pods there are; the load of each line

    def copy(self) -> _ExactLoad:
        return _ExactLoad(self.pods, list(self.sums))


class OversizedLoads:
    def __init__(self) -> None:
        self._by_row: dict[int, _ExactLoad] = {}

    def __bool__(self) -> bool:
        return bool(self._by_row)

    def __contains__(self, row: int) -> bool:
        return row in self._by_row

    def add(self, row: int, column: Ints, vector: Ints, count: int) -> Ints:
        """The load of a node after `count` more pods that each add `vector`, of which some may be negative.

        `column` is its load before; exact, unless the node is kept here.
        """
        load = self._by_row.get(row)
        if load is None:
            load = self._by_row[row] = _ExactLoad(0, column.tolist())
        load.sums += [0] * (len(vector) - len(load.sums))
        for line, amount in enumerate(vector.tolist()):
            load.sums[line] += amount * count
        if is_oversized(vector):
            load.pods += count
        if not load.pods:
            del self._by_row[row]
        return cap(load.sums)

    def change(self, row: int, column: Ints, changes: Iterable[tuple[int, int]]) -> Ints:
        """The load of a node that is kept here, some lines of which change by so much. `column` has as many lines."""
        sums = self._by_row[row].sums
        sums += [0] * (len(column) - len(sums))
        for line, change in changes:
            sums[line] += change
        return cap(sums)

    def move(self, new_of: list[int]) -> None:
        """Nodes have moved from row i to row new_of[i]; those with -1 are gone and hold no pods."""
        self._by_row = {new_of[row]: load for row, load in self._by_row.items() if new_of[row] >= 0}

    def fork(self) -> OversizedLoads:
        copy = OversizedLoads()
        copy._by_row = {row: load.copy() for row, load in self._by_row.items()}
        return copy


def cap(sums: Iterable[int]) -> Ints:
    return np.array([max(-LARGEST_AMOUNT, min(LARGEST_AMOUNT, total)) for total in sums], dtype=np.int64)
