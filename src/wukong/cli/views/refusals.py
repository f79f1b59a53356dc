"""Shows why a pod does not fit on nodes: the table for people, the fields for programs. Decides nothing.

Called by matrix.py (explain), results.py (capacity) and story.py. Nodes that refuse it for the same causes share a row.
"""

from __future__ import annotations

from collections.abc import Sequence

from wukong.cli.views.table import Names, Table, name_some
from wukong.engine.decision import Preemption
from wukong.engine.explain import NodeGroup


def build_refusal_table(groups: Sequence[NodeGroup], runs_on: str = "", *, is_wide: bool = False) -> Table:
    table = Table("NODES", "COUNT", "WHY NOT", numbers=["COUNT"], names=["NODES"], is_wide=is_wide)
    for group in groups:
        table.add_row(list_names(group, runs_on), f"{len(group.nodes):,}", "; ".join(group.list_reasons()), style="dim")
    return table


def list_names(group: NodeGroup, runs_on: str) -> Names:
    if runs_on not in group.nodes:
        return Names(group.nodes)
    return Names([f"{runs_on} (now)", *(node for node in group.nodes if node != runs_on)])


def build_refusal_fields(group: NodeGroup) -> dict[str, object]:
    """For programs: kube-scheduler's reasons by plugin, and what they are about."""
    return {
        "refusals": {plugin: list(reasons) for plugin, reasons in group.refusals.items()},
        "details": [detail.build_document() for detail in group.details],
    }


def build_preemption_document(preemption: Preemption | None) -> dict[str, object] | None:
    if preemption is None:
        return None
    return {
        "node": preemption.node,
        "victims": list(preemption.victims),
        "budgetsBroken": preemption.violations,
        "budgets": list(preemption.budgets),
    }


def describe_preemption(who: str, preemption: Preemption) -> str:
    budgets = ", ".join(preemption.budgets)
    broken = f", breaking the disruption budget {budgets}" if preemption.violations else ""
    return f"{who} would evict {name_some(preemption.victims)} from {preemption.node} to fit{broken}."
