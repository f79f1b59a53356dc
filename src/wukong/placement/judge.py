"""A plan on a fleet: which of the nodes offered are refused and why, and how many points the others get.

Called by replies.extender and by `wukong explain`. What does not depend on the pod is worked out once per plan and
fleet, rule by rule (in slices: see slices.py), and kept until the fleet changes. Arrays over the whole fleet have one
row more than it: the last stands for a node we have not heard of yet, which everything is neutral about. Only a
strategy may refuse it: it is neither known to be spot nor to be on-demand.

    points  = Σ weight · points of a term / Σ weight      0–100; terms: preferences, score rules, spot-preferred
    score   = points / 10, rounded half up                0–10, what kube-scheduler takes
    of the nodes tied at the best score, those that the prioritize rules rank lower get one less
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from functools import partial
from math import ceil
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from wukong.api.core import Pod
from wukong.engine.arrays import Floats, Index, Ints, Mask
from wukong.placement.compile import Floor, Plan, Preference, Use
from wukong.placement.fleet import Fleet, Nodes
from wukong.placement.rule import NEUTRAL
from wukong.placement.slices import Slices, finish

BEST = 10
SPOT_WEIGHT = 100  # what spot-preferred counts beside the other terms
_CHOOSE_SPOT = ("spot-only", "spot-first", "on-demand-first")  # the strategies by which a pod is sent to spot nodes
_MOST_KEPT = 4096  # answers that are kept, of one sort
_MOST_ROWS = 1 << 21  # of all their arrays: 400 plans on 5,000 nodes, about 35 MB
_LONGEST_FAULT = 1000
T = TypeVar("T", Floats, Mask)
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Reason(NamedTuple):
    """Why nodes are refused. `kind` is one of a few words, for counting; final: preemption cannot help."""

    kind: str  # leaving, resources, rule, capacity, stale-mirror
    text: str
    is_final: bool = True


class PolicyRefusal(NamedTuple):
    reason: str
    mask: Mask  # [offered]
    is_final: bool
    kind: str


class Judgement(NamedTuple):
    """Which of the nodes offered are kept, and why the others are not: each is kept or in one refusal."""

    kept: Mask  # [offered]
    refusals: tuple[PolicyRefusal, ...]
    is_fallback: bool = False  # the capacity wanted first is not among them; the other is taken


class Term(NamedTuple):
    """A part of the points: named as in the policy."""

    name: str
    weight: int
    points: Floats  # [fleet and one]


class _PlanResult(NamedTuple):
    """What holds for every pod of a plan, as long as the fleet is the same."""

    plan: Plan
    codes: Ints  # [fleet and one] 0: not refused, else 1 + the position of its reason
    reasons: tuple[Reason, ...]
    spot: Mask  # [fleet and one]
    scores: Ints  # [fleet and one] 0–10


class _Kept(Generic[K, V]):
    """Values with as many rows as there are nodes. If there are too many, those not asked for lately are dropped."""

    def __init__(self) -> None:
        self._values: OrderedDict[K, V] = OrderedDict()

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: K) -> V | None:
        value = self._values.get(key)
        if value is not None:
            self._values.move_to_end(key)
        return value

    def put(self, key: K, value: V, rows: int) -> None:
        """All values have the same number of rows: they are about one fleet."""
        self._values[key] = value
        self._values.move_to_end(key)
        while len(self._values) > min(_MOST_KEPT, 1 + _MOST_ROWS // (rows + 1)):
            self._values.popitem(last=False)

    def drop(self, key: K) -> None:
        self._values.pop(key, None)

    def clear(self) -> None:
        self._values.clear()


class Judge:
    """Filters and scores the nodes of a fleet by a plan. Rules that failed are noted in `faults` and left out.

    What is kept is of one fleet, and bounded: there may be ten thousand plans, and an array has a row for every node.
    """

    def __init__(self) -> None:
        self.faults: dict[str, str] = {}  # rule → what it raised last
        self._fleet, self._nodes = Fleet(Nodes(())), Nodes(())  # what is kept is about these
        self._steady_answers: _Kept[tuple[int, type], tuple[Use, npt.NDArray[Any] | None]] = _Kept()
        self._results: _Kept[tuple[int, bool], _PlanResult] = _Kept()  # by plan, and whether nodes are stale

    def forget(self) -> None:
        """Drop everything kept."""
        self._results.clear()
        self._steady_answers.clear()

    def forget_plan(self, plan: Plan) -> None:
        """Drop what is kept about a plan that nobody will ask about again."""
        for is_stale in (False, True):
            self._results.drop((id(plan), is_stale))
        for use in (*plan.filters, *plan.scores, *plan.ranks):
            for dtype in (np.bool_, np.float64):
                self._steady_answers.drop((id(use), dtype))

    def count_kept(self) -> int:
        """How many answers are kept."""
        return len(self._results) + len(self._steady_answers)

    # ---- refusing

    def filter(
        self,
        plan: Plan,
        fleet: Fleet,
        rows: Index,
        pod: Pod,
        needed: Mapping[str, int] | None,
        strategy: str,
        stale_seconds: float = 0.0,
    ) -> Judgement:
        return finish(self.filter_in_slices(plan, fleet, rows, pod, needed, strategy, stale_seconds))

    def filter_in_slices(
        self,
        plan: Plan,
        fleet: Fleet,
        rows: Index,
        pod: Pod,
        needed: Mapping[str, int] | None,
        strategy: str,
        stale_seconds: float = 0.0,
    ) -> Slices[Judgement]:
        """`needed` is what the pod asks for, by resource (None: leave floors aside); `strategy` the plan's, or what the
        pod's priority makes of it. `stale_seconds` is how old the nodes are, where they are too old to trust a spot
        node to be there still: a strategy that would choose one refuses them all."""
        result = yield from self._judge_in_slices(plan, fleet, pod)
        codes, reasons = result.codes, list(result.reasons)
        for floor in plan.floors if needed is not None else ():
            # Final: kube-scheduler, which does not know the floor, would find nobody to evict, and fail on that.
            reasons.append(Reason("resources", f"less than {floor.text} free ({plan.name})"))
            lacking = ~_pad(meets_floor(floor, fleet, needed or {}), True)
            codes = np.where((codes == 0) & lacking, len(reasons), codes)
        offered = codes[rows]
        kept = offered == 0
        refusals = [_to_refusal(reasons[code - 1], offered == code) for code in np.unique(offered).tolist() if code]
        if stale_seconds and strategy in _CHOOSE_SPOT:
            kept = _without_spot(plan, strategy, kept, result.spot[rows], stale_seconds, refusals)
        wanted = result.spot[rows] if strategy.startswith("spot-") else ~result.spot[rows]
        return _apply_strategy(plan, strategy, kept, wanted & (rows >= 0), refusals)

    def _find_refusals(self, plan: Plan, fleet: Fleet, pod: Pod) -> Slices[tuple[Ints, tuple[Reason, ...]]]:
        """The refusals that preemption cannot mend and no other pod changes: leaving nodes, then filter rules."""
        reasons = [Reason("leaving", f"node is leaving: {reason}") for reason in fleet.nodes.leaving_reasons]
        codes = np.append(fleet.nodes.leaving_codes, 0)
        for use in plan.filters:
            refused = self._ask_rule(use, fleet, partial(use.rule.refuses, use.config, fleet, pod), np.bool_)
            if refused is not None:
                reasons.append(Reason("rule", f"rule {use.rule.name}: {_reason_of(use)} ({plan.name})"))
                codes[:-1] = np.where((codes[:-1] == 0) & refused, len(reasons), codes[:-1])
            yield
        return codes, tuple(reasons)

    # ---- scoring

    def score(self, plan: Plan, fleet: Fleet, rows: Index, pod: Pod, is_stale: bool = False) -> Ints:
        return finish(self.score_in_slices(plan, fleet, rows, pod, is_stale))

    def score_in_slices(self, plan: Plan, fleet: Fleet, rows: Index, pod: Pod, is_stale: bool = False) -> Slices[Ints]:
        """0 to 10 for each node offered. If the nodes are stale, none gets points for being spot."""
        scores = (yield from self._judge_in_slices(plan, fleet, pod, is_stale)).scores[rows]
        if plan.ranks and len(scores):
            return (yield from self._apply_ranks(plan, fleet, rows, pod, scores))
        return scores

    def build_terms(self, plan: Plan, fleet: Fleet, pod: Pod, is_stale: bool = False) -> list[Term]:
        """What the points are made of."""
        return finish(self._build_terms_in_slices(plan, fleet, pod, is_stale))

    def _build_terms_in_slices(self, plan: Plan, fleet: Fleet, pod: Pod, is_stale: bool) -> Slices[list[Term]]:
        terms = [
            Term(f"preferred {preference.resource}", preference.weight, _pad(score_usage(preference, fleet)))
            for preference in plan.preferences
        ]
        for use in plan.scores:
            points = self.compute_points(use, fleet, pod)
            if points is not None:
                terms.append(Term(use.rule.name, use.weight, points))
            yield
        if plan.strategy == "spot-preferred" and not is_stale:
            terms.append(Term(plan.strategy, SPOT_WEIGHT, _pad(np.where(fleet.is_spot, 100.0, 0.0))))
        return terms

    def compute_points(self, use: Use, fleet: Fleet, pod: Pod) -> Floats | None:
        """A rule's points, neutral for nodes it knows nothing about; None if the rule failed."""
        answer = self._ask_rule(use, fleet, partial(use.rule.points, use.config, fleet, pod), np.float64)
        if answer is None:
            return None
        return _pad(np.where(np.isnan(answer), NEUTRAL, np.clip(answer, 0, 100)))

    def _apply_ranks(self, plan: Plan, fleet: Fleet, rows: Index, pod: Pod, scores: Ints) -> Slices[Ints]:
        best = int(scores.max())
        leaders = scores == best
        tied = leaders.copy()
        for use in plan.ranks:
            points = self.compute_points(use, fleet, pod)
            if points is not None and tied.any():
                here = points[rows]
                tied &= here == here[tied].max()
            yield
        if best == 0:  # nobody can get less: the leaders among them get more
            return np.where(tied & ~(tied.all()), 1, scores)
        return np.where(leaders & ~tied, best - 1, scores)

    # ---- keeping

    def _judge_in_slices(self, plan: Plan, fleet: Fleet, pod: Pod, is_stale: bool = False) -> Slices[_PlanResult]:
        self._keep_only(fleet)
        result = self._results.get((id(plan), is_stale))
        if result is None or result.plan is not plan:
            codes, reasons = yield from self._find_refusals(plan, fleet, pod)
            terms = yield from self._build_terms_in_slices(plan, fleet, pod, is_stale)
            scores = to_scores(terms, fleet.size + 1)
            result = _PlanResult(plan, codes, reasons, _pad(fleet.is_spot, False), scores)
            if self._fleet is fleet and not _is_per_pod(plan):  # another one may have come between two slices
                self._results.put((id(plan), is_stale), result, fleet.size)
        return result

    def _keep_only(self, fleet: Fleet) -> None:
        """Drop what is about other fleets: they do not come again, and hold every node they were made of."""
        if self._fleet is not fleet:
            self._fleet = fleet
            self._results.clear()
        if self._nodes is not fleet.nodes:
            self._nodes = fleet.nodes
            self._steady_answers.clear()

    def _ask_rule(self, use: Use, fleet: Fleet, ask: Callable[[], object], dtype: type) -> npt.NDArray[Any] | None:
        """A rule's answer; None if it failed. One that depends on nodes alone is kept until they change."""
        if not use.rule.is_steady or self._nodes is not fleet.nodes:
            return self._call_rule(use, fleet, ask, dtype)
        kept = self._steady_answers.get((id(use), dtype))
        if kept is None or kept[0] is not use:
            kept = use, self._call_rule(use, fleet, ask, dtype)
            self._steady_answers.put((id(use), dtype), kept, fleet.size)
        return kept[1]

    def _call_rule(self, use: Use, fleet: Fleet, ask: Callable[[], object], dtype: type) -> npt.NDArray[Any] | None:
        """A rule may come from another package: whatever it does, the pod is placed."""
        try:
            answer: npt.NDArray[Any] = np.asarray(ask())
            if not np.can_cast(answer.dtype, dtype):  # numbers for a mask: NaN would refuse
                raise TypeError(f"expected {np.dtype(dtype)}, got {answer.dtype}")
            answer = answer.astype(dtype, copy=False)
            if answer.shape != (fleet.size,):
                raise ValueError(f"expected one answer for each of {fleet.size} nodes, got shape {answer.shape}")
        except Exception as error:
            self.faults[use.rule.name] = f"{type(error).__name__}: {error}"[:_LONGEST_FAULT]
            return None
        return answer


def meets_floor(floor: Floor, fleet: Fleet, needed: Mapping[str, int]) -> Mask:
    """[node] free ≥ max(what the floor asks, what the pod asks), for one of the floor's resources."""
    enough = np.zeros(fleet.size, dtype=np.bool_)
    for name, least in floor.amounts.items():
        free = fleet.free(name)
        if free is not None:
            enough |= free >= max(least, needed.get(name, 0))
        elif max(least, needed.get(name, 0)) == 0:
            enough[:] = True
    return enough


def node_meets_floor(
    floor: Floor, free: Mapping[str, Ints | None], row: int, needed: Mapping[str, int], freed: Mapping[str, int]
) -> bool:
    """The same of one node on which so much was `freed`. `free` is that of the fleet, by resource."""
    for name, least in floor.amounts.items():
        column, wanted = free[name], max(least, needed.get(name, 0))
        if wanted == 0 if column is None else int(column[row]) + freed.get(name, 0) >= wanted:
            return True
    return False


def score_usage(preference: Preference, fleet: Fleet) -> Floats:
    """100 for an idle node, falling to 50 at the threshold; from there 25, falling to 0 for a full one; unknown: 50."""
    used = np.clip(fleet.used(preference.resource), 0, 100)
    limit = preference.threshold
    below = 100 - 50 * used / limit if limit > 0 else used
    above = 25 * (100 - used) / (100 - limit) if limit < 100 else np.zeros_like(used)
    points: Floats = np.where(np.isnan(used), NEUTRAL, np.where(used < limit, below, above))
    return points


def to_scores(terms: list[Term], size: int) -> Ints:
    exact = np.round(to_points(terms, size), 9)  # 65 points may have come out as 64.99999999999999
    return np.floor(exact / BEST + 0.5).astype(np.int64)


def to_points(terms: list[Term], size: int) -> Floats:
    points: Floats = np.zeros(size)
    for term in terms:
        points += term.points * term.weight
    # Divided once: what is exact before stays exact, and a score of exactly one half is rounded up as promised.
    return points / (sum(term.weight for term in terms) or 1)


def _apply_strategy(plan: Plan, strategy: str, kept: Mask, wanted: Mask, refusals: list[PolicyRefusal]) -> Judgement:
    """Spot or on-demand only, or first: then the other kind is refused while one of the wanted is left."""
    wanted_name, _, how = strategy.rpartition("-")
    if how not in ("only", "first"):
        return Judgement(kept, tuple(refusals))
    kept_wanted = kept & wanted
    kept_others = kept & ~wanted
    if how == "first" and not kept_wanted.any():
        return Judgement(kept, tuple(refusals), is_fallback=bool(kept.any()))
    if kept_others.any():
        left = f", and {wanted_name} nodes are left" if how == "first" else ""
        refusals.append(
            _to_refusal(Reason("capacity", f"not {wanted_name}: {strategy}{left} ({plan.name})"), kept_others)
        )
    return Judgement(kept_wanted, tuple(refusals))


def _without_spot(
    plan: Plan, strategy: str, kept: Mask, spot: Mask, stale_seconds: float, refusals: list[PolicyRefusal]
) -> Mask:
    """What is kept when spot nodes cannot be trusted; adds the refusal of the others."""
    refused = kept & spot
    if refused.any():
        age = f"the node watch is {ceil(stale_seconds)} s old"
        refusals.append(_to_refusal(Reason("stale-mirror", f"spot, and {age}: {strategy} ({plan.name})"), refused))
    return kept & ~spot


def _to_refusal(reason: Reason, mask: Mask) -> PolicyRefusal:
    return PolicyRefusal(reason.text, mask, reason.is_final, reason.kind)


def _reason_of(use: Use) -> str:
    try:
        return str(use.rule.reason(use.config))
    except Exception:  # somebody else's rule
        return "refused"


def _is_per_pod(plan: Plan) -> bool:
    return any(use.rule.is_per_pod for use in (*plan.filters, *plan.scores))


def _pad(column: T, last: float | bool = NEUTRAL) -> T:
    return np.append(column, np.array([last], dtype=column.dtype))
