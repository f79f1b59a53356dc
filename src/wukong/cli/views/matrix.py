"""Shows an explanation: nodes by plugins, the winner first; and for a pod that fits nowhere, what would help.

Called by results.py. Nodes judged alike share a row: those that fit with a column of points for each plugin, the others
with what keeps the pod off them. In -o wide every node has a row, and every plugin that had something to say a column:
points where the pod fits, a cross where the plugin refuses the node.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from rich.text import Text

from wukong.cli.views.console import Part, count
from wukong.cli.views.policy import build_policy_document, build_policy_view
from wukong.cli.views.refusals import (
    build_preemption_document,
    build_refusal_fields,
    build_refusal_table,
    describe_preemption,
    list_names,
)
from wukong.cli.views.table import Cell, Table
from wukong.engine.explain import Explanation, NodeGroup
from wukong.replies.extender.plugin import NAME as EXTENDER
from wukong.replies.extender.policy_report import PolicyReport

_MOST_ROWS = 12  # of the groups that fit, and of those that do not
_SHORT = {
    "NodeUnschedulable": "CORDON",
    "NodeName": "NAME",
    "TaintToleration": "TAINT",
    "NodeAffinity": "AFFINITY",
    "NodePorts": "PORTS",
    "NodeResourcesFit": "FIT",
    "VolumeRestrictions": "DISK",
    "NodeVolumeLimits": "ATTACH",
    "VolumeBinding": "VOLUME",
    "VolumeZone": "VOLZONE",
    "PodTopologySpread": "SPREAD",
    "InterPodAffinity": "INTERPOD",
    "NodeResourcesBalancedAllocation": "BALANCE",
    "ImageLocality": "IMAGE",
    EXTENDER: "EXT",
}
BEST, PASSED, REFUSED = "★", "✓", "✗"
_ELSEWHERE = "-o wide shows every column and node"


def build_explanation_document(
    explanation: Explanation, name: str, runs_on: str, report: PolicyReport | None = None
) -> dict[str, object]:
    return {
        "pod": name,
        "nodes": explanation.nodes,
        "feasible": _count_feasible(explanation),
        "winner": explanation.winner or None,
        "runsOn": runs_on or None,
        "weights": dict(explanation.scores),
        "groups": [
            {
                "nodes": list(group.nodes),
                "count": len(group.nodes),
                "fits": group.is_feasible,
                "best": group.is_best,
                "total": group.total,
                "points": group.points,
                **build_refusal_fields(group),
            }
            for group in explanation.groups
        ],
        "message": explanation.message,
        "error": explanation.error,
        "histogram": [
            {"nodes": number, "plugin": plugin, "reason": reason}
            for number, plugin, reason in count_refusals(explanation)
        ],
        "preemption": build_preemption_document(explanation.preemption),
        "fixes": [{"kind": fix.kind, "change": fix.sentence, "nodes": fix.nodes} for fix in explanation.fixes],
        "notes": list(explanation.notes),
        "policy": None if report is None else build_policy_document(report),
    }


def build_explanation_view(
    explanation: Explanation, name: str, runs_on: str, every_node: bool, report: PolicyReport | None = None
) -> Iterator[Part]:
    yield _build_verdict(explanation, name, runs_on)
    if not _count_feasible(explanation) and explanation.nodes:
        yield from ("", _build_histogram(explanation))
    if explanation.groups:
        whole = [_build_whole_matrix(explanation, runs_on)] if every_node else []
        yield from ("", *(whole or _build_matrix(explanation, runs_on)))
    if report is not None:
        yield from ("", *build_policy_view(report, explanation.groups, explanation.winner))
    if explanation.fixes:
        yield from ("", Text("What would make it fit, each by itself, the smallest change first:", style="bold"))
        yield from (f"  - {fix.sentence}: fits on {count(fix.nodes, 'node')}" for fix in explanation.fixes)
    elif not _count_feasible(explanation) and explanation.nodes:
        yield from ("", "No single change that Wukong knows of would make it fit.")
    if explanation.preemption is not None:
        yield from ("", describe_preemption("It", explanation.preemption))
    if explanation.message:
        yield from ("", f"kube-scheduler says: {explanation.message}")
    yield from (f"Note: {text}." for text in explanation.notes)


def _build_verdict(explanation: Explanation, name: str, runs_on: str) -> Text:
    fits = f"{name} fits on {_count_feasible(explanation):,} of {count(explanation.nodes, 'node')}"
    now = f" It runs on {runs_on} now." if runs_on else ""
    if explanation.error:
        return Text(f"{fits}, but kube-scheduler cannot choose: {explanation.error}.{now}", style="bold red")
    if not explanation.winner:
        return Text(f"{fits}.{now}", style="bold red")
    equals = sum(len(group.nodes) for group in explanation.groups if group.is_best)
    drawn = f", or another of the {equals:,} with the highest total" if equals > 1 else ""
    return Text(f"{fits} and goes to {explanation.winner}{drawn}.{now}", style="bold green")


def count_refusals(explanation: Explanation) -> list[tuple[int, str, str]]:
    """Count the nodes each reason refused, most first. As in kube-scheduler only the first plugin to refuse counts."""
    tally: Tally[tuple[str, str]] = Tally()
    for group in explanation.groups:
        for plugin, reasons in list(group.refusals.items())[:1]:
            tally.update({(plugin, reason): len(group.nodes) for reason in reasons})
    ordered = sorted(tally.items(), key=lambda entry: (-entry[1], entry[0]))
    return [(number, plugin, reason) for (plugin, reason), number in ordered]


def _build_histogram(explanation: Explanation) -> Table:
    table = Table("NODES", "REASON", "PLUGIN", numbers=["NODES"])
    for number, plugin, reason in count_refusals(explanation):
        table.add_row(f"{number:,}", reason, plugin)
    return table


def _build_matrix(explanation: Explanation, runs_on: str) -> Iterator[Part]:
    """Nodes that fit with their points, then nodes that do not with the reasons."""
    groups = _select_groups(explanation.groups)
    if fitting := [group for group in groups if group.is_feasible]:
        scores = [_SHORT.get(plugin, plugin.upper()) for plugin in _list_scores(explanation)]
        drops = [heading for heading in reversed(scores) if heading != _SHORT[EXTENDER]]
        yield _build_table(fitting, list(_build_columns(explanation, runs_on)), drops=drops, elsewhere=_ELSEWHERE)
    if refused := [group for group in groups if not group.is_feasible]:
        yield from ("",) if fitting else ()
        yield build_refusal_table(refused, runs_on)
    hidden = explanation.nodes - sum(len(group.nodes) for group in groups)
    if hidden:
        kinds = count(len(explanation.groups) - len(groups), "more group")
        yield f"… and {kinds} with {count(hidden, 'node')}; -o wide shows every node."


def _build_whole_matrix(explanation: Explanation, runs_on: str) -> Table:
    """A line for every node, a column for every plugin."""
    groups = [node for group in explanation.groups for node in group.split()]
    return _build_table(groups, list(_build_whole_columns(explanation, runs_on)), is_wide=True)


def _build_table(groups: Sequence[NodeGroup], columns: Sequence[_Column], **options: Any) -> Table:
    numbers = [column.heading for column in columns if column.is_number]
    table = Table(*(column.heading for column in columns), numbers=numbers, whole=[""], names=["NODES"], **options)
    for group in groups:
        style = "green" if group.is_best else "" if group.is_feasible else "dim"
        table.add_row(*(column.cell(group) for column in columns), style=style)
    return table


class _Column(NamedTuple):
    heading: str
    cell: Callable[[NodeGroup], Cell]
    is_number: bool = True


def _build_columns(explanation: Explanation, runs_on: str) -> Iterator[_Column]:
    if explanation.winner:
        yield _Column("", lambda group: BEST if group.is_best else "", is_number=False)
    yield _Column("NODES", lambda group: list_names(group, runs_on), is_number=False)
    yield _Column("COUNT", lambda group: f"{len(group.nodes):,}")
    if explanation.scores:
        yield _Column("TOTAL", lambda group: "" if group.total is None else f"{group.total:,}")
    for plugin in _list_scores(explanation):
        yield _Column(_SHORT.get(plugin, plugin.upper()), partial(_format_cell, plugin=plugin, passed=""))


def _list_scores(explanation: Explanation) -> list[str]:
    return sorted((plugin for plugin, _ in explanation.scores), key=lambda plugin: plugin == EXTENDER)


def _build_whole_columns(explanation: Explanation, runs_on: str) -> Iterator[_Column]:
    if explanation.winner:
        yield _Column("", lambda group: BEST if group.is_best else "", is_number=False)
    yield _Column("NODE", lambda group: str(list_names(group, runs_on)), is_number=False)
    if explanation.scores:
        yield _Column("TOTAL", lambda group: "" if group.total is None else f"{group.total:,}")
    plugins = dict.fromkeys((*explanation.filters, *(plugin for plugin, _ in explanation.scores)))
    for plugin in sorted(plugins, key=lambda plugin: plugin == EXTENDER):  # whoever is asked last stands last
        passed = PASSED if plugin in explanation.filters else ""
        yield _Column(_SHORT.get(plugin, plugin.upper()), partial(_format_cell, plugin=plugin, passed=passed))
    if explanation.filters:
        yield _Column("WHY NOT", lambda group: "; ".join(group.list_reasons()), is_number=False)


def _format_cell(group: NodeGroup, plugin: str, passed: str) -> str:
    if plugin in group.refusals:
        return REFUSED
    if plugin == EXTENDER and group.refusals:  # it is asked about the nodes that passed everything else
        return ""
    return str(group.points[plugin]) if plugin in group.points else passed


def _select_groups(groups: Sequence[NodeGroup]) -> list[NodeGroup]:
    """Return the best of the groups that fit and the largest of those that do not."""
    fitting = [group for group in groups if group.is_feasible]
    refused = [group for group in groups if not group.is_feasible]
    return fitting[:_MOST_ROWS] + sorted(refused, key=lambda group: -len(group.nodes))[:_MOST_ROWS]


def _count_feasible(explanation: Explanation) -> int:
    return sum(len(group.nodes) for group in explanation.groups if group.is_feasible)
