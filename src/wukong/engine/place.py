"""Placing pods: one, or many look-alikes at once, always on the node with the highest total.

Both give the same result. Look-alikes are placed in a batch where a placement changes only the node it landed on: what
the node's score will be after one, two, three more pods is computed ahead, for many nodes in one go.
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
    """Place one pod of the view's template; returns its row, or None if it fits nowhere."""
    view.sync()
    if view.scoring_error and np.count_nonzero(view.feasible) > 1:
        return None  # kube-scheduler fails when it has to score this pod
    row = ties.pick(view.total)
    if row is not None:
        view.snapshot.assume_template(key, view.template, row)
    return row


def place_many(view: View, keys: list[str], ties: Ties) -> list[int]:
    """Place look-alikes one after the other until one does not fit; returns the rows of those that did."""
    view.sync()
    if view.scoring_error:
        placements = itertools.takewhile(lambda row: row is not None, (place_one(view, key, ties) for key in keys))
        return [row for row in placements if row is not None]
    effect = view.predict_own_effect()
    if effect is not None:
        rows = _place_in_batch(view, len(keys), ties, blocks_itself=effect)
        view.snapshot.assume_many(view.template, keys[: len(rows)], rows)
        return rows
    return _place_one_by_one(view, keys, ties)


def _place_one_by_one(view: View, keys: list[str], ties: Ties) -> list[int]:
    """Assumes each placement in the snapshot before the next. Only the LOAD scores are computed ahead."""
    forecast = _LoadScoreForecast(view, counts_placed_pods=True)
    rows: list[int] = []
    for key in keys:
        row = ties.pick(view.total)
        if row is None:
            break
        score = forecast.next_score(row, len(keys) - len(rows))
        rows.append(row)
        view.snapshot.assume_template(key, view.template, row)
        view.sync_own(row, score)
    return rows


def _place_in_batch(view: View, count: int, ties: Ties, *, blocks_itself: bool) -> list[int]:
    """Works on the view's own arrays; the caller assumes the placements in the snapshot afterwards."""
    total, load_score = view.total, view.load_score
    forecast = _LoadScoreForecast(view)
    rows: list[int] = []
    while len(rows) < count:
        row = ties.pick(total)
        if row is None:
            break
        rows.append(row)
        score = None if blocks_itself else forecast.next_score(row, count - len(rows))
        if score is None:
            view.mark_full(row)
            total = view.total
        else:
            total[row] += score - load_score[row]
            load_score[row] = score
    return rows


class _LoadScoreForecast:
    """What the LOAD parts will say of a node after one, two, ... more pods of the template."""

    def __init__(self, view: View, *, counts_placed_pods: bool = False) -> None:
        self.view = view
        self.counts_placed_pods = counts_placed_pods  # the snapshot already counts the pods placed so far
        self.vector = view.snapshot.vector_of(view.template)[:, None]
        self.levels: dict[int, int] = {}  # node → pods it has got so far
        self.queues: dict[int, list[int]] = {}  # node → scores to come, the next one last
        self.depth = 2

    def next_score(self, row: int, remaining: int) -> int | None:
        """The node's LOAD score with one more pod, or None if the pod after that does not fit there."""
        queue = self.queues.get(row)
        if not queue:
            self._fill(row, remaining)
            queue = self.queues[row]
        if not self.counts_placed_pods:
            self.levels[row] = self.levels.get(row, 0) + 1
        score = queue.pop()
        return None if score == INFEASIBLE else score

    def _fill(self, row: int, remaining: int) -> None:
        """Look ahead for this node and for those likely to be next: with nearly its total, following it by name."""
        total = self.view.total
        near = np.flatnonzero(total >= total[row] - 1)
        after = int(np.searchsorted(near, row, side="right"))
        likely = [*near[after : after + _WIDEST].tolist(), *near[: max(0, _WIDEST - len(near) + after)].tolist()]
        rows = [
            row,
            *(candidate for candidate in dict.fromkeys(likely) if candidate != row and not self.queues.get(candidate)),
        ]
        rows = rows[: 1 + min(_WIDEST, remaining)]
        depth = min(self.depth, max(1, _MOST_ENTRIES // len(rows)), remaining + 1)
        self.depth = min(2 * self.depth, _DEEPEST)
        start = np.array([self.levels.get(number, 0) for number in rows], dtype=np.int64)
        extra = (start[:, None] + np.arange(depth, 0, -1)).reshape(
            -1
        )  # the furthest first: queues are popped from the end
        index = np.repeat(np.array(rows, dtype=np.intp), depth)
        lines = self.view.snapshot.load[:, index] + self.vector * extra
        ok, score = self.view.evaluate_load(index, Load(lines, extra))
        scores = np.where(ok, score, INFEASIBLE).reshape(len(rows), depth).tolist()
        self.queues.update(zip(rows, scores, strict=True))
