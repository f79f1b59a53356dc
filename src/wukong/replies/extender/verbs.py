"""The scheduler extender: what kube-scheduler asks (filter, prioritize, preempt), answered by policy, fleet and rules.

Called by serve.extender with the nodes as rows of a fleet. Besides its answer, a reply carries what is to be told: a
note about the pod (an Event), and what to count. It never waits for anything, and never fails a pod for a bad policy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from wukong.actions import Note
from wukong.api.core import Node, Pod
from wukong.api.kinds import CLUSTER_PLACEMENT_POLICIES, NAMESPACES, PLACEMENT_POLICIES, PODS
from wukong.api.placement import ClusterPlacementPolicy, PlacementPolicy
from wukong.api.resources import Key
from wukong.engine.arrays import Index, Ints, Mask
from wukong.engine.requests import read_requests
from wukong.errors import InputError
from wukong.placement.compile import GPU_NAMES, Plan, Policy
from wukong.placement.fleet import Fleet, Latencies
from wukong.placement.judge import Judge, Judgement, PolicyRefusal, has_room
from wukong.placement.matching import Match, Policies
from wukong.placement.prices import Prices
from wukong.placement.rule import Rules
from wukong.placement.rules import BUILT_IN
from wukong.replies.extender.fleet_cache import FleetCache
from wukong.replies.extender.usage import UsageSettings
from wukong.rules.selectors import node_selector_selects
from wukong.state import State

CRITICAL = "on-demand-first"  # what critical pods get instead of a strategy that prefers spot
_KINDS = tuple(resource.group_kind for resource in (PLACEMENT_POLICIES, CLUSTER_PLACEMENT_POLICIES, NAMESPACES))
Victim = str | Pod  # a uid, where the scheduler keeps node details to itself


class Settings(msgspec.Struct, frozen=True):
    critical_priority: int = 1000  # pods at or above go on-demand first
    strategy: str = "spot-first"  # where no policy matches and there is none named default; "" for none
    gpu_names: tuple[str, ...] = GPU_NAMES
    usage: UsageSettings = UsageSettings()


class Filtered(NamedTuple):
    kept: Mask  # [offered]
    refusals: tuple[PolicyRefusal, ...]  # disjoint; with `kept` they cover all nodes offered
    plan: str  # the policy that held
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
    ) -> None:
        self.state, self.settings = state, settings or Settings()
        self.rules: Rules = BUILT_IN if rules is None else rules
        self.judge = Judge()
        self.fleets = FleetCache(state, self.settings.usage, prices or Prices(), latencies)
        self._otherwise = Plan(name="no policy", strategy=self.settings.strategy)
        self._policies: Policies | None = None
        self._made_of: tuple[int, ...] = ()

    def fleet(self, now: float) -> Fleet:
        return self.fleets.at(now)

    def fleet_of(self, nodes: list[Node], now: float) -> Fleet:
        return self.fleets.of(nodes, now)

    # ---- the three verbs

    def filter(self, pod: Pod, fleet: Fleet, rows: Index, now: float) -> Filtered:
        match = self.match(pod)
        plan = match.plan
        strategy = self.strategy(plan, pod)
        found = self.judge.filter(plan, fleet, rows, pod, _needed(pod) if plan.floors else {}, strategy)
        notes = _ambiguity(pod, match)
        if plan.is_enforced:
            is_fallback = found.is_fallback and _might_use(pod, fleet, strategy.startswith("spot"))
            notes += _fallback(pod, strategy, plan) if is_fallback else ()
            return Filtered(found.kept, found.refusals, plan.name, is_fallback, notes=notes)
        binding = tuple(refusal for refusal in found.refusals if refusal.kind == "leaving")
        would_be = tuple(refusal for refusal in found.refusals if refusal.kind != "leaving")
        kept = _without_leaving(found.refusals, len(rows))
        notes += _observation(pod, plan, found, len(rows))
        return Filtered(kept, binding, plan.name, observed=would_be, notes=notes)

    def prioritize(self, pod: Pod, fleet: Fleet, rows: Index, now: float) -> Ints:
        plan = self.match(pod).plan
        scores = self.judge.score(plan, fleet, rows, pod)
        return scores if plan.is_enforced else np.zeros_like(scores)

    def preempt(self, pod: Pod, candidates: Mapping[str, Sequence[Victim]], now: float) -> list[str]:
        """The nodes on which pods may be preempted for this one, of those the scheduler thinks of."""
        plan, fleet = self.match(pod).plan, self.fleet(now)
        if plan.is_enforced and plan.never_preempts:
            return []
        needed = _needed(pod)
        # Floors first, with the victims gone: a strategy chooses among the nodes that would really do.
        names = [
            name
            for name, victims in candidates.items()
            if not plan.is_enforced or self._has_room(plan, fleet, name, needed, victims)
        ]
        rows = np.array([fleet.row_of.get(name, -1) for name in names], dtype=np.intp)
        found = self.judge.filter(plan, fleet, rows, pod, None, self.strategy(plan, pod))
        kept = found.kept if plan.is_enforced else _without_leaving(found.refusals, len(rows))
        return [name for name, is_kept in zip(names, kept.tolist(), strict=True) if is_kept]

    def _has_room(
        self, plan: Plan, fleet: Fleet, name: str, needed: Mapping[str, int], victims: Sequence[Victim]
    ) -> bool:
        row = fleet.row_of.get(name)
        if row is None or not plan.floors:
            return True
        freed: dict[str, int] = {}
        by_uid = {pod.metadata.uid: pod for pod in self.state.pods_on(name)}
        for victim in victims:
            own = victim if isinstance(victim, Pod) else by_uid.get(victim)
            for resource, amount in (_taken(own) if own is not None else {}).items():
                freed[resource] = freed.get(resource, 0) + amount
        return all(bool(has_room(floor, fleet, needed, freed)[row]) for floor in plan.floors)

    # ---- whose policy

    def match(self, pod: Pod) -> Match:
        """The policy that holds for this pod, and those that would as well."""
        made_of = tuple(self.state.versions[kind] for kind in _KINDS)
        if self._policies is None or made_of != self._made_of:
            self._policies = self._read_policies()
            self._made_of = made_of
            self.judge.forget()
        return self._policies.find(pod)

    def strategy(self, plan: Plan, pod: Pod) -> str:
        """The plan's strategy; critical pods go on-demand first, unless their policy leaves no choice."""
        priority = plan.priority if plan.priority is not None else pod.spec.priority or 0
        is_critical = priority >= self.settings.critical_priority
        return CRITICAL if is_critical and not plan.strategy.endswith("-only") else plan.strategy

    def _read_policies(self) -> Policies:
        held: list[Policy] = [*self.state.all(PlacementPolicy), *self.state.all(ClusterPlacementPolicy)]
        labels = {key.name: found.metadata.labels for key, found in self.state.objects.get("Namespace", {}).items()}
        return Policies(held, self.rules, self._otherwise, labels, self.settings.gpu_names)


def _needed(pod: Pod) -> Mapping[str, int]:
    try:
        return read_requests(pod).needed
    except InputError:  # the API server would not have let it through
        return {}


def _taken(pod: Pod) -> Mapping[str, int]:
    try:
        return read_requests(pod).taken
    except InputError:
        return {}


def _without_leaving(refusals: Sequence[PolicyRefusal], offered: int) -> Mask:
    """What a policy that only observes keeps: all but the nodes that are leaving."""
    kept = np.ones(offered, dtype=np.bool_)
    for refusal in refusals:
        if refusal.kind == "leaving":
            kept &= ~refusal.mask
    return kept


def _might_use(pod: Pod, fleet: Fleet, spot: bool) -> bool:
    """Whether the pod itself would take nodes of this kind. One that its selector or affinity keeps on other nodes, as
    a DaemonSet's pods on one each, does not fall back: it goes where it was meant to go."""
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    required = affinity.required if affinity else None
    wanted = pod.spec.node_selector
    if not wanted and required is None:
        return True
    return any(
        wanted.items() <= fleet.labels(row).items()
        and (required is None or node_selector_selects(required, fleet.labels(row), fleet.names[row]))
        for row in np.flatnonzero(fleet.is_spot == spot).tolist()
    )


def _note(pod: Pod, reason: str, text: str) -> tuple[Note, ...]:
    key = Key(pod.metadata.namespace or "default", pod.metadata.name)
    return (Note(PODS, key, reason, text, uid=pod.metadata.uid),)


def _fallback(pod: Pod, strategy: str, plan: Plan) -> tuple[Note, ...]:
    wanted, other = ("spot", "on-demand") if strategy.startswith("spot") else ("on-demand", "spot")
    return _note(pod, "CapacityFallback", f"No {wanted} node is left for {strategy}; using {other} ({plan.name}).")


def _ambiguity(pod: Pod, match: Match) -> tuple[Note, ...]:
    if not match.others:
        return ()
    others = ", ".join(match.others)
    text = f"{match.plan.name} holds, the first by name; just as specific: {others}."
    return _note(pod, "PolicyAmbiguous", text)


def _observation(pod: Pod, plan: Plan, found: Judgement, offered: int) -> tuple[Note, ...]:
    reasons = "; ".join(f"{int(refusal.mask.sum())} {refusal.reason}" for refusal in found.refusals)
    kept = int(found.kept.sum())
    text = f"{plan.name} observes only: it would have kept {kept} of {offered} nodes{': ' if reasons else ''}{reasons}."
    return _note(pod, "PlacementObserved", text)
