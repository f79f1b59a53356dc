"""TaintToleration: no pod goes where a taint it does not tolerate forbids it; fewer soft taints score higher."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from wukong.api.core import Toleration
from wukong.engine.arrays import Ints, Mask, Rows
from wukong.engine.nodes import NodeRow, NodeRows, TaintKey
from wukong.engine.plugin import FilterPart, Load, Plugin, Reason, ScorePart, lowest_is_best
from wukong.engine.refusal_detail import RefusalDetail, describe_taint
from wukong.engine.view import View
from wukong.semantics.tolerations import HARD_EFFECTS, tolerates

REASON = Reason("node(s) had untolerated taint(s)")
_NO_TAINT = -1


class TaintToleration(Plugin):
    name = "TaintToleration"

    def filter(self, view: View) -> FilterPart | None:
        rows, tolerations = view.snapshot.rows, view.template.tolerations
        if view.profile.version.taint_named_in_reason:
            return NamedTaintFilter.of(rows, tolerations)
        refused = find_untolerated(rows, tolerations)
        return TaintFilter(rows, tolerations, refused) if refused.any() else None

    def score(self, view: View) -> ScorePart | None:
        tolerations = [entry for entry in view.template.tolerations if entry.effect in ("", "PreferNoSchedule")]

        def count_soft(taints: tuple[TaintKey, ...]) -> int:
            return sum(1 for taint in taints if taint[2] == "PreferNoSchedule" and not is_tolerated(taint, tolerations))

        return TaintScore(_judge_taints(view.snapshot.rows, count_soft))


class _TaintsPart(FilterPart):
    """What both filters describe alike: all taints of a node that the pod does not tolerate."""

    def __init__(self, node_rows: Sequence[NodeRow], tolerations: Sequence[Toleration]) -> None:
        self.node_rows, self.tolerations = node_rows, tolerations

    def describe(self, rows: list[int]) -> dict[int, list[RefusalDetail]]:
        return {row: [_describe(taint) for taint in self._list_untolerated(row)] for row in rows}

    def _list_untolerated(self, row: int) -> list[TaintKey]:
        hard = (taint for taint in self.node_rows[row].taints if taint[2] in HARD_EFFECTS)
        return [taint for taint in hard if not is_tolerated(taint, self.tolerations)]


class TaintFilter(_TaintsPart):
    def __init__(self, node_rows: Sequence[NodeRow], tolerations: Sequence[Toleration], refused: Mask) -> None:
        super().__init__(node_rows, tolerations)
        self.refused = refused

    def failing(self, rows: Rows, load: Load) -> list[tuple[Reason, Mask]]:
        return [(REASON, self.refused[rows])]


class NamedTaintFilter(_TaintsPart):
    """As before 1.34: the reason names the first taint of a node that the pod does not tolerate."""

    def __init__(
        self, node_rows: Sequence[NodeRow], tolerations: Sequence[Toleration], reasons: list[Reason], numbers: Ints
    ) -> None:
        super().__init__(node_rows, tolerations)
        self.reasons = reasons
        self.numbers = numbers  # [node] which of the reasons refuses it, or none

    @classmethod
    def of(cls, rows: NodeRows, tolerations: Sequence[Toleration]) -> NamedTaintFilter | None:
        number_of: dict[str, int] = {}

        def find_reason(taints: tuple[TaintKey, ...]) -> int:
            for taint in taints:
                if taint[2] in HARD_EFFECTS and not is_tolerated(taint, tolerations):
                    text = f"node(s) had untolerated taint {{{taint[0]}: {taint[1]}}}"
                    return number_of.setdefault(text, len(number_of))
            return _NO_TAINT

        numbers = _judge_taints(rows, find_reason)
        return cls(rows, tolerations, [Reason(text) for text in number_of], numbers) if number_of else None

    def failing(self, rows: Rows, load: Load) -> list[tuple[Reason, Mask]]:
        numbers = self.numbers[rows]
        return [(reason, numbers == number) for number, reason in enumerate(self.reasons)]


class TaintScore(ScorePart):
    normalise = staticmethod(lowest_is_best)

    def __init__(self, counts: Ints) -> None:
        self.counts = counts  # [node] PreferNoSchedule taints the pod does not tolerate

    def raw(self, rows: Rows, load: Load) -> Ints:
        return self.counts[rows]


def find_untolerated(rows: NodeRows, tolerations: Sequence[Toleration]) -> Mask:
    """[node] whether it has a taint that keeps pods out that these tolerations do not cover."""

    def is_refused(taints: tuple[TaintKey, ...]) -> int:
        return any(taint[2] in HARD_EFFECTS and not is_tolerated(taint, tolerations) for taint in taints)

    return _judge_taints(rows, is_refused).astype(np.bool_)


def _describe(taint: TaintKey) -> RefusalDetail:
    key, value, effect = taint
    fields = (("key", key), ("value", value), ("effect", effect))
    return RefusalDetail("taint", f"taint {describe_taint(key, value, effect)}", fields)


def is_tolerated(taint: TaintKey, tolerations: Sequence[Toleration]) -> bool:
    return any(tolerates(toleration, *taint) for toleration in tolerations)


def _judge_taints(rows: NodeRows, judge: Callable[[tuple[TaintKey, ...]], int]) -> Ints:
    """Most nodes have no taints, and the others share few sets of them: judge each set once."""
    answers = np.full(len(rows), judge(()), np.int64)
    known: dict[tuple[TaintKey, ...], int] = {}
    for number, taints in rows.taints_by_row:
        if taints not in known:
            known[taints] = judge(taints)
        answers[number] = known[taints]
    return answers
