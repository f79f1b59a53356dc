"""Label selectors compiled to tuples: quick to match, to compare and to hash.

Used by whoever looks for objects by label: the engine, the controllers, the embedded cluster. A selector is a tuple of
requirements, all of which must hold; the empty tuple selects everything, NOTHING (None) selects nothing. Compile once
and match often. Never reports what is wrong with a selector: that is the business of `admission`.
"""

from __future__ import annotations

from collections.abc import Collection

from wukong.api.core import NodeSelectorRequirement
from wukong.api.meta import LabelSelector, LabelSelectorRequirement
from wukong.semantics.label_syntax import Labels, is_label_key, is_label_value, parse_integer

Requirement = tuple[str, str, frozenset[str]]  # key, operator, values
Selector = tuple[Requirement, ...]
NOTHING = None
EVERYTHING: Selector = ()


def compile_selector(selector: LabelSelector | None) -> Selector | None:
    """The selector's requirements. NOTHING if there is no selector, or if kube-scheduler cannot read one of them."""
    if selector is None:
        return NOTHING
    if not all(is_valid(key, "In", (value,)) for key, value in selector.match_labels.items()):
        return NOTHING
    expressions = compile_expressions(selector.match_expressions)
    return NOTHING if expressions is None else require_labels(selector.match_labels) + expressions


def compile_expressions(
    expressions: Collection[LabelSelectorRequirement] | Collection[NodeSelectorRequirement],
) -> Selector | None:
    """NOTHING if kube-scheduler cannot read one of them."""
    if not all(is_valid(entry.key, entry.operator, entry.values) for entry in expressions):
        return NOTHING
    return tuple((entry.key, entry.operator, frozenset(entry.values)) for entry in expressions)


def require_labels(labels: Labels) -> Selector:
    """The selector that asks for exactly these labels. Their syntax is not checked, as in kube-scheduler."""
    return tuple((key, "In", frozenset((value,))) for key, value in sorted(labels.items()))


def selects(selector: Selector | None, labels: Labels) -> bool:
    if selector is None:
        return False
    return all(holds(operator, values, labels.get(key)) for key, operator, values in selector)


def holds(operator: str, values: frozenset[str], label: str | None) -> bool:
    """Whether one requirement holds for a label's value, or for its absence."""
    if operator == "In":
        return label is not None and label in values
    if operator == "NotIn":
        return label is None or label not in values
    if operator == "Exists":
        return label is not None
    if operator == "DoesNotExist":
        return label is None
    return label is not None and _compares(operator, values, label)


def is_valid(key: str, operator: str, values: Collection[str]) -> bool:
    """Whether kube-scheduler can read the requirement at all. Gt and Lt need an integer that is also a label value."""
    if not is_label_key(key) or not all(map(is_label_value, values)):
        return False
    if operator in ("In", "NotIn"):
        return len(values) > 0
    if operator in ("Exists", "DoesNotExist"):
        return len(values) == 0
    return operator in ("Gt", "Lt") and len(values) == 1 and parse_integer(next(iter(values))) is not None


def _compares(operator: str, values: frozenset[str], label: str) -> bool:
    number = parse_integer(label)
    bound = parse_integer(next(iter(values))) if len(values) == 1 else None
    if number is None or bound is None:
        return False  # a label that is no integer never matches Gt or Lt
    return number > bound if operator == "Gt" else number < bound
