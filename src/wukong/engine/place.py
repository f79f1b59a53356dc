"""Placing pods: one, or many look-alikes at once, always on the node with the highest total.

The two ways give the same result. The quick loop for look-alikes holds where a placement changes only the node it
landed on: it looks ahead what the node's score will be after one, two, three more pods, for many nodes in one go.
"""

from __future__ import annotations

import itertools

import numpy as np

from wukong.engine.arrays import INFEASIBLE
from wukong.engine.plugin import Load
from wukong.engine.ties import Ties
from wukong.engine.view import View

_DEEPEST = 64  # levels computed ahead for one node
_WIDEST = 256  # nodes looked ahead for in one go
_MOST_ENTRIES = 4096  # node × level pairs computed in one go


def place_one(view: View, key: str, ties: Ties) -> int | None:
    """Place one pod of the view's template; gives its row, or None if it fits nowhere."""
    view.sync()
    if view.broken and np.count_nonzero(view.feasible) > 1:
        return None  # kube-scheduler fails when it has to score this pod
    row = ties.pick(view.total)
    if row is not None:
        view.snapshot.assume_template(key, view.template, row)
    return row


def place_many(view: View, keys: list[str], ties: Ties) -> list[int]:
    """Place look-alikes one after the other until one does not fit; gives the rows of those that did."""
    view.sync()
    if view.broken:
        found = itertools.takewhile(lambda row: row is not None, (place_one(view, key, ties) for key in keys))
        return [row for row in found if row is not None]
    effect = view.own_effect()
    if effect is not None:
        rows = _quick(view, len(keys), ties, blocks_itself=effect)
        view.snapshot.assume_many(view.template, keys[: len(rows)], rows)
        return rows
    return _steady(view, keys, ties)


def _steady(view: View, keys: list[str], ties: Ties) -> list[int]:
    """One by one, the snapshot told of each; only what the load of the node will be is looked up ahead."""
    ahead = _Lookahead(view, is_told=True)
    rows: list[int] = []
    for key in keys:
        row = ties.pick(view.total)
        if row is None:
            break
        score = ahead.next(row, len(keys) - len(rows))
        rows.append(row)
        view.snapshot.assume_template(key, view.template, row)
        view.sync_own(row, score)
    return rows


def _quick(view: View, count: int, ties: Ties, *, blocks_itself: bool) -> list[int]:
    """Works on the view's own arrays; the snapshot learns of the placements afterwards."""
    total, load_score = view.total, view.load_score
    ahead = _Lookahead(view)
    rows: list[int] = []
    while len(rows) < count:
        row = ties.pick(total)
        if row is None:
            break
        rows.append(row)
        score = None if blocks_itself else ahead.next(row, count - len(rows))
        if score is None:
            view.leave(row)
            total = view.total
        else:
            total[row] += score - load_score[row]
            load_score[row] = score
    return rows


class _Lookahead:
    """What the LOAD parts will say of a node after one, two, ... more pods of the template."""

    def __init__(self, view: View, *, is_told: bool = False) -> None:
        self.view = view
        self.is_told = is_told  # the snapshot already counts the pods placed so far
        self.vector = view.snapshot.vector(view.template)[:, None]
        self.levels: dict[int, int] = {}  # node → pods it has got so far
        self.queues: dict[int, list[int]] = {}  # node → scores to come, the next one last
        self.depth = 2

    def next(self, row: int, remaining: int) -> int | None:
        """The node's LOAD score with one more pod, or None if the pod after that does not fit there."""
        queue = self.queues.get(row)
        if not queue:
            self._fill(row, remaining)
            queue = self.queues[row]
        if not self.is_told:
            self.levels[row] = self.levels.get(row, 0) + 1
        score = queue.pop()
        return None if score == INFEASIBLE else score

    def _fill(self, row: int, remaining: int) -> None:
        """Look ahead for this node and for those likely to be next: with nearly its total, following it by name."""
        total = self.view.total
        near = np.flatnonzero(total >= total[row] - 1)
        after = int(np.searchsorted(near, row, side="right"))
        next_ones = [*near[after : after + _WIDEST].tolist(), *near[: max(0, _WIDEST - len(near) + after)].tolist()]
        rows = [row, *(other for other in dict.fromkeys(next_ones) if other != row and not self.queues.get(other))]
        rows = rows[: 1 + min(_WIDEST, remaining)]
        depth = min(self.depth, max(1, _MOST_ENTRIES // len(rows)), remaining + 1)
        self.depth = min(2 * self.depth, _DEEPEST)
        start = np.array([self.levels.get(other, 0) for other in rows], dtype=np.int64)
        extra = (start[:, None] + np.arange(depth, 0, -1)).reshape(
            -1
        )  # the furthest first: queues are popped from the end
        index = np.repeat(np.array(rows, dtype=np.intp), depth)
        lines = self.view.snapshot.load[:, index] + self.vector * extra
        ok, score = self.view.judge_load(index, Load(lines, extra))
        ahead = np.where(ok, score, INFEASIBLE).reshape(len(rows), depth).tolist()
        self.queues.update(zip(rows, ahead, strict=True))
