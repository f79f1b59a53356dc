"""Label selectors compiled to tuples: quick to match, to compare and to hash.

Used by templates (whom does this pod's rule mean?) and by node affinity. A selector is a tuple of requirements, all of
which must hold; the empty tuple selects everything, NOTHING (None) selects nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from wukong.api.core import NodeSelectorRequirement
from wukong.api.meta import LabelSelector

Requirement = tuple[str, str, frozenset[str]]  # key, operator, values
Selector = tuple[Requirement, ...]
NOTHING = None
EVERYTHING: Selector = ()

_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_PREFIX = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_INTEGER = re.compile(r"[+-]?\d+")
_INT64 = 2**63


def compile_selector(selector: LabelSelector | None) -> Selector | None:
    if selector is None:
        return NOTHING
    equal = tuple((key, "In", frozenset((value,))) for key, value in sorted(selector.match_labels.items()))
    rest = tuple((entry.key, entry.operator, frozenset(entry.values)) for entry in selector.match_expressions)
    return equal + rest


def from_labels(labels: Mapping[str, str]) -> Selector:
    """The selector that asks for exactly these labels."""
    return tuple((key, "In", frozenset((value,))) for key, value in sorted(labels.items()))


def selects(selector: Selector | None, labels: Mapping[str, str]) -> bool:
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


def _compares(operator: str, values: frozenset[str], label: str) -> bool:
    number = parse_int(label)
    bound = parse_int(next(iter(values))) if len(values) == 1 else None
    if number is None or bound is None:
        return False  # a label that is no integer never matches Gt or Lt
    return number > bound if operator == "Gt" else number < bound


def parse_int(text: str) -> int | None:
    """A decimal 64-bit integer as Go reads it: an optional sign, digits, nothing else."""
    if not _INTEGER.fullmatch(text) or not text.isascii():
        return None
    number = int(text)
    return number if -_INT64 <= number < _INT64 else None


def is_valid(requirement: NodeSelectorRequirement) -> bool:
    """Whether kube-scheduler can parse this node label requirement; a term with one it cannot parse never matches."""
    count = len(requirement.values)
    if requirement.operator in ("In", "NotIn"):
        fits = count > 0
    elif requirement.operator in ("Exists", "DoesNotExist"):
        fits = count == 0
    else:
        fits = count == 1 and parse_int(requirement.values[0]) is not None
    return fits and _is_key(requirement.key) and all(_is_value(value) for value in requirement.values)


def _is_key(key: str) -> bool:
    prefix, slash, name = key.rpartition("/")
    if slash and (not prefix or len(prefix) > 253 or not _PREFIX.fullmatch(prefix)):
        return False
    return len(name) <= 63 and _NAME.fullmatch(name) is not None


def _is_value(value: str) -> bool:
    return value == "" or (len(value) <= 63 and _NAME.fullmatch(value) is not None)
