"""How a policy's part in a decision is shown: which holds, what changed by it, and what its points are made of.

Called by matrix.py. Decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

from wukong.cli.views.console import Part, Table, count
from wukong.engine.explain import NodeGroup
from wukong.placement.price_table import AS_OF, SPOT_SHARE
from wukong.replies.extender.plugin import PER_POINT
from wukong.replies.extender.policy_report import PolicyReport

_MOST_NODES = 6  # columns of the breakdown
_FORMULA = "points = Σ weight · points of a term / Σ weight; score = points / 10, rounded half up"


def policy_document(told: PolicyReport) -> dict[str, object]:
    return {
        "name": told.policy,
        "justAsSpecific": list(told.others),
        "mode": "Enforce" if told.is_enforced else "Observe",
        "strategy": told.strategy or None,
        "ownStrategy": told.own_strategy or None,
        "critical": told.is_critical,
        "priority": told.priority,
        "fallback": told.is_fallback,
        "winnerWithout": told.alone or None,
        "offered": told.offered,
        "observed": told.observed,
        "extenderWeight": told.weight,
        "formula": _FORMULA,
        "terms": [{"name": term.name, "weight": term.weight, "points": term.points} for term in told.terms],
        "prioritize": list(told.ranks),
        "points": told.points,
        "scores": told.scores,
        "failedRules": told.faults,
        "notes": list(remarks(told)),
    }


def policy_view(told: PolicyReport, groups: Sequence[NodeGroup], winner: str) -> Iterator[Part]:
    yield Text(_head(told), style="bold")
    if told.is_critical:
        instead = f" instead of {told.own_strategy}" if told.own_strategy else ""
        yield (
            f"Critical, its priority {told.priority} being {told.critical_priority} or more: {told.strategy}{instead}."
        )
    if winner and told.alone != winner:
        yield f"Without the extender it would go to {told.alone}."
    shown = [group.nodes[0] for group in groups if group.nodes[0] in told.scores][:_MOST_NODES]
    if told.terms and told.weight and shown:
        yield from ("", _breakdown(told, shown))
        yield f"{_FORMULA}; EXT = score × {told.weight} × {PER_POINT}."
        if told.ranks:
            yield f"Of the nodes tied at the best score, those that {', '.join(told.ranks)} ranks lower get one less."
    yield from (f"Note: {text}" for text in remarks(told))


def remarks(told: PolicyReport) -> Iterator[str]:
    """What to know beside the numbers, in sentences."""
    yield from told.notes
    if told.reads_usage and told.unmeasured:
        nodes = count(told.unmeasured, "node")
        yield f"The usage of {nodes} is not known, which counts as neutral: neither good nor bad."
    if told.reads_prices and told.unpriced:
        yield f"The price of {count(told.unpriced, 'node')} is not known, which counts as neutral, too."
    if told.reads_prices and told.listed:
        share = f"spot at {SPOT_SHARE:.0%} of on-demand"
        yield f"Of {count(told.listed, 'node')} the built-in list prices of {AS_OF} count, {share}: --prices has yours."
    if told.scheduler_name:
        yield f"{told.policy} is meant for pods of the scheduler {told.scheduler_name}; pods must name it themselves."
    if told.never_preempts:
        yield f"{told.policy} has nobody preempted for its pods (preemptionPolicy: Never)."
    for rule, error in told.faults.items():
        yield f"The rule {rule} failed and does not count: {error}."


def _head(told: PolicyReport) -> str:
    how = told.own_strategy or "no strategy"
    if told.policy == "no policy":
        return f"No policy selects it: {how}, as the extender has it for such pods."
    observes = "" if told.is_enforced else ", but only observes: nothing is refused, no points are added"
    return f"{told.policy} holds: {how}{observes}."


def _breakdown(told: PolicyReport, nodes: Sequence[str]) -> Table:
    """A line for each term, a column for each node, the best first; below, what it comes to."""
    made = Table("TERM", "WEIGHT", *nodes, numbers=["WEIGHT", *nodes])
    for term in told.terms:
        made.add_row(term.name, str(term.weight), *(f"{term.points[node]:.1f}" for node in nodes))
    made.add_row("points", "", *(f"{told.points[node]:.2f}" for node in nodes), style="dim")
    made.add_row("score", "", *(str(told.scores[node]) for node in nodes), style="dim")
    made.add_row("EXT", str(told.weight), *(f"{told.scores[node] * told.weight * PER_POINT:,}" for node in nodes))
    return made
