"""Label selectors, node selectors and the syntax of what is in them."""

from typing import Any

import msgspec
import pytest

from wukong.api.core import NodeSelector
from wukong.api.meta import LabelSelector
from wukong.rules.labels import is_label_key, is_label_value, parse_whole_number
from wukong.rules.selectors import find_names_in_fields, node_selector_selects, requirements, selects

LABELS = {"app": "web", "gen": "7", "odd": "x7", "empty": ""}


def selector(**fields: Any) -> LabelSelector:
    return msgspec.convert(fields, LabelSelector)


def terms(*written: dict[str, Any]) -> NodeSelector:
    return msgspec.convert({"nodeSelectorTerms": list(written)}, NodeSelector)


def term(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def field(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"matchFields": [{"key": key, "operator": operator, "values": list(values)}]}


def test_no_selector_selects_nothing_and_an_empty_one_everything() -> None:
    assert not selects(requirements(None), LABELS)
    assert selects(requirements(LabelSelector()), LABELS)
    assert selects(requirements(LabelSelector()), {})


@pytest.mark.parametrize(
    ("key", "operator", "values", "expected"),
    [
        ("app", "In", ["web", "api"], True),
        ("app", "In", ["api"], False),
        ("none", "In", [""], False),
        ("empty", "In", [""], True),
        ("app", "NotIn", ["web"], False),
        ("none", "NotIn", ["web"], True),
        ("app", "Exists", [], True),
        ("none", "Exists", [], False),
        ("none", "DoesNotExist", [], True),
        ("empty", "DoesNotExist", [], False),
    ],
)
def test_label_expressions(key: str, operator: str, values: list[str], expected: bool) -> None:
    written = selector(matchExpressions=[{"key": key, "operator": operator, "values": values}])
    assert selects(requirements(written), LABELS) is expected


def test_labels_and_expressions_must_all_hold() -> None:
    expressions = [{"key": "gen", "operator": "Exists"}]
    assert selects(requirements(selector(matchLabels={"app": "web"}, matchExpressions=expressions)), LABELS)
    assert not selects(requirements(selector(matchLabels={"app": "api"}, matchExpressions=expressions)), LABELS)


@pytest.mark.parametrize(
    "written",
    [
        {"matchLabels": {"app": "not valid"}},
        {"matchExpressions": [{"key": "-app", "operator": "Exists"}]},
        {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": []}]},
        {"matchExpressions": [{"key": "app", "operator": "Exists", "values": ["web"]}]},
    ],
)
def test_a_selector_that_cannot_be_read_selects_nothing(written: dict[str, Any]) -> None:
    assert not selects(requirements(selector(**written)), LABELS)


@pytest.mark.parametrize(
    ("key", "operator", "value", "expected"),
    [
        ("gen", "Gt", "6", True),
        ("gen", "Gt", "7", False),
        ("gen", "Gt", "007", False),
        ("gen", "Lt", "8", True),
        ("gen", "Lt", "7", False),
        ("odd", "Gt", "1", False),
        ("odd", "Lt", "9", False),
        ("none", "Lt", "9", False),
        ("empty", "Lt", "9", False),
        ("gen", "Gt", "-5", False),  # no label value, hence not readable
        ("gen", "Gt", "abc", False),
        ("gen", "Lt", "9" * 22, False),  # more than 64 bits
    ],
)
def test_greater_and_less_compare_whole_numbers_only(key: str, operator: str, value: str, expected: bool) -> None:
    assert node_selector_selects(terms(term(key, operator, value)), LABELS, "n1") is expected


def test_a_node_label_too_large_for_64_bits_never_compares() -> None:
    assert not node_selector_selects(terms(term("gen", "Gt", "1")), {"gen": "9" * 22}, "n1")


def test_node_terms_are_alternatives_and_empty_ones_match_nothing() -> None:
    assert node_selector_selects(terms(term("app", "In", "api"), term("gen", "Exists")), LABELS, "n1")
    assert not node_selector_selects(terms({}), LABELS, "n1")
    assert not node_selector_selects(terms(), LABELS, "n1")


def test_an_unreadable_term_does_not_spoil_the_others() -> None:
    assert node_selector_selects(terms(term("gen", "Gt", "abc"), term("app", "Exists")), LABELS, "n1")


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (field("metadata.name", "In", "n1"), True),
        (field("metadata.name", "In", "n2"), False),
        (field("metadata.name", "NotIn", "n2"), True),
        (field("metadata.name", "NotIn", "n1"), False),
        (field("metadata.name", "In", "n1", "n2"), False),  # one value only
        (field("metadata.name", "Exists"), False),
        (field("metadata.uid", "In", "n1"), False),
        ({**field("metadata.name", "In", "n1"), **term("app", "In", "api")}, False),
    ],
)
def test_fields_know_the_node_by_name(written: dict[str, Any], expected: bool) -> None:
    assert node_selector_selects(terms(written), LABELS, "n1") is expected


def test_fields_are_not_looked_at_where_the_node_has_no_name() -> None:
    assert node_selector_selects(terms(field("metadata.name", "In", "n2")), LABELS, "")


def test_only_if_every_term_names_nodes_the_others_are_out() -> None:
    one, two = field("metadata.name", "In", "n1"), field("metadata.name", "In", "n2")
    contradiction = {"matchFields": [*one["matchFields"], *two["matchFields"]]}
    assert find_names_in_fields(terms(one, two).node_selector_terms) == {"n1", "n2"}
    assert find_names_in_fields(terms(one, term("app", "Exists")).node_selector_terms) is None
    assert find_names_in_fields(terms(field("metadata.name", "NotIn", "n1")).node_selector_terms) is None
    assert find_names_in_fields(terms(contradiction).node_selector_terms) == set()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("app", True),
        ("example.com/app", True),
        ("a" * 63, True),
        ("a" * 64, False),
        ("", False),
        ("/app", False),
        ("Example.com/app", False),
        ("a/b/c", False),
        ("app-", False),
        ("äpp", False),
    ],
)
def test_label_keys(text: str, expected: bool) -> None:
    assert is_label_key(text) is expected


@pytest.mark.parametrize(
    ("text", "expected"), [("", True), ("v1.2_3-x", True), ("-1", False), ("a b", False), ("a" * 64, False)]
)
def test_label_values(text: str, expected: bool) -> None:
    assert is_label_value(text) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("7", 7),
        ("007", 7),
        ("-5", -5),
        ("+5", 5),
        ("", None),
        ("1_000", None),
        ("1e3", None),
        (" 1", None),
        ("٣", None),
        (str(2**63 - 1), 2**63 - 1),
        (str(2**63), None),
        (str(-(2**63)), -(2**63)),
        ("9" * 5000, None),
        ("0" * 5000 + "7", 7),
        ("-" + "0" * 5000, 0),
    ],
)
def test_whole_numbers_are_read_like_go_reads_them(text: str, expected: int | None) -> None:
    assert parse_whole_number(text) == expected
