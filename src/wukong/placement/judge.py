"""A plan on a fleet: which of the nodes offered are refused and why, and how many points the others get.

Called by replies.extender and by `wukong explain`. What does not depend on the pod is worked out once per plan and
fleet and kept until the fleet changes. Arrays over the whole fleet have one row more than it: the last stands for a
node we have not heard of yet, which everything is neutral about. Only a strategy may refuse it: it is neither known to
be spot nor to be on-demand.

    points  = Σ weight · points of a term / Σ weight      0–100; terms: preferences, score rules, spot-preferred
    score   = points / 10, rounded half up                0–10, what kube-scheduler takes
    of the nodes tied at the best score, those that the prioritize rules rank lower get one less
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from math import ceil
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from wukong.api.core import Pod
from wukong.engine.arrays import Floats, Index, Ints, Mask
from wukong.placement.compile import Floor, Plan, Preference, Use
from wukong.placement.fleet import Fleet, Nodes
from wukong.placement.rule import NEUTRAL

BEST = 10
SPOT_WEIGHT = 100  # what spot-preferred counts beside the other terms
_CHOOSE_SPOT = ("spot-only", "spot-first", "on-demand-first")  # the strategies by which a pod is sent to spot nodes
T = TypeVar("T", Floats, Mask)


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
    """What becomes of the nodes offered. RefusedEvictions are disjoint, and together with `kept` cover all of them."""

    kept: Mask  # [offered]
    refusals: tuple[PolicyRefusal, ...]
    is_fallback: bool = False  # the capacity wanted first is not among them; the other is taken


class Term(NamedTuple):
    """A part of the points: named as in the policy."""

    name: str
    weight: int
    points: Floats  # [fleet and one]


class _Known(NamedTuple):
    """What holds for every pod of a plan, as long as the fleet is this one."""

    fleet: Fleet
    plan: Plan
    codes: Ints  # [fleet and one] 0: not refused, else 1 + the position of its reason
    reasons: tuple[Reason, ...]
    spot: Mask  # [fleet and one]
    scores: Ints  # [fleet and one] 0–10


class Judge:
    """Keeps what it worked out, and in `faults` which rules failed: those count as if they were not there."""

    def __init__(self) -> None:
        self.faults: dict[str, str] = {}  # rule → what it raised last
        self._steady: dict[tuple[int, type], tuple[Use, Nodes, npt.NDArray[Any] | None]] = {}
        self._known: dict[tuple[int, bool], _Known] = {}  # by the plan's identity, and whether the nodes are stale

    def forget(self) -> None:
        """Policies changed: what was worked out for the old ones is of no use."""
        self._known.clear()
        self._steady.clear()

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
        """`needed` is what the pod asks for, by resource (None: leave floors aside); `strategy` the plan's, or what the
        pod's priority makes of it. `stale_seconds` is how old the nodes are, where they are too old to trust a spot
        node to be there still: a strategy that would choose one refuses them all."""
        known = self._of(plan, fleet, pod)
        codes, reasons = known.codes, list(known.reasons)
        for floor in plan.floors if needed is not None else ():
            # Final: kube-scheduler, which does not know the floor, would find nobody to evict, and fail on that.
            reasons.append(Reason("resources", f"less than {floor.said} free ({plan.name})"))
            lacking = ~_padded(has_room(floor, fleet, needed or {}), True)
            codes = np.where((codes == 0) & lacking, len(reasons), codes)
        offered = codes[rows]
        kept = offered == 0
        refusals = [_refusal(reasons[code - 1], offered == code) for code in np.unique(offered).tolist() if code]
        if stale_seconds and strategy in _CHOOSE_SPOT:
            kept = _without_spot(plan, strategy, kept, known.spot[rows], stale_seconds, refusals)
        wanted = known.spot[rows] if strategy.startswith("spot-") else ~known.spot[rows]
        return _by_capacity(plan, strategy, kept, wanted & (rows >= 0), refusals)

    def _refuse(self, plan: Plan, fleet: Fleet, pod: Pod) -> tuple[Ints, tuple[Reason, ...]]:
        """The refusals that preemption cannot mend and no other pod changes: leaving nodes, then filter rules."""
        reasons = [Reason("leaving", f"node is leaving: {why}") for why in fleet.nodes.why_leaving]
        codes = np.append(fleet.nodes.leaving_codes, 0)
        for use in plan.filters:
            refused = self._ask(use, fleet, partial(use.rule.refuses, use.config, fleet, pod), np.bool_)
            if refused is not None:
                reasons.append(Reason("rule", f"rule {use.rule.name}: {_reason(use)} ({plan.name})"))
                codes[:-1] = np.where((codes[:-1] == 0) & refused, len(reasons), codes[:-1])
        return codes, tuple(reasons)

    # ---- scoring

    def score(self, plan: Plan, fleet: Fleet, rows: Index, pod: Pod, is_stale: bool = False) -> Ints:
        """0 to 10 for each node offered. If the nodes are stale, none gets points for being spot."""
        scores = self._of(plan, fleet, pod, is_stale).scores[rows]
        if plan.ranks and len(scores):
            return self._rank(plan, fleet, rows, pod, scores)
        return scores

    def terms(self, plan: Plan, fleet: Fleet, pod: Pod, is_stale: bool = False) -> list[Term]:
        """What the points are made of."""
        terms = [
            Term(f"preferred {wish.resource}", wish.weight, _padded(by_usage(wish, fleet))) for wish in plan.preferences
        ]
        for use in plan.scores:
            points = self.points(use, fleet, pod)
            if points is not None:
                terms.append(Term(use.rule.name, use.weight, points))
        if plan.strategy == "spot-preferred" and not is_stale:
            terms.append(Term(plan.strategy, SPOT_WEIGHT, _padded(np.where(fleet.is_spot, 100.0, 0.0))))
        return terms

    def points(self, use: Use, fleet: Fleet, pod: Pod) -> Floats | None:
        """A rule's points, with nobody's opinion neutral; None if the rule failed."""
        found = self._ask(use, fleet, partial(use.rule.points, use.config, fleet, pod), np.float64)
        if found is None:
            return None
        return _padded(np.where(np.isnan(found), NEUTRAL, np.clip(found, 0, 100)))

    def _rank(self, plan: Plan, fleet: Fleet, rows: Index, pod: Pod, scores: Ints) -> Ints:
        best = int(scores.max())
        leaders = scores == best
        tied = leaders.copy()
        for use in plan.ranks:
            points = self.points(use, fleet, pod)
            if points is not None and tied.any():
                here = points[rows]
                tied &= here == here[tied].max()
        if best == 0:  # nobody can get less: the leaders among them get more
            return np.where(tied & ~(tied.all()), 1, scores)
        return np.where(leaders & ~tied, best - 1, scores)

    # ---- keeping

    def _of(self, plan: Plan, fleet: Fleet, pod: Pod, is_stale: bool = False) -> _Known:
        known = self._known.get((id(plan), is_stale))
        if known is None or known.fleet is not fleet or known.plan is not plan:
            codes, reasons = self._refuse(plan, fleet, pod)
            scores = to_scores(self.terms(plan, fleet, pod, is_stale), fleet.size + 1)
            known = _Known(fleet, plan, codes, reasons, _padded(fleet.is_spot, False), scores)
            if not _is_per_pod(plan):
                self._known[id(plan), is_stale] = known
        return known

    def _ask(self, use: Use, fleet: Fleet, ask: Callable[[], object], dtype: type) -> npt.NDArray[Any] | None:
        """A rule's answer; None if it failed. One that depends on nodes alone is kept until they change."""
        if not use.rule.is_steady:
            return self._asked(use, fleet, ask, dtype)
        known = self._steady.get((id(use), dtype))
        if known is None or known[0] is not use or known[1] is not fleet.nodes:
            known = self._steady[id(use), dtype] = use, fleet.nodes, self._asked(use, fleet, ask, dtype)
        return known[2]

    def _asked(self, use: Use, fleet: Fleet, ask: Callable[[], object], dtype: type) -> npt.NDArray[Any] | None:
        """Rules may be somebody else's: whatever they do, the pod is placed."""
        try:
            found: npt.NDArray[Any] = np.asarray(ask())
            if not np.can_cast(found.dtype, dtype):  # numbers for a mask: NaN would refuse
                raise TypeError(f"expected {np.dtype(dtype)}, got {found.dtype}")
            found = found.astype(dtype, copy=False)
            if found.shape != (fleet.size,):
                raise ValueError(f"expected one answer for each of {fleet.size} nodes, got shape {found.shape}")
        except Exception as error:
            self.faults[use.rule.name] = f"{type(error).__name__}: {error}"
            return None
        return found


def has_room(floor: Floor, fleet: Fleet, needed: Mapping[str, int], freed: Mapping[str, int] | None = None) -> Mask:
    """[node] free ≥ max(what the floor asks, what the pod asks), for one of the floor's resources."""
    enough = np.zeros(fleet.size, dtype=np.bool_)
    for name, least in floor.amounts.items():
        free = fleet.free(name)
        if free is not None:
            enough |= free + (freed or {}).get(name, 0) >= max(least, needed.get(name, 0))
        elif max(least, needed.get(name, 0)) == 0:
            enough[:] = True
    return enough


def by_usage(wish: Preference, fleet: Fleet) -> Floats:
    """100 for an idle node, falling to 50 at the threshold; from there 25, falling to 0 for a full one; unknown: 50."""
    used = np.clip(fleet.used(wish.resource), 0, 100)
    limit = wish.threshold
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


def _by_capacity(plan: Plan, strategy: str, kept: Mask, wanted: Mask, refusals: list[PolicyRefusal]) -> Judgement:
    """Spot or on-demand only, or first: then the other kind is refused while one of the wanted is left."""
    wanted_name, _, how = strategy.rpartition("-")
    if how not in ("only", "first"):
        return Judgement(kept, tuple(refusals))
    mine = kept & wanted
    others = kept & ~wanted
    if how == "first" and not mine.any():
        return Judgement(kept, tuple(refusals), is_fallback=bool(kept.any()))
    if others.any():
        left = f", and {wanted_name} nodes are left" if how == "first" else ""
        refusals.append(_refusal(Reason("capacity", f"not {wanted_name}: {strategy}{left} ({plan.name})"), others))
    return Judgement(mine, tuple(refusals))


def _without_spot(
    plan: Plan, strategy: str, kept: Mask, spot: Mask, stale_seconds: float, refusals: list[PolicyRefusal]
) -> Mask:
    """What is kept when spot nodes cannot be trusted; adds the refusal of the others."""
    refused = kept & spot
    if refused.any():
        age = f"the node watch is {ceil(stale_seconds)} s old"
        refusals.append(_refusal(Reason("stale-mirror", f"spot, and {age}: {strategy} ({plan.name})"), refused))
    return kept & ~spot


def _refusal(reason: Reason, mask: Mask) -> PolicyRefusal:
    return PolicyRefusal(reason.text, mask, reason.is_final, reason.kind)


def _reason(use: Use) -> str:
    try:
        return str(use.rule.reason(use.config))
    except Exception:  # somebody else's rule
        return "refused"


def _is_per_pod(plan: Plan) -> bool:
    return any(use.rule.is_per_pod for use in (*plan.filters, *plan.scores))


def _padded(column: T, last: float | bool = NEUTRAL) -> T:
    return np.append(column, np.array([last], dtype=column.dtype))
