"""Shows a policy's part in a decision: which policy holds, what it changed, and what its points are made of.

Called by matrix.py. Decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

from wukong.cli.views.console import Part, count
from wukong.cli.views.table import Table
from wukong.engine.explain import NodeGroup
from wukong.placement.matching import NO_POLICY
from wukong.placement.price_table import AS_OF, SPOT_SHARE
from wukong.replies.extender.plugin import PER_POINT
from wukong.replies.extender.policy_report import PolicyReport

_MOST_NODES = 6  # columns of the breakdown
_FORMULA = "points = Σ weight · points of a term / Σ weight; score = points / 10, rounded half up"


def build_policy_document(report: PolicyReport) -> dict[str, object]:
    return {
        "name": report.policy,
        "justAsSpecific": list(report.others),
        "mode": "Enforce" if report.is_enforced else "Observe",
        "strategy": report.strategy or None,
        "ownStrategy": report.own_strategy or None,
        "critical": report.is_critical,
        "decidedAtAdmission": report.is_marked,
        "priority": report.priority,
        "fallback": report.is_fallback,
        "winnerWithout": report.alone or None,
        "offered": report.offered,
        "observed": report.observed,
        "extenderWeight": report.weight,
        "formula": _FORMULA,
        "terms": [{"name": term.name, "weight": term.weight, "points": term.points} for term in report.terms],
        "prioritize": list(report.ranks),
        "points": report.points,
        "scores": report.scores,
        "failedRules": report.faults,
        "notes": list(build_remarks(report)),
    }


def build_policy_view(report: PolicyReport, groups: Sequence[NodeGroup], winner: str) -> Iterator[Part]:
    yield Text(_build_headline(report), style="bold")
    if report.is_marked:
        yield f"Decided when it was created, as it is marked: {report.strategy}."
    if report.is_critical:
        instead = f" instead of {report.own_strategy}" if report.own_strategy else ""
        bound = f"{report.critical_priority} or more"
        yield f"Critical, its priority {report.priority} being {bound}: {report.strategy}{instead}."
    if winner and report.alone != winner:
        yield f"Without the extender it would go to {report.alone}."
    columns = [group.nodes[0] for group in groups if group.nodes[0] in report.scores][:_MOST_NODES]
    if report.terms and report.weight and columns:
        yield from ("", _build_breakdown(report, columns))
        yield f"{_FORMULA}; EXT = score × {report.weight} × {PER_POINT}."
        if report.ranks:
            yield f"Of the nodes tied at the best score, those that {', '.join(report.ranks)} ranks lower get one less."
    yield from (f"Note: {text}" for text in build_remarks(report))


def build_remarks(report: PolicyReport) -> Iterator[str]:
    """Yield what to know beside the numbers, in sentences."""
    yield from report.notes
    if report.reads_usage and report.unmeasured:
        nodes = count(report.unmeasured, "node")
        yield f"The usage of {nodes} is not known, which counts as neutral: neither good nor bad."
    if report.reads_prices and report.unpriced:
        yield f"The price of {count(report.unpriced, 'node')} is not known, which counts as neutral, too."
    if report.reads_prices and report.listed:
        share = f"spot at {SPOT_SHARE:.0%} of on-demand"
        nodes = count(report.listed, "node")
        yield f"Of {nodes} the built-in list prices of {AS_OF} count, {share}: --prices has yours."
    if report.scheduler_name:
        scheduler = report.scheduler_name
        yield f"{report.policy} is meant for pods of the scheduler {scheduler}; pods must name it themselves."
    if report.never_preempts:
        yield f"{report.policy} has nobody preempted for its pods (preemptionPolicy: Never)."
    for rule, error in report.faults.items():
        yield f"The rule {rule} failed and does not count: {error}."


def _build_headline(report: PolicyReport) -> str:
    how = report.own_strategy or "no strategy"
    if report.policy == NO_POLICY:
        return f"No policy selects it: {how}, as the extender has it for such pods."
    observes = "" if report.is_enforced else ", but only observes: nothing is refused, no points are added"
    return f"{report.policy} holds: {how}{observes}."


def _build_breakdown(report: PolicyReport, nodes: Sequence[str]) -> Table:
    """Return a table with a line for each term and a column for each node, the best first; the sums below."""
    table = Table(
        *("TERM", "WEIGHT", *nodes),
        numbers=["WEIGHT", *nodes],
        whole=["TERM"],
        name_headings=nodes,
        drops=nodes[:0:-1],
        elsewhere="-o json has every node",
    )
    for term in report.terms:
        table.add_row(term.name, str(term.weight), *(f"{term.points[node]:.1f}" for node in nodes))
    table.add_row("points", "", *(f"{report.points[node]:.2f}" for node in nodes), style="dim")
    table.add_row("score", "", *(str(report.scores[node]) for node in nodes), style="dim")
    table.add_row(
        "EXT", str(report.weight), *(f"{report.scores[node] * report.weight * PER_POINT:,}" for node in nodes)
    )
    return table
