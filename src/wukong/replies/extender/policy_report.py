"""What a policy did to one decision, node by node: which held, what it refused, what its points are made of.

Built by `build_report` from an answer of plugin.py, for `wukong explain`. A plain value: nothing is decided here.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import numpy as np

from wukong.api.core import Pod
from wukong.engine.arrays import Index, Mask
from wukong.engine.decision import Decision
from wukong.engine.view import View
from wukong.placement.fleet import Fleet
from wukong.placement.judge import to_points
from wukong.placement.pods.mark import find_marked_strategy
from wukong.placement.prices import Prices
from wukong.replies.extender.plugin import ExtenderPlugin

_MEASURED = frozenset({"load-aware", "cost-aware"})  # built-in rules that read usage
_PRICED = frozenset({"cost-aware"})


class Term(msgspec.Struct, frozen=True):
    name: str
    weight: int
    points: dict[str, float]  # node → 0–100


class PolicyReport(msgspec.Struct, frozen=True, kw_only=True):
    policy: str  # the one that holds: "PlacementPolicy shop/web", or "no policy"
    others: tuple[str, ...]  # just as specific, later by name
    is_enforced: bool
    own_strategy: str  # as the policy has it; "": none
    strategy: str  # as it was applied
    is_marked: bool  # it was decided at admission, and the pod is marked with it
    priority: int
    critical_priority: int
    alone: str  # where it would go without the extender; "" if nowhere
    offered: int  # nodes that passed the scheduler's own filters
    is_fallback: bool
    notes: tuple[str, ...]  # what the extender would write as Events
    observed: dict[str, int]  # in mode Observe: reason → nodes that would have been refused
    weight: int  # the extender's, in the scheduler's configuration
    terms: tuple[Term, ...]
    ranks: tuple[str, ...]  # rules of type prioritize
    points: dict[str, float]  # node → 0–100, of the nodes left
    scores: dict[str, int]  # node → 0–10
    faults: dict[str, str]  # rule → what it raised
    scheduler_name: str  # that the policy's pods are meant for
    never_preempts: bool
    reads_usage: bool
    unmeasured: int  # nodes left whose usage nobody knows
    reads_prices: bool
    unpriced: int  # nodes left whose price nobody knows
    listed: int  # nodes left whose price is that of the built-in table

    @property
    def is_critical(self) -> bool:
        """Whether the priority changed the strategy."""
        return self.strategy != self.own_strategy and not self.is_marked


def build_report(plugin: ExtenderPlugin, view: View, pod: Pod, alone: Decision) -> PolicyReport:
    """`alone` is what kube-scheduler decides without an extender."""
    answer, extender = plugin.answer_of(view), plugin.extender
    match = extender.match(pod)
    plan, fleet, filtered = match.plan, answer.fleet, answer.filtered
    kept = np.flatnonzero(filtered.kept).tolist()
    names = [answer.names[number] for number in kept]
    rows = answer.rows[filtered.kept]
    known = rows[rows >= 0]
    terms = extender.judge.build_terms(plan, fleet, pod)
    used = {use.rule.name for use in (*plan.filters, *plan.scores, *plan.ranks)}
    return PolicyReport(
        policy=plan.name,
        others=tuple(extender.list_others(pod)),
        is_enforced=plan.is_enforced,
        own_strategy=plan.strategy,
        strategy=extender.strategy_of(plan, pod),
        is_marked=bool(find_marked_strategy(plan, pod.metadata.annotations)),
        priority=plan.priority if plan.priority is not None else pod.spec.priority or 0,
        critical_priority=extender.settings.critical_priority,
        alone="".join(alone.best[:1]),
        offered=len(answer.names),
        is_fallback=filtered.is_fallback,
        notes=tuple(note.text for note in filtered.notes) if answer.names else (),
        observed={refusal.reason: int(refusal.mask.sum()) for refusal in filtered.observed},
        weight=plugin.entry.weight if plugin.entry.prioritize_verb else 0,
        terms=tuple(Term(term.name, term.weight, _map_by_name(names, term.points[rows])) for term in terms),
        ranks=tuple(use.rule.name for use in plan.ranks),
        points=_map_by_name(names, to_points(terms, fleet.size + 1)[rows]),
        scores=dict(zip(names, answer.scores.tolist(), strict=True)),
        faults=dict(extender.judge.faults),
        scheduler_name=plan.scheduler_name,
        never_preempts=plan.never_preempts,
        reads_usage=bool(plan.preferences or used & _MEASURED),
        unmeasured=int(_is_unmeasured(fleet)[known].sum()),
        reads_prices=bool(used & _PRICED),
        unpriced=int(np.isnan(fleet.price[known]).sum()),
        listed=_count_list_prices(extender.fleets.prices, fleet, known),
    )


def _is_unmeasured(fleet: Fleet) -> Mask:
    unknown: Mask = np.logical_and.reduce(np.isnan(fleet.usage))
    return unknown


def _count_list_prices(prices: Prices, fleet: Fleet, rows: Index) -> int:
    return sum(
        prices.is_list_price(fleet.names[row], fleet.labels(row), bool(fleet.is_spot[row])) for row in rows.tolist()
    )


def _map_by_name(names: list[str], points: Iterable[float]) -> dict[str, float]:
    return {name: round(float(value), 2) for name, value in zip(names, points, strict=True)}
