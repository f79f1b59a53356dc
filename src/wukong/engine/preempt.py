"""Preemption: which pods of lower priority would have to go, on which node, to make room for one that fits nowhere.

Follows kube-scheduler's DefaultPreemption: on every node where removing pods can help, remove all lower ones, then
put back as many as possible, most important first and budget-protected ones before the others. Pods are removed from
and put back on the snapshot itself; afterwards it is as it was.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from wukong.engine.decision import Preemption, Refusal
from wukong.engine.plugin import Load, Scope
from wukong.engine.snapshot import PlacedPod
from wukong.engine.ties import FIRST_BY_NAME, Ties
from wukong.engine.view import View
from wukong.semantics.selectors import selects

NEVER = "not eligible due to preemptionPolicy=Never."
NO_VICTIMS = "No preemption victims found for incoming pod"
NOT_HELPFUL = "Preemption is not helpful for scheduling"
NOT_AGREED = "no candidate node for preemption"  # an extender dropped them all
_NOT_STARTED = "~"  # sorts after every timestamp: a pod that has not started yet counts as started just now
_LOWEST_PRIORITY = 2**31
# kube-scheduler stops looking once it has this many candidates, from a random node on; we go by name from the first.
_CANDIDATE_PERCENT = 10
_LEAST_CANDIDATES = 100


@dataclass(frozen=True)
class Attempt:
    preemption: Preemption | None = None
    refusal: str = ""  # why the pod may not preempt at all
    reasons: dict[str, tuple[str, ...]] = field(default_factory=dict)  # node → why no candidate


@dataclass(frozen=True)
class _Candidate:
    node: str
    victims: tuple[tuple[str, PlacedPod], ...]  # in the order in which sparing them was given up
    violations: int
    budgets: tuple[str, ...]  # that are broken

    def rank(self) -> tuple[object, ...]:
        """Lower is better: budgets broken, highest victim, sum of priorities, number of victims; then the latest."""
        priorities = [placed.template.priority for _, placed in self.victims]
        highest = [placed for _, placed in self.victims if placed.template.priority == max(priorities)]
        earliest = min(placed.start or _NOT_STARTED for placed in highest)
        later_first = tuple(-ord(letter) for letter in earliest)
        total = sum(priority + _LOWEST_PRIORITY for priority in priorities)
        return self.violations, max(priorities), total, len(priorities), later_first


def preempt(view: View, refusals: dict[str, Refusal], ties: Ties = FIRST_BY_NAME) -> Attempt:
    """What DefaultPreemption would do for the view's pod, given why each node refused it.

    Among equal candidates kube-scheduler takes the first of a Go map, so any; here `ties` choose.
    """
    if not view.template.preempts:
        return Attempt(refusal=NEVER)
    candidates: list[_Candidate] = []
    reasons: dict[str, tuple[str, ...]] = {}
    potential = sorted(node for node, refusal in refusals.items() if not refusal.is_final)
    enough = max(_LEAST_CANDIDATES, len(potential) * _CANDIDATE_PERCENT // 100)
    for node in potential:
        candidate = _try_node(view, node)
        if isinstance(candidate, _Candidate):
            candidates.append(candidate)
        else:
            reasons[node] = candidate
        if len(candidates) >= enough and any(not candidate.violations for candidate in candidates):
            break
    if not candidates:
        return Attempt(reasons=reasons)
    candidates = _filter_candidates(view, candidates)
    if not candidates:
        return Attempt(refusal=NOT_AGREED)
    least = min(candidate.rank() for candidate in candidates)
    equals = {view.snapshot.row_of[candidate.node]: candidate for candidate in candidates if candidate.rank() == least}
    best = equals[ties.choose(np.array(sorted(equals), dtype=np.intp))]
    victims_of = {candidate.node: tuple(key for key, _ in candidate.victims) for candidate in candidates}
    return Attempt(Preemption(best.node, victims_of[best.node], victims_of, best.violations, best.budgets))


def _filter_candidates(view: View, candidates: list[_Candidate]) -> list[_Candidate]:
    """The candidates that every plugin agrees to."""
    for name in view.profile.filters:
        victims_of = {candidate.node: tuple(key for key, _ in candidate.victims) for candidate in candidates}
        kept = view.plugins[name].filter_candidates(view, victims_of)
        candidates = [candidate for candidate in candidates if candidate.node in kept]
    return candidates


def _try_node(view: View, node: str) -> _Candidate | tuple[str, ...]:
    snapshot = view.snapshot
    row = snapshot.row_of[node]
    here = snapshot.on_row.get(row, {})
    lower = [key for key in here if snapshot.pods[key].template.priority < view.template.priority]
    if not lower:
        return (NO_VICTIMS,)
    trial = _Trial(view, row)
    try:
        for key in lower:
            trial.remove(key)
        reasons = trial.find_reasons()
        return reasons or trial.restore_what_fits(node)
    finally:
        trial.undo()


class _Trial:
    """Takes pods off one node and puts them back, keeping the view's counters in step."""

    def __init__(self, view: View, row: int) -> None:
        self.view, self.snapshot, self.row = view, view.snapshot, row
        self.removed: dict[str, PlacedPod] = {}
        self._order = dict(self.snapshot.on_row[row])
        self._ports = dict(self.snapshot.ports.get(row, {}))
        self._changing = [part for _, part in view.filters if part.scope is not Scope.NODE]
        self.snapshot.volume_use.is_trial = True

    def remove(self, key: str) -> None:
        placed = self.removed[key] = self.snapshot.forget(key)
        for part in self._changing:
            part.count_trial(placed.template, self.row, -1)

    def restore(self, key: str) -> None:
        placed = self.removed.pop(key)
        self.snapshot.assume_template(key, placed.template, self.row, placed.start)
        for part in self._changing:
            part.count_trial(placed.template, self.row, 1)

    def undo(self) -> None:
        for key in list(self.removed):
            self.restore(key)
        self.snapshot.restore_row(self.row, self._order, self._ports)
        self.snapshot.volume_use.is_trial = False

    def find_reasons(self) -> tuple[str, ...]:
        """Why the pod still does not fit on the node; empty if it does."""
        rows = np.array([self.row], dtype=np.intp)
        load = Load(self.snapshot.load[:, rows])
        for _, part in self.view.filters:
            part.refresh()
            texts = tuple(reason.text for reason, mask in part.failing(rows, load) if mask[0])
            if texts:
                return texts
        return ()

    def restore_what_fits(self, node: str) -> _Candidate:
        """Put back every pod that can stay; the others are the victims."""
        by_importance = sorted(self.removed, key=lambda key: _importance_of(self.removed[key]))
        protected = _find_budget_breakers(self.view, [(key, self.removed[key]) for key in by_importance])
        victims: list[tuple[str, PlacedPod]] = []
        broken: dict[str, None] = {}
        violations = 0
        for key in sorted(by_importance, key=lambda key: key not in protected):  # stable: importance is kept
            placed = self.removed[key]
            self.restore(key)
            if not all(part.allows(self.row, self.snapshot) for part in self._changing):
                self.remove(key)
                victims.append((key, placed))
                violations += key in protected
                broken |= dict.fromkeys(protected.get(key, ()))
        return _Candidate(node, tuple(victims), violations, tuple(broken))


def _importance_of(placed: PlacedPod) -> tuple[int, str]:
    """Sorts the most important first: higher priority, then running longer."""
    return -placed.template.priority, placed.start or _NOT_STARTED


def _find_budget_breakers(view: View, pods: list[tuple[str, PlacedPod]]) -> dict[str, list[str]]:
    """Those whose loss, in this order, exceeds what their disruption budgets allow, and which budgets."""
    left = [budget.allowed for budget in view.snapshot.facts.budgets]
    breakers: dict[str, list[str]] = {}
    for key, placed in pods:
        template = placed.template
        for number, budget in enumerate(view.snapshot.facts.budgets):
            may_cover = budget.namespace == template.namespace and bool(budget.selector) and bool(template.labels)
            if not may_cover or not selects(budget.selector, template.labels) or key.split("/")[-1] in budget.disrupted:
                continue
            left[number] -= 1
            if left[number] < 0:
                breakers.setdefault(key, []).append(f"{budget.namespace}/{budget.name}")
                if view.profile.version.budgets_stop_at_first_broken:
                    break
    return breakers
