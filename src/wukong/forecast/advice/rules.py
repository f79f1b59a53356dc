"""The rules of a workload's template as its document writes them, for candidates that change them. Pure.

A rule is known by its index: the document and what the API server made of it have the same terms in the same order, or
nothing is proposed.
"""

from __future__ import annotations

from typing import Any

from wukong.forecast.advice.question import StuckWorkload
from wukong.ports import Document

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
TEMPLATE_HASH = "pod-template-hash"
ANTI_AFFINITY = "podAntiAffinity"


def list_required(workload: StuckWorkload, side: str = ANTI_AFFINITY) -> list[Document]:
    """The required terms of one side; none where the document does not have what the server has."""
    terms = _affinity_of(workload).get(side, {}).get(REQUIRED) or []
    affinity = workload.template.spec.affinity
    typed = None
    if affinity is not None:
        typed = affinity.pod_anti_affinity if side == ANTI_AFFINITY else affinity.pod_affinity
    return terms if typed is not None and len(typed.required) == len(terms) else []


def find_own_terms(workload: StuckWorkload) -> list[int]:
    """Which required anti-affinity terms keep the workload's own pods apart, of one version or of two."""
    affinity = workload.template.spec.affinity
    if not list_required(workload) or affinity is None or affinity.pod_anti_affinity is None:
        return []
    terms = affinity.pod_anti_affinity.required
    return [index for index, term in enumerate(terms) if workload.selects_itself(None, term)]


def find_own_constraints(workload: StuckWorkload) -> list[int]:
    """Which spread constraints that must hold count the workload's own pods."""
    typed = workload.template.spec.topology_spread_constraints
    if len(list_constraints(workload)) != len(typed):
        return []
    return [
        index
        for index, constraint in enumerate(typed)
        if constraint.when_unsatisfiable == "DoNotSchedule" and workload.selects_itself(constraint.label_selector)
    ]


def list_constraints(workload: StuckWorkload) -> list[Document]:
    return workload.document["spec"]["template"]["spec"].get("topologySpreadConstraints") or []


def replace_required(
    workload: StuckWorkload, required: list[Document], added: list[Document] | None = None, **pod_fields: Any
) -> Document:
    """The document with these required anti-affinity terms, and with `added` preferred ones. Nothing empty stays."""
    affinity = _affinity_of(workload)
    rules = {**affinity.get(ANTI_AFFINITY, {})}
    rules[REQUIRED] = required
    rules[PREFERRED] = [*(rules.get(PREFERRED) or []), *(added or [])]
    rules = {name: terms for name, terms in rules.items() if terms}
    affinity = {**affinity, ANTI_AFFINITY: rules}
    affinity = {name: part for name, part in affinity.items() if part}
    return workload.with_pod_spec(affinity=affinity or None, **pod_fields)


def describe_term(term: Document) -> str:
    return f"required {ANTI_AFFINITY} by {term.get('topologyKey')}"


def _affinity_of(workload: StuckWorkload) -> Document:
    affinity: Document = workload.document["spec"]["template"]["spec"].get("affinity") or {}
    return affinity
