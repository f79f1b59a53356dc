"""The scheduler extender: what kube-scheduler asks (filter, prioritize, preempt), answered by policy, fleet and rules.

Called by serve.extender with the nodes as rows of a fleet. Besides its answer, a reply carries notes about the
pod (Events), and what to count. It never waits for anything, and never fails a pod for a bad policy. Whoever has
something else to do meanwhile takes an answer in slices (placement.slices): the fleet of a question stays what it was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from wukong.actions import Note
from wukong.api.core import Node, NodeSelectorTerm, Pod
from wukong.api.kinds import PODS
from wukong.api.resources import Key
from wukong.engine.arrays import Index, Ints, Mask
from wukong.engine.requests import read_requests
from wukong.errors import InputError
from wukong.placement.compile import GPU_NAMES, Plan
from wukong.placement.fleet import Fleet, Latencies
from wukong.placement.judge import Judge, Judgement, PolicyRefusal, node_meets_floor
from wukong.placement.matching import NO_POLICY, Match
from wukong.placement.pods.mark import find_marked_strategy
from wukong.placement.prices import Prices
from wukong.placement.rule import Rules
from wukong.placement.rules import BUILT_IN
from wukong.placement.slices import Slices, finish
from wukong.replies.extender.fleet_cache import FleetCache
from wukong.replies.extender.policy_cache import PolicyCache
from wukong.replies.extender.usage import UsageSettings
from wukong.semantics.node_selectors import compile_term, is_empty_term
from wukong.semantics.selectors import require_labels
from wukong.state import State

CRITICAL = "on-demand-first"  # what critical pods get instead of a strategy that prefers spot
_MOST_REQUIREMENTS = 2000  # of a pod's selector and affinity
_LONGEST_NOTE = 1024  # the API server takes no more
Victim = str | Pod  # a uid, where the scheduler keeps node details to itself


class Settings(msgspec.Struct, frozen=True):
    critical_priority: int = 1000  # pods at or above go on-demand first
    strategy: str = "spot-first"  # where no policy matches and there is none named default; "" for none
    gpu_names: tuple[str, ...] = GPU_NAMES
    usage: UsageSettings = UsageSettings()
    judges_wukong_resources: bool = False  # resourceAffinity of Wukongs; else node affinity does, by labels


class FilterResult(NamedTuple):
    kept: Mask  # [offered]
    refusals: tuple[PolicyRefusal, ...]  # disjoint; with `kept` they cover all nodes offered
    plan: str  # the policy that holds
    is_fallback: bool = False
    observed: tuple[PolicyRefusal, ...] = ()  # what a policy in mode Observe would have refused
    notes: tuple[Note, ...] = ()


class Extender:
    def __init__(
        self,
        state: State,
        settings: Settings | None = None,
        *,
        rules: Rules | None = None,
        prices: Prices | None = None,
        latencies: Latencies | None = None,
        node_staleness: Callable[[float], float] = lambda now: 0.0,
    ) -> None:
        """`node_staleness` gives, at a time, how many seconds old the mirrored nodes are if that is too old, else 0.

        While it is, a spot node may be gone for all we know: strategies refuse them and nobody prefers them. Floors,
        rules and on-demand nodes are judged as ever.
        """
        self.state, self.settings, self.node_staleness = state, settings or Settings(), node_staleness
        self.rules: Rules = BUILT_IN if rules is None else rules
        self.judge = Judge()
        self.fleets = FleetCache(state, self.settings.usage, prices or Prices(), latencies)
        self.policies = PolicyCache(
            state,
            self.rules,
            Plan(name=NO_POLICY, strategy=self.settings.strategy),
            self.settings.gpu_names,
            forget=self.judge.forget_plan,
            judges_resources=self.settings.judges_wukong_resources,
        )

    def fleet(self, now: float) -> Fleet:
        return self.fleets.fleet_at(now)

    def fleet_in_slices(self, now: float) -> Slices[Fleet]:
        return self.fleets.fleet_in_slices(now)

    def fleet_of(self, nodes: Sequence[Node | str], now: float) -> Fleet:
        return self.fleets.fleet_of(nodes, now)

    # ---- the three verbs

    def filter(self, pod: Pod, fleet: Fleet, rows: Index, now: float) -> FilterResult:
        return finish(self.filter_in_slices(pod, fleet, rows, now))

    def filter_in_slices(self, pod: Pod, fleet: Fleet, rows: Index, now: float) -> Slices[FilterResult]:
        match = yield from self._match_in_slices(pod)
        plan, stale_seconds = match.plan, self.node_staleness(now)
        judgement = yield from self._judge_in_slices(plan, fleet, rows, pod, stale_seconds)
        notes = _note_ambiguity(pod, match)
        if plan.is_enforced:
            strategy = self.strategy_of(plan, pod)
            is_fallback = judgement.is_fallback and (yield from _may_use(pod, fleet, strategy.startswith("spot")))
            notes += _note_fallback(pod, strategy, plan, is_stale=stale_seconds > 0) if is_fallback else ()
            result = FilterResult(judgement.kept, judgement.refusals, plan.name, is_fallback, notes=notes)
            if match.observed is None:
                return result
            judgement = yield from self._judge_in_slices(match.observed, fleet, rows, pod, stale_seconds)
            notes += _note_observation(pod, match.observed, judgement, len(rows))
            return result._replace(observed=_refuse_more(judgement.refusals, result.kept), notes=notes)
        enforced = tuple(refusal for refusal in judgement.refusals if refusal.kind == "leaving")
        observed = tuple(refusal for refusal in judgement.refusals if refusal.kind != "leaving")
        kept = _keep_staying(judgement.refusals, len(rows))
        notes += _note_observation(pod, plan, judgement, len(rows))
        return FilterResult(kept, enforced, plan.name, observed=observed, notes=notes)

    def _judge_in_slices(
        self, plan: Plan, fleet: Fleet, rows: Index, pod: Pod, stale_seconds: float
    ) -> Slices[Judgement]:
        needed = _read_needed(pod) if plan.floors else {}
        strategy = self.strategy_of(plan, pod)
        return (yield from self.judge.filter_in_slices(plan, fleet, rows, pod, needed, strategy, stale_seconds))

    def prioritize(self, pod: Pod, fleet: Fleet, rows: Index, now: float) -> Ints:
        return finish(self.prioritize_in_slices(pod, fleet, rows, now))

    def prioritize_in_slices(self, pod: Pod, fleet: Fleet, rows: Index, now: float) -> Slices[Ints]:
        plan = (yield from self._match_in_slices(pod)).plan
        scores = yield from self.judge.score_in_slices(plan, fleet, rows, pod, self.node_staleness(now) > 0)
        return scores if plan.is_enforced else np.zeros_like(scores)

    def preempt(self, pod: Pod, candidates: Mapping[str, Sequence[Victim]], now: float) -> list[str]:
        """The nodes on which pods may be preempted for this one, of those the scheduler thinks of."""
        return finish(self.preempt_in_slices(pod, candidates, now))

    def preempt_in_slices(self, pod: Pod, candidates: Mapping[str, Sequence[Victim]], now: float) -> Slices[list[str]]:
        plan, fleet = (yield from self._match_in_slices(pod)).plan, (yield from self.fleet_in_slices(now))
        if plan.is_enforced and plan.never_preempts:
            return []
        # Floors first, with the victims gone: a strategy chooses among the nodes that would really do.
        names = list(candidates)
        if plan.is_enforced and plan.floors:
            names = yield from self._list_with_room(plan, fleet, _read_needed(pod), candidates)
        rows = np.array([fleet.row_of.get(name, -1) for name in names], dtype=np.intp)
        strategy, stale_seconds = self.strategy_of(plan, pod), self.node_staleness(now)
        judgement = yield from self.judge.filter_in_slices(plan, fleet, rows, pod, None, strategy, stale_seconds)
        kept = judgement.kept if plan.is_enforced else _keep_staying(judgement.refusals, len(rows))
        return [name for name, is_kept in zip(names, kept.tolist(), strict=True) if is_kept]

    def _list_with_room(
        self, plan: Plan, fleet: Fleet, needed: Mapping[str, int], candidates: Mapping[str, Sequence[Victim]]
    ) -> Slices[list[str]]:
        """The nodes that meet every floor once their victims are gone, or of which we know nothing."""
        free = {resource: fleet.free(resource) for floor in plan.floors for resource in floor.amounts}
        with_room = []
        for name, victims in candidates.items():
            row = fleet.row_of.get(name)
            freed = {} if row is None else self._count_freed(name, victims)
            if row is None or all(node_meets_floor(floor, free, row, needed, freed) for floor in plan.floors):
                with_room.append(name)
            yield
        return with_room

    def _count_freed(self, node: str, victims: Sequence[Victim]) -> dict[str, int]:
        """What these victims take on a node, by resource."""
        freed: dict[str, int] = {}
        by_uid = {pod.metadata.uid: pod for pod in self.state.pods_on(node)}
        for victim in victims:
            victim_pod = victim if isinstance(victim, Pod) else by_uid.get(victim)
            for resource, amount in (_read_taken(victim_pod) if victim_pod is not None else {}).items():
                freed[resource] = freed.get(resource, 0) + amount
        return freed

    # ---- policies

    def match(self, pod: Pod) -> Match:
        """The policy that holds for this pod, with what its Wukong says, and those that would as well."""
        return finish(self._match_in_slices(pod))

    def list_others(self, pod: Pod) -> list[str]:
        """Every policy that would hold for this pod as well, were the one that does not the first by name."""
        return finish(self.policies.read_in_slices()).list_others(pod)

    def _match_in_slices(self, pod: Pod) -> Slices[Match]:
        policies = yield from self.policies.read_in_slices()
        match = yield from policies.find_in_slices(pod)
        return self.policies.wukongs.combine(match, pod)

    def strategy_of(self, plan: Plan, pod: Pod) -> str:
        """What was decided at admission, where the plan splits; else the plan's strategy.

        Critical pods go on-demand first, unless their policy leaves no choice.
        """
        if marked_strategy := find_marked_strategy(plan, pod.metadata.annotations):
            return marked_strategy
        priority = plan.priority if plan.priority is not None else pod.spec.priority or 0
        is_critical = priority >= self.settings.critical_priority
        return CRITICAL if is_critical and not plan.strategy.endswith("-only") else plan.strategy


def _read_needed(pod: Pod) -> Mapping[str, int]:
    try:
        return read_requests(pod).needed
    except InputError:  # the API server would not have let it through
        return {}


def _read_taken(pod: Pod) -> Mapping[str, int]:
    try:
        return read_requests(pod).taken
    except InputError:
        return {}


def _keep_staying(refusals: Sequence[PolicyRefusal], offered: int) -> Mask:
    """What a policy that only observes keeps: all but the nodes that are leaving."""
    kept = np.ones(offered, dtype=np.bool_)
    for refusal in refusals:
        if refusal.kind == "leaving":
            kept &= ~refusal.mask
    return kept


def _refuse_more(refusals: Sequence[PolicyRefusal], kept: Mask) -> tuple[PolicyRefusal, ...]:
    """These refusals, of the nodes kept so far."""
    narrowed = (refusal._replace(mask=refusal.mask & kept) for refusal in refusals)
    return tuple(refusal for refusal in narrowed if refusal.mask.any())


def _may_use(pod: Pod, fleet: Fleet, spot: bool) -> Slices[bool]:
    """Whether the pod's own selector and affinity allow nodes of this kind.

    A pod that they keep on other nodes, as a DaemonSet's, does not fall back: it goes where it was meant to go. One
    that asks for more than anybody writes by hand is not looked at: it is only for an Event.
    """
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    terms = affinity.required.node_selector_terms if affinity and affinity.required else None
    if _count_requirements(pod.spec.node_selector, terms or ()) > _MOST_REQUIREMENTS:
        return True
    selected = (fleet.is_spot == spot) & fleet.select(require_labels(pod.spec.node_selector))
    if terms is None:
        return not pod.spec.node_selector or bool(selected.any())
    for term in terms:
        yield
        compiled = None if is_empty_term(term) else compile_term(term)
        if compiled is not None:
            accepted = np.flatnonzero(selected & fleet.select(compiled.labels)).tolist()
            if any(compiled.accepts_name(fleet.names[row]) for row in accepted):
                return True
    return False


def _count_requirements(labels: Mapping[str, str], terms: Sequence[NodeSelectorTerm]) -> int:
    """Values included."""
    expressions = [entry for term in terms for entry in (*term.match_expressions, *term.match_fields)]
    return len(labels) + len(terms) + len(expressions) + sum(len(entry.values) for entry in expressions)


def _build_note(pod: Pod, reason: str, text: str) -> tuple[Note, ...]:
    key = Key(pod.metadata.namespace or "default", pod.metadata.name)
    text = text if len(text) <= _LONGEST_NOTE else f"{text[: _LONGEST_NOTE - 1]}…"
    return (Note(PODS, key, reason, text, uid=pod.metadata.uid),)


def _note_fallback(pod: Pod, strategy: str, plan: Plan, *, is_stale: bool) -> tuple[Note, ...]:
    wanted, other = ("spot", "on-demand") if strategy.startswith("spot") else ("on-demand", "spot")
    # Without the age: one Event is repeated, not another written for each second.
    reason = "The node watch is too old to trust a spot node" if is_stale else f"No {wanted} node is left"
    return _build_note(pod, "CapacityFallback", f"{reason} for {strategy}; using {other} ({plan.name}).")


def _note_ambiguity(pod: Pod, match: Match) -> tuple[Note, ...]:
    if not match.others:
        return ()
    text = f"{match.plan.name} holds, the first by name; just as specific: {match.describe_others()}."
    return _build_note(pod, "PolicyAmbiguous", text)


def _note_observation(pod: Pod, plan: Plan, judgement: Judgement, offered: int) -> tuple[Note, ...]:
    reasons = "; ".join(f"{int(refusal.mask.sum())} {refusal.reason}" for refusal in judgement.refusals)
    kept = int(judgement.kept.sum())
    text = f"{plan.name} observes only: it would have kept {kept} of {offered} nodes{': ' if reasons else ''}{reasons}."
    return _build_note(pod, "PlacementObserved", text)
