"""Which labels a selector selects, and which nodes a node selector selects.

Called by every rule that looks for pods or nodes by label. A selector is first read into requirements:

    None                     nothing is selected (the field was absent, or is written wrongly)
    ()                       everything is selected (the field was there, but empty)
    (Requirement, ...)       all of them must hold

Never reports what is wrong with a selector.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from wukong.api.core import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from wukong.api.meta import LabelSelector, LabelSelectorRequirement
from wukong.rules.labels import Labels, is_label_key, is_label_value, parse_whole_number

NODE_NAME_FIELD = "metadata.name"


class Requirement(NamedTuple):
    """One condition on one label."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


Requirements = tuple[Requirement, ...] | None


def requirements(selector: LabelSelector | None) -> Requirements:
    """The conditions of a label selector."""
    if selector is None:
        return None
    conditions = (*require_equal(selector.match_labels), *map(_read_requirement, selector.match_expressions))
    return conditions if all(map(is_valid, conditions)) else None


def require_equal(labels: Labels) -> tuple[Requirement, ...]:
    """The conditions that exactly these labels are present. Not checked for syntax, as in kube-scheduler."""
    return tuple(Requirement(key, "In", (value,)) for key, value in labels.items())


def selects(conditions: Requirements, labels: Labels) -> bool:
    return conditions is not None and all(holds(condition, labels) for condition in conditions)


def holds(condition: Requirement, labels: Labels) -> bool:
    key, operator, values = condition
    if operator == "In":
        return key in labels and labels[key] in values
    if operator == "NotIn":
        return key not in labels or labels[key] not in values
    if operator == "Exists":
        return key in labels
    if operator == "DoesNotExist":
        return key not in labels
    return key in labels and _compare(labels[key], operator, values)


def is_valid(condition: Requirement) -> bool:
    """Whether kube-scheduler can read the condition at all. Gt and Lt need a number that is also a label value."""
    key, operator, values = condition
    if not is_label_key(key) or not all(map(is_label_value, values)):
        return False
    if operator in ("In", "NotIn"):
        return len(values) > 0
    if operator in ("Exists", "DoesNotExist"):
        return len(values) == 0
    return operator in ("Gt", "Lt") and len(values) == 1 and parse_whole_number(values[0]) is not None


def node_selector_selects(selector: NodeSelector, labels: Labels, node_name: str) -> bool:
    """Whether one of the terms matches. A term that cannot be read matches nothing, the others still count."""
    return any(term_matches(term, labels, node_name) for term in selector.node_selector_terms)


def term_matches(term: NodeSelectorTerm, labels: Labels, node_name: str) -> bool:
    """An empty term matches nothing. Without a node name, as for volumes, the fields are not looked at."""
    if is_empty_term(term) or not is_valid_term(term):
        return False
    if not all(holds(_read_requirement(expression), labels) for expression in term.match_expressions):
        return False
    return node_name == "" or all(_field_matches(field, node_name) for field in term.match_fields)


def is_empty_term(term: NodeSelectorTerm) -> bool:
    return not term.match_expressions and not term.match_fields


def is_valid_term(term: NodeSelectorTerm) -> bool:
    return all(is_valid(_read_requirement(expression)) for expression in term.match_expressions) and all(
        field.operator in ("In", "NotIn") and len(field.values) == 1 for field in term.match_fields
    )


def find_names_in_fields(terms: Iterable[NodeSelectorTerm]) -> set[str] | None:
    """The nodes these terms name in their fields, if every term names some: then no other node is looked at."""
    names: set[str] = set()
    for term in terms:
        named = [set(field.values) for field in term.match_fields if _names_nodes(field)]
        if not named:
            return None
        names |= set.intersection(*named)
    return names


def _names_nodes(field: NodeSelectorRequirement) -> bool:
    return field.key == NODE_NAME_FIELD and field.operator == "In"


def _field_matches(field: NodeSelectorRequirement, node_name: str) -> bool:
    value = node_name if field.key == NODE_NAME_FIELD else ""
    return (value in field.values) == (field.operator == "In")


def _read_requirement(expression: LabelSelectorRequirement | NodeSelectorRequirement) -> Requirement:
    return Requirement(expression.key, expression.operator, tuple(expression.values))


def _compare(text: str, operator: str, values: tuple[str, ...]) -> bool:
    number = parse_whole_number(text)
    bound = parse_whole_number(values[0]) if len(values) == 1 else None
    if number is None or bound is None:
        return False
    return number > bound if operator == "Gt" else operator == "Lt" and number < bound
