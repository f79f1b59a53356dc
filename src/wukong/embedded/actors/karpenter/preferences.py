"""A pod as Karpenter reads it: what is only preferred is required at first, and given up bit by bit. Pure.

Called by packing.py, which takes the first version that a node takes, be it a new one: so a preference can buy nodes.
The order is that of Karpenter 1.14: alternatives of the required node affinity one after the other, then preferred pod
affinity, pod anti-affinity and node affinity, the heaviest term first, then spread constraints that may be broken. The
taint effect PreferNoSchedule is not counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeVar

from msgspec.structs import replace

from wukong.api.core import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorTerm,
    PodAffinity,
    PreferredSchedulingTerm,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from wukong.embedded.world.objects import Pod

Weighted = TypeVar("Weighted", PreferredSchedulingTerm, WeightedPodAffinityTerm)


class _Wishes(NamedTuple):
    """What is left of a pod's alternatives and preferences."""

    node_terms: tuple[NodeSelectorTerm, ...]
    together: tuple[WeightedPodAffinityTerm, ...]
    apart: tuple[WeightedPodAffinityTerm, ...]
    nodes: tuple[PreferredSchedulingTerm, ...]
    spreads: tuple[TopologySpreadConstraint, ...]  # those that may be broken

    def relax(self) -> _Wishes | None:
        """Without the next one to give up; None if there is none."""
        if len(self.node_terms) > 1:
            return self._replace(node_terms=self.node_terms[1:])
        if self.together:
            return self._replace(together=self.together[1:])
        if self.apart:
            return self._replace(apart=self.apart[1:])
        if self.nodes:
            return self._replace(nodes=self.nodes[1:])
        return self._replace(spreads=self.spreads[1:]) if self.spreads else None


def list_versions(pod: Pod) -> Iterator[Pod]:
    """The pod with fewer and fewer wishes, all of them required. The last has those alone that it must have."""
    wishes: _Wishes | None = _read_wishes(pod)
    if wishes is not None and wishes.relax() is None:
        yield pod
        return
    while wishes is not None:
        yield _require(pod, wishes)
        wishes = wishes.relax()


def _read_wishes(pod: Pod) -> _Wishes:
    affinity = pod.spec.affinity or Affinity()
    node_affinity = affinity.node_affinity or NodeAffinity()
    required = node_affinity.required
    constraints = pod.spec.topology_spread_constraints
    return _Wishes(
        node_terms=tuple(required.node_selector_terms) if required is not None else (),
        together=_sort((affinity.pod_affinity or PodAffinity()).preferred),
        apart=_sort((affinity.pod_anti_affinity or PodAffinity()).preferred),
        nodes=_sort(node_affinity.preferred),
        spreads=tuple(constraint for constraint in constraints if constraint.when_unsatisfiable == "ScheduleAnyway"),
    )


def _sort(terms: list[Weighted]) -> tuple[Weighted, ...]:
    return tuple(sorted(terms, key=lambda term: -term.weight))


def _require(pod: Pod, wishes: _Wishes) -> Pod:
    affinity = pod.spec.affinity or Affinity()
    required_spreads = [
        constraint
        for constraint in pod.spec.topology_spread_constraints
        if constraint.when_unsatisfiable == "DoNotSchedule"
    ]
    spreads = [replace(constraint, when_unsatisfiable="DoNotSchedule") for constraint in wishes.spreads]
    affinity = Affinity(
        node_affinity=_require_nodes(wishes),
        pod_affinity=_require_pods(affinity.pod_affinity, wishes.together),
        pod_anti_affinity=_require_pods(affinity.pod_anti_affinity, wishes.apart),
    )
    spec = replace(pod.spec, affinity=affinity, topology_spread_constraints=[*required_spreads, *spreads])
    return replace(pod, spec=spec)


def _require_nodes(wishes: _Wishes) -> NodeAffinity | None:
    """The first alternative and the heaviest preference together."""
    terms = [*wishes.node_terms[:1], *(entry.preference for entry in wishes.nodes[:1])]
    if not terms:
        return None
    term = NodeSelectorTerm(
        match_expressions=[expression for term in terms for expression in term.match_expressions],
        match_fields=[field for term in terms for field in term.match_fields],
    )
    return NodeAffinity(required=NodeSelector(node_selector_terms=[term]))


def _require_pods(affinity: PodAffinity | None, wishes: tuple[WeightedPodAffinityTerm, ...]) -> PodAffinity | None:
    required = affinity.required if affinity is not None else []
    terms = [*required, *(wish.pod_affinity_term for wish in wishes)]
    return PodAffinity(required=terms) if terms else None
