"""A preference for nodes that what is required excludes: `required In [spot]` beside `preferred on-demand`."""

from __future__ import annotations

from collections.abc import Iterator

from wukong.api.core import NodeSelectorRequirement
from wukong.forecast.fields import PlanWarning
from wukong.forecast.warnings.situation import Situation, TouchedWorkload
from wukong.placement.term_conflicts import find_impossible_key
from wukong.semantics.selectors import Selector, compile_expressions, require_labels

CODE = "preference-never-applies"
_PATH = "$.spec.template.spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution"


def find(situation: Situation) -> Iterator[PlanWarning]:
    for workload in situation.workloads:
        node_affinity = workload.affinity.node_affinity
        if node_affinity is None:
            continue
        alternatives = list(_list_possible_alternatives(workload))
        for index, preferred in enumerate(node_affinity.preferred):
            expressions = preferred.preference.match_expressions
            wish = compile_expressions(expressions)
            if not wish or not alternatives:
                continue
            keys = [find_impossible_key((*required, *wish)) for required in alternatives]
            if all(key is not None for key in keys):
                yield PlanWarning(
                    code=CODE,
                    subject=workload.subject,
                    path=f"{_PATH}[{index}]",
                    text=f"prefers {_describe(expressions)}, and what is required of {keys[0]} excludes it: "
                    "it never applies.",
                    fix=f"Require both (In, with all values of {keys[0]}) and prefer one, or remove the preference.",
                )


def _list_possible_alternatives(workload: TouchedWorkload) -> Iterator[Selector]:
    """What a node must have: nodeSelector with each alternative of the required affinity that some node could meet."""
    selector = require_labels(workload.pod.spec.node_selector)
    node_affinity = workload.affinity.node_affinity
    required = node_affinity.required if node_affinity is not None else None
    if required is None:
        yield selector
        return
    for term in required.node_selector_terms:
        expressions = compile_expressions(term.match_expressions)
        if expressions is not None and find_impossible_key((*selector, *expressions)) is None:
            yield (*selector, *expressions)


def _describe(expressions: list[NodeSelectorRequirement]) -> str:
    parts = (f"{entry.key} {entry.operator} [{', '.join(entry.values)}]" for entry in expressions)
    return " and ".join(parts)
