"""Shows an explanation: nodes by plugins, the winner first; and for a pod that fits nowhere, what would help.

Called by results.py. One column per plugin that had something to say: points where the pod fits, a cross where the
plugin refuses the node. Nodes judged alike share a row.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from rich.text import Text

from wukong.cli.views.console import Part, Table, count, name_some
from wukong.cli.views.policy import build_policy_document, build_policy_view
from wukong.engine.decision import Preemption
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
    "VolumeBinding": "VOLUME",
    "PodTopologySpread": "SPREAD",
    "InterPodAffinity": "INTERPOD",
    "NodeResourcesBalancedAllocation": "BALANCE",
    "ImageLocality": "IMAGE",
    EXTENDER: "EXT",
}
BEST, PASSED, REFUSED = "★", "✓", "✗"


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
                "refusals": {plugin: list(reasons) for plugin, reasons in group.refusals.items()},
            }
            for group in explanation.groups
        ],
        "message": explanation.message,
        "error": explanation.error,
        "histogram": [
            {"nodes": number, "plugin": plugin, "reason": reason}
            for number, plugin, reason in count_refusals(explanation)
        ],
        "preemption": _build_preemption_document(explanation.preemption),
        "fixes": [{"kind": fix.kind, "change": fix.sentence, "nodes": fix.nodes} for fix in explanation.fixes],
        "notes": list(explanation.notes),
        "policy": None if report is None else build_policy_document(report),
    }


def _build_preemption_document(preemption: Preemption | None) -> dict[str, object] | None:
    if preemption is None:
        return None
    return {"node": preemption.node, "victims": list(preemption.victims), "budgetsBroken": preemption.violations}


def build_explanation_view(
    explanation: Explanation, name: str, runs_on: str, every_node: bool, report: PolicyReport | None = None
) -> Iterator[Part]:
    yield _build_verdict(explanation, name, runs_on)
    if not _count_feasible(explanation) and explanation.nodes:
        yield from ("", _build_histogram(explanation))
    if explanation.groups:
        yield from ("", *_build_matrix(explanation, runs_on, every_node))
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


def _build_matrix(explanation: Explanation, runs_on: str, every_node: bool) -> Iterator[Part]:
    groups = list(_split_groups(explanation.groups)) if every_node else _select_groups(explanation.groups)
    columns = list(_build_columns(explanation, runs_on, every_node))
    numbers = [column.heading for column in columns if column.is_number]
    table = Table(*(column.heading for column in columns), numbers=numbers)
    for group in groups:
        style = "green" if group.is_best else "" if group.is_feasible else "dim"
        table.add_row(*(column.cell(group) for column in columns), style=style)
    yield table
    hidden = explanation.nodes - sum(len(group.nodes) for group in groups)
    if hidden:
        kinds = count(len(explanation.groups) - len(groups), "more group")
        yield f"… and {kinds} with {count(hidden, 'node')}; -o wide shows every node."


class _Column(NamedTuple):
    heading: str
    cell: Callable[[NodeGroup], str]
    is_number: bool = True


def _build_columns(explanation: Explanation, runs_on: str, every_node: bool) -> Iterator[_Column]:
    if explanation.winner:
        yield _Column("", lambda group: BEST if group.is_best else "", is_number=False)
    yield _Column("NODE" if every_node else "NODES", lambda group: _format_names(group, runs_on), is_number=False)
    if not every_node:
        yield _Column("COUNT", lambda group: f"{len(group.nodes):,}")
    if explanation.scores:
        yield _Column("TOTAL", lambda group: "" if group.total is None else f"{group.total:,}")
    plugins = dict.fromkeys((*explanation.filters, *(plugin for plugin, _ in explanation.scores)))
    for plugin in sorted(plugins, key=lambda plugin: plugin == EXTENDER):  # whoever is asked last stands last
        passed = PASSED if plugin in explanation.filters else ""
        yield _Column(_SHORT.get(plugin, plugin.upper()), partial(_format_cell, plugin=plugin, passed=passed))
    if explanation.filters:
        yield _Column("WHY NOT", _format_reasons, is_number=False)


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


def _split_groups(groups: Sequence[NodeGroup]) -> Iterator[NodeGroup]:
    for group in groups:
        yield from (replace(group, nodes=(node,)) for node in group.nodes)


def _format_names(group: NodeGroup, runs_on: str) -> str:
    if runs_on not in group.nodes:
        return name_some(group.nodes)
    return name_some([f"{runs_on} (now)", *(node for node in group.nodes if node != runs_on)])


def _format_reasons(group: NodeGroup) -> str:
    return "; ".join(reason.removeprefix("node(s) ") for reasons in group.refusals.values() for reason in reasons)


def describe_preemption(who: str, preemption: Preemption) -> str:
    budgets = ", breaking a disruption budget" if preemption.violations else ""
    return f"{who} would evict {name_some(preemption.victims)} from {preemption.node} to fit{budgets}."


def _count_feasible(explanation: Explanation) -> int:
    return sum(len(group.nodes) for group in explanation.groups if group.is_feasible)
