"""NodeAffinity: nodeSelector and required node affinity filter; preferred terms score by their weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from wukong.api.core import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, PreferredSchedulingTerm
from wukong.engine.arrays import Ints, Mask, Rows
from wukong.engine.nodes import NodeRow
from wukong.engine.plugin import FilterPart, Load, Plugin, Reason, ScorePart, highest_is_best
from wukong.engine.refusal_detail import RefusalDetail, describe_requirement, describe_value
from wukong.engine.snapshot import Snapshot
from wukong.engine.template import Template
from wukong.engine.view import View
from wukong.semantics.node_selectors import (
    NODE_NAME_FIELD,
    NodeTerm,
    compile_node_selector,
    compile_term,
    is_empty_term,
)
from wukong.semantics.selectors import Selector, holds, selects

REASON = Reason("node(s) didn't match Pod's node affinity/selector")
ENFORCED = Reason("node(s) didn't match scheduler-enforced node affinity")
NOT_NAMED = Reason("node(s) didn't satisfy plugin(s) [NodeAffinity]")
CONFLICT = "pod affinity terms conflict"


class NodeAffinity(Plugin):
    name = "NodeAffinity"

    def filter(self, view: View) -> FilterPart | None:
        snapshot, template = view.snapshot, view.template
        added = view.profile.added_affinity
        enforced = added.required if added else None
        if not template.node_selector and _required_selector_of(template) is None and enforced is None:
            return None
        outside = None if enforced is None else ~match_node_selector(snapshot, enforced)
        return NodeAffinityFilter(view, outside, ~match_required_affinity(snapshot, template))

    def score(self, view: View) -> ScorePart | None:
        affinity = view.template.affinity.node_affinity
        own = affinity.preferred if affinity else []
        added = view.profile.added_affinity.preferred if view.profile.added_affinity else []
        if not own and not added:
            return None
        return NodeAffinityScore(_sum_weights(view.snapshot, [*added, *own]))

    @staticmethod
    def named_nodes(view: View) -> frozenset[str] | None:
        """The only nodes worth looking at, when every required term names nodes; empty if the terms contradict."""
        required = _required_selector_of(view.template)
        if required is None or not required.node_selector_terms:
            return None
        named: set[str] = set()
        for term in required.node_selector_terms:
            lists = [set(field.values) for field in term.match_fields if _is_node_name_list(field)]
            if not lists:
                return None
            named |= set.intersection(*lists)
        return frozenset(named)

    def find_scoring_error(self, view: View) -> str:
        """A preferred term kube-scheduler cannot parse passes the API but makes every cycle fail that has to score."""
        affinity = view.template.affinity.node_affinity
        for number, entry in enumerate(affinity.preferred if affinity else []):
            if entry.weight and compile_term(entry.preference) is None:
                return f"preferred node affinity term {number} has a key or value that is not valid for a label"
        return ""


class NodeAffinityFilter(FilterPart):
    def __init__(self, view: View, outside: Mask | None, mismatched: Mask) -> None:
        self.view, self.outside = view, outside
        self.mismatched = mismatched if outside is None else mismatched & ~outside

    def failing(self, rows: Rows, load: Load) -> list[tuple[Reason, Mask]]:
        own = [(REASON, self.mismatched[rows])]
        return own if self.outside is None else [(ENFORCED, self.outside[rows]), *own]

    def describe(self, rows: list[int]) -> dict[int, list[RefusalDetail]]:
        snapshot, added = self.view.snapshot, self.view.profile.added_affinity
        selectors = (
            ("the scheduler's addedAffinity", added.required if added else None),
            ("nodeAffinity", _required_selector_of(self.view.template)),
        )
        rejections = [
            (place, selector, ~match_node_selector(snapshot, selector))
            for place, selector in selectors
            if selector is not None
        ]
        return {
            row: [
                *self._describe_labels(snapshot.rows[row]),
                *(
                    detail
                    for place, selector, rejected in rejections
                    if rejected[row]
                    for detail in _describe_terms(place, selector, snapshot.rows[row])
                ),
            ]
            for row in rows
        }

    def _describe_labels(self, node: NodeRow) -> Iterator[RefusalDetail]:
        for key, value in sorted(self.view.template.pod.spec.node_selector.items()):
            if node.labels.get(key) != value:
                wanted = NodeSelectorRequirement(key=key, operator="In", values=[value])
                yield _describe_requirement("nodeSelector", wanted, node, f"nodeSelector wants {key}={value}")


def _describe_terms(place: str, selector: NodeSelector, node: NodeRow) -> Iterator[RefusalDetail]:
    """The first requirement of each term that the node does not meet: it would have to satisfy but one of them."""
    for term in selector.node_selector_terms:
        if (wanted := find_unmet_requirement(term, node)) is not None:
            text = describe_requirement(wanted.key, wanted.operator, wanted.values)
            yield _describe_requirement("nodeAffinity", wanted, node, f"{place} wants {text}")


def find_unmet_requirement(term: NodeSelectorTerm, node: NodeRow) -> NodeSelectorRequirement | None:
    """The first requirement of a term that a node does not meet; None if a term is empty or cannot be read."""
    for field in term.match_fields:
        compiled = compile_term(NodeSelectorTerm(match_fields=[field]))
        if compiled is not None and not compiled.accepts_name(node.name):
            return field
    for expression in term.match_expressions:
        compiled = compile_term(NodeSelectorTerm(match_expressions=[expression]))
        if compiled is not None and not selects(compiled.labels, node.labels):
            return expression
    return None


def _describe_requirement(kind: str, requirement: NodeSelectorRequirement, node: NodeRow, cause: str) -> RefusalDetail:
    fields = (("key", requirement.key), ("operator", requirement.operator), ("values", list(requirement.values)))
    if requirement.key == NODE_NAME_FIELD:
        return RefusalDetail(kind, cause, fields)
    value = describe_value(node.labels, requirement)
    return RefusalDetail(kind, cause, fields, value=value, actual=node.labels.get(requirement.key))


class NodeAffinityScore(ScorePart):
    normalise = staticmethod(highest_is_best)

    def __init__(self, weights: Ints) -> None:
        self.weights = weights

    def raw(self, rows: Rows, load: Load) -> Ints:
        return self.weights[rows]


def match_required_affinity(snapshot: Snapshot, template: Template) -> Mask:
    """[node] whether the pod's nodeSelector and required node affinity accept it."""
    accepted = match_labels(snapshot, template.node_selector)
    required = _required_selector_of(template)
    return accepted if required is None else accepted & match_node_selector(snapshot, required)


def match_node_selector(snapshot: Snapshot, selector: NodeSelector, *, by_labels_only: bool = False) -> Mask:
    """[node] whether any term accepts it. Empty terms and terms that cannot be parsed accept nothing."""
    accepted = np.zeros(len(snapshot.rows), dtype=np.bool_)
    for term in compile_node_selector(selector):
        accepted |= _match_term(snapshot, term._replace(fields=()) if by_labels_only else term)
    return accepted


def _sum_weights(snapshot: Snapshot, terms: Sequence[PreferredSchedulingTerm]) -> Ints:
    total = np.zeros(len(snapshot.rows), dtype=np.int64)
    for entry in terms:
        term = None if is_empty_term(entry.preference) else compile_term(entry.preference)
        if entry.weight and term is not None:
            total += entry.weight * _match_term(snapshot, term)
    return total


def _match_term(snapshot: Snapshot, term: NodeTerm) -> Mask:
    accepted = match_labels(snapshot, term.labels)
    for field in term.fields:
        matching = np.full(len(snapshot.rows), field.key != NODE_NAME_FIELD and field.value == "", dtype=np.bool_)
        if field.key == NODE_NAME_FIELD and field.value in snapshot.row_of:
            matching[snapshot.row_of[field.value]] = True
        accepted = accepted & (matching if field.is_equal else ~matching)
    return accepted


def match_labels(snapshot: Snapshot, selector: Selector) -> Mask:
    accepted = np.ones(len(snapshot.rows), dtype=np.bool_)
    for key, operator, values in selector:
        column = snapshot.column(key)
        verdicts = [holds(operator, values, value) for value in column.domains]
        table = np.array(
            [*verdicts, holds(operator, values, None)], dtype=np.bool_
        )  # [domain], the last: no such label
        accepted &= table[column.ids]
    return accepted


def _required_selector_of(template: Template) -> NodeSelector | None:
    affinity = template.affinity.node_affinity
    return affinity.required if affinity else None


def _is_node_name_list(field: NodeSelectorRequirement) -> bool:
    return field.key == NODE_NAME_FIELD and field.operator == "In"
