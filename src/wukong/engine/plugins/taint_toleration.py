"""TaintToleration: no pod goes where a taint it does not tolerate forbids it; fewer soft taints score higher."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from wukong.api.core import Toleration
from wukong.engine.arrays import Ints, Mask, Rows
from wukong.engine.nodes import NodeRow, TaintKey
from wukong.engine.plugin import FilterPart, Load, Plugin, Reason, ScorePart, lowest_is_best
from wukong.engine.view import View
from wukong.semantics.tolerations import HARD_EFFECTS, tolerates

REASON = Reason("node(s) had untolerated taint(s)")


class TaintToleration(Plugin):
    name = "TaintToleration"

    def filter(self, view: View) -> FilterPart | None:
        refused = find_untolerated(view.snapshot.rows, view.template.tolerations)
        return TaintFilter(refused) if refused.any() else None

    def score(self, view: View) -> ScorePart | None:
        tolerations = [entry for entry in view.template.tolerations if entry.effect in ("", "PreferNoSchedule")]

        def count_soft(taints: tuple[TaintKey, ...]) -> int:
            return sum(1 for taint in taints if taint[2] == "PreferNoSchedule" and not is_tolerated(taint, tolerations))

        return TaintScore(_judge_taints(view.snapshot.rows, count_soft))


class TaintFilter(FilterPart):
    def __init__(self, refused: Mask) -> None:
        self.refused = refused

    def failing(self, rows: Rows, load: Load) -> list[tuple[Reason, Mask]]:
        return [(REASON, self.refused[rows])]


class TaintScore(ScorePart):
    normalise = staticmethod(lowest_is_best)

    def __init__(self, counts: Ints) -> None:
        self.counts = counts  # [node] PreferNoSchedule taints the pod does not tolerate

    def raw(self, rows: Rows, load: Load) -> Ints:
        return self.counts[rows]


def find_untolerated(rows: Sequence[NodeRow], tolerations: Sequence[Toleration]) -> Mask:
    """[node] whether it has a taint that keeps pods out that these tolerations do not cover."""

    def is_refused(taints: tuple[TaintKey, ...]) -> int:
        return any(taint[2] in HARD_EFFECTS and not is_tolerated(taint, tolerations) for taint in taints)

    return _judge_taints(rows, is_refused).astype(np.bool_)


def is_tolerated(taint: TaintKey, tolerations: Sequence[Toleration]) -> bool:
    return any(tolerates(toleration, *taint) for toleration in tolerations)


def _judge_taints(rows: Sequence[NodeRow], judge: Callable[[tuple[TaintKey, ...]], int]) -> Ints:
    """Many nodes share few sets of taints: judge each set once."""
    known: dict[tuple[TaintKey, ...], int] = {(): judge(())}
    answers = []
    for row in rows:
        answer = known.get(row.taints)
        if answer is None:
            answer = known[row.taints] = judge(row.taints)
        answers.append(answer)
    return np.array(answers, dtype=np.int64)
