"""Shows the result of each verb: a view for people, a document for programs. Decides nothing.

Explanations have a module of their own, matrix.py. How things get onto the screen is in console.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.text import Text

from wukong.cli.views.console import Part, count, show, show_document
from wukong.cli.views.matrix import build_explanation_document, build_explanation_view
from wukong.cli.views.refusals import (
    build_preemption_document,
    build_refusal_fields,
    build_refusal_table,
    describe_preemption,
)
from wukong.cli.views.table import Names, Table
from wukong.engine.capacity import Capacity
from wukong.engine.explain import Explanation, NodeGroup
from wukong.engine.replay import Mismatch, Report
from wukong.replies.extender.policy_report import PolicyReport

_MOST_MISMATCHES = 3
_MOST_GROUPS = 12  # of nodes that are refused alike
_COMPARISONS = {  # in the order in which they are shown; `wukong replay` prints further ones as they are called
    "feasibleSets": "feasible sets",
    "scoreCells": "score cells",
    "finals": "final scores",
    "nodes": "chosen nodes",
    "messages": "messages",
    "candidateLists": "candidate lists",
    "candidates": "candidates",
    "nominated": "nominated nodes",
}


def show_explanation(
    explanation: Explanation, name: str, runs_on: str, output: str | None, report: PolicyReport | None = None
) -> None:
    """Print an explanation. `report` is what a policy did to it, if the scheduler has an extender."""
    if output in ("json", "yaml"):
        show_document(build_explanation_document(explanation, name, runs_on, report), output)
    else:
        show(*build_explanation_view(explanation, name, runs_on, output == "wide", report))


# Replay -----------------------------------------------------------------------------------------------------------


def show_replay(report: Report, output: str | None) -> None:
    if output in ("json", "yaml"):
        show_document(_build_replay_document(report), output)
    else:
        show(*_build_replay_view(report, len(report.mismatches) if output == "wide" else _MOST_MISMATCHES))


def _build_replay_document(report: Report) -> dict[str, object]:
    document: dict[str, object] = {
        "scenarios": report.scenarios,
        "pods": report.pods,
        "attempts": report.attempts,
        "compared": {name: number for name, _, number in _list_comparisons(report)},
        "mismatches": len(report.mismatches),
        "byPlugin": report.by_plugin,
    }
    if report.mismatches:
        document["first"] = [
            {
                "line": entry.scenario,
                "seed": entry.seed,
                "pod": entry.pod,
                "attempt": entry.attempt + 1,
                "plugin": entry.plugin,
                "recorded": entry.recorded,
                "decided": entry.decided,
            }
            for entry in report.mismatches[:_MOST_MISMATCHES]
        ]
    return document


def _build_replay_view(report: Report, most: int) -> Iterable[Part]:
    scope = [count(report.scenarios, "scenario"), count(report.pods, "pod"), count(report.attempts, "attempt")]
    yield f"Replayed {', '.join(scope)}."
    compared = Table("COMPARED", "NUMBER", numbers=["NUMBER"])
    for _, words, number in _list_comparisons(report):
        compared.add_row(words, f"{number:,}")
    yield from ("", compared, "")
    if not report.mismatches:
        yield Text("No mismatches.", style="green")
        return
    yield Text(f"{count(len(report.mismatches), 'mismatch', 'mismatches')}:", style="bold red")
    by_plugin = Table("PLUGIN", "MISMATCHES", numbers=["MISMATCHES"])
    for plugin, number in report.by_plugin.items():
        by_plugin.add_row(plugin, f"{number:,}")
    yield by_plugin
    for entry in report.mismatches[:most]:
        yield from _describe_mismatch(entry)
    if len(report.mismatches) > most:
        yield f"\nThe first {most} of {len(report.mismatches):,}; -o wide shows all."


def _describe_mismatch(entry: Mismatch) -> Iterable[Part]:
    place = f"line {entry.scenario} (seed {entry.seed}), pod {entry.pod}, attempt {entry.attempt + 1}"
    yield f"\n{entry.plugin}: {place}"
    yield f"  recorded: {entry.recorded}"
    yield f"  decided:  {entry.decided}"


def _list_comparisons(report: Report) -> list[tuple[str, str, int]]:
    names = [*_COMPARISONS, *sorted(report.compared.keys() - _COMPARISONS.keys())]
    return [(name, _COMPARISONS.get(name, name), report.compared[name]) for name in names]


# Capacity ---------------------------------------------------------------------------------------------------------


def show_capacity(capacity: Capacity, name: str, output: str | None) -> None:
    if output in ("json", "yaml"):
        show_document(_build_capacity_document(capacity, name), output)
    else:
        show(*_build_capacity_view(capacity, name, every_node=output == "wide"))


def _build_capacity_document(capacity: Capacity, name: str) -> dict[str, object]:
    document: dict[str, object] = {
        "pod": name,
        "fits": capacity.fits,
        "nodes": capacity.nodes,
        "perNode": capacity.per_node,
        "reason": capacity.reason,
        "limited": capacity.is_limited,
        "groups": [
            {"nodes": list(group.nodes), "count": len(group.nodes), **build_refusal_fields(group)}
            for group in capacity.refusals
        ],
    }
    if capacity.preemption is not None:
        document["preemption"] = build_preemption_document(capacity.preemption)
    return document


def _build_capacity_view(capacity: Capacity, name: str, every_node: bool) -> Iterable[Part]:
    where = f", on {len(capacity.per_node):,} of {count(capacity.nodes, 'node')}" if capacity.fits else ""
    more = "at least " if capacity.is_limited else ""
    style = "bold green" if capacity.fits else "bold red"
    yield Text(f"{name}: {more}{capacity.fits:,} more fit{where}.", style=style)
    if capacity.per_node:
        yield from ("", _build_node_table(capacity) if every_node else _build_count_table(capacity), "")
    yield f"Why no more: {capacity.reason}"
    if capacity.refusals:
        yield from ("", *_build_refusals(capacity.refusals, every_node=every_node))
    if capacity.preemption is not None:
        yield describe_preemption("The next one", capacity.preemption)


def _build_refusals(groups: Sequence[NodeGroup], *, every_node: bool) -> Iterable[Part]:
    """The largest groups; -o wide has a line for every node."""
    largest = sorted(groups, key=lambda group: -len(group.nodes))
    if every_node:
        yield build_refusal_table([node for group in largest for node in group.split()], is_wide=True)
        return
    shown = largest[:_MOST_GROUPS]
    yield build_refusal_table(shown)
    if hidden := sum(len(group.nodes) for group in largest[len(shown) :]):
        yield f"… and {count(hidden, 'more node')}; -o wide shows them."


def _build_node_table(capacity: Capacity) -> Table:
    table = Table("NODE", "PODS", numbers=["PODS"], is_wide=True)
    for node, number in capacity.per_node.items():
        table.add_row(node, f"{number:,}")
    return table


def _build_count_table(capacity: Capacity) -> Table:
    """Nodes that took equally many share a line, so that 5,000 nodes stay readable."""
    groups: dict[int, list[str]] = {}
    for node, number in capacity.per_node.items():
        groups.setdefault(number, []).append(node)
    table = Table("PODS EACH", "NODES", "NAMES", numbers=["PODS EACH", "NODES"], names=["NAMES"])
    for number, nodes in groups.items():
        table.add_row(f"{number:,}", f"{len(nodes):,}", Names(nodes))
    return table
