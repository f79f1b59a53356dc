"""Required rules of one template that bar each other: no cluster can place its pods."""

from __future__ import annotations

from collections.abc import Iterator

from wukong.forecast.fields import PlanWarning
from wukong.forecast.warnings.situation import Situation, TouchedWorkload
from wukong.placement.term_conflicts import find_impossible_key, is_barred
from wukong.semantics.selectors import compile_expressions, require_labels

CODE = "rules-bar-each-other"


def find(situation: Situation) -> Iterator[PlanWarning]:
    for workload in situation.workloads:
        yield from _find_pod_conflicts(situation, workload)
        yield from _find_node_conflict(workload)


def _find_pod_conflicts(situation: Situation, workload: TouchedWorkload) -> Iterator[PlanWarning]:
    for path, near in workload.list_required_terms("podAffinity"):
        for other, apart in workload.list_required_terms("podAntiAffinity"):
            if is_barred(near, apart, workload.key.namespace):
                is_first_alone = situation.selects_own_pods(workload, near)
                count = "only the first pod can be placed" if is_first_alone else "no pod can be placed"
                yield PlanWarning(
                    code=CODE,
                    subject=workload.subject,
                    path=path,
                    text=f"asks for a {near.topology_key} with the pods that {other} keeps it away from: {count}.",
                    fix="Remove one of the two, or make one of them preferred.",
                )


def _find_node_conflict(workload: TouchedWorkload) -> Iterator[PlanWarning]:
    """Where nodeSelector and each alternative of the required node affinity exclude each other, or themselves."""
    node_affinity = workload.affinity.node_affinity
    if node_affinity is None or node_affinity.required is None or not node_affinity.required.node_selector_terms:
        return
    selector = require_labels(workload.pod.spec.node_selector)
    keys = [
        find_impossible_key((*selector, *(compile_expressions(term.match_expressions) or ())))
        for term in node_affinity.required.node_selector_terms
    ]
    if all(key is not None for key in keys):
        yield PlanWarning(
            code=CODE,
            subject=workload.subject,
            path="$.spec.template.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution",
            text=f"no node can have a label {keys[0]} as it is asked for here and in nodeSelector: "
            "no pod can be placed.",
            fix=f"Mend what is said of {keys[0]}, or remove it.",
        )
