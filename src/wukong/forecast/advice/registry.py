"""Every kind of candidate, one file each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from wukong.forecast.advice import (
    match_label_keys,
    more_nodes,
    other_budget,
    other_replicas,
    pod_fixes,
    preferred_rule,
    rollout_limits,
    spread_instead,
)
from wukong.forecast.advice.candidate import Candidate
from wukong.forecast.advice.question import Question

CANDIDATES: dict[str, Callable[[Question], Iterator[Candidate]]] = {
    match_label_keys.CODE: match_label_keys.propose,
    rollout_limits.CODE: rollout_limits.propose,
    preferred_rule.CODE: preferred_rule.propose,
    spread_instead.CODE: spread_instead.propose,
    pod_fixes.CODE: pod_fixes.propose,
    more_nodes.CODE: more_nodes.propose,
    other_budget.CODE: other_budget.propose,
    other_replicas.FEWER: other_replicas.propose_fewer,
    other_replicas.MORE: other_replicas.propose_more,
}


def list_candidates(question: Question) -> list[Candidate]:
    """All candidates, the one that gives up least first."""
    return sort_distinct(candidate for propose in CANDIDATES.values() for candidate in propose(question))


def sort_distinct(candidates: Iterable[Candidate]) -> list[Candidate]:
    """In their order; those that write the same are listed once."""
    distinct: list[Candidate] = []
    for candidate in sorted(candidates, key=lambda candidate: candidate.order):
        if not any(_is_alike(candidate, other) for other in distinct):
            distinct.append(candidate)
    return distinct


def _is_alike(candidate: Candidate, other: Candidate) -> bool:
    return (candidate.patches, candidate.nodes, candidate.steps) == (other.patches, other.nodes, other.steps)
