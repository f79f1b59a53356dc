"""Affinity, spread constraints, tolerations and selectors that the API server refuses, by place."""

from __future__ import annotations

from typing import Any

import pytest

from embedded.validation.problem_tables import of_pod, places
from wukong.embedded.store.validation.pods.scheduling import find_selector_problems
from wukong.ports import Document

REQUIRED, PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)


def of_term(name: str = "podAntiAffinity", /, **fields: Any) -> list[str]:
    """What is wrong with a term of pods that is required, below it."""
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}, **fields}
    found = of_pod(affinity={name: {REQUIRED: [term]}})
    return [place.removeprefix(f"affinity.{name}.{REQUIRED}[0].") for place in found]


def of_node_term(**term: Any) -> list[str]:
    found = of_pod(affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [term]}}})
    return [place.removeprefix(f"affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[0].") for place in found]


def of_node(operator: str, *values: str, key: str = "a") -> list[str]:
    found = of_node_term(matchExpressions=[{"key": key, "operator": operator, "values": list(values)}])
    return [place.removeprefix("matchExpressions[0].") for place in found]


def of_constraint(*more: Document, **fields: Any) -> list[str]:
    constraint = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", **fields}
    found = of_pod(topologySpreadConstraints=[constraint, *more])
    return [place.removeprefix("topologySpreadConstraints[0].") for place in found]


def of_toleration(**fields: Any) -> list[str]:
    return [place.removeprefix("tolerations[0].") for place in of_pod(tolerations=[fields])]


def test_an_expression_about_nodes_has_the_values_of_its_operator() -> None:
    fitting = [("In", "a"), ("In", "a", "b"), ("NotIn", "a"), ("Exists",), ("DoesNotExist",), ("Gt", "1"), ("Lt", "1")]
    assert [words for words in fitting if of_node(*words)] == []
    for operator in ("In", "NotIn", "Gt", "Lt"):
        assert of_node(operator) == ["values: Required value"]
    for operator in ("Gt", "Lt"):
        assert of_node(operator, "1", "2") == ["values: Required value"]
    for operator in ("Exists", "DoesNotExist"):
        assert of_node(operator, "a") == ["values: Forbidden"]
    assert of_node("Like", "a") == of_node("") == ["operator: Invalid value"]
    assert of_node("Exists", key="a b") == of_node("Exists", key="") == ["key: Invalid value"]


def test_values_about_nodes_are_those_of_labels_where_they_are_required() -> None:
    assert of_node("In", "a", "b c") == of_node("NotIn", "a", "b c") == ["values[1]: Invalid value"]
    expression = {"key": "a", "operator": "In", "values": ["b c"]}
    weighted = {"weight": 1, "preference": {"matchExpressions": [expression]}}
    assert of_pod(affinity={"nodeAffinity": {PREFERRED: [weighted]}}) == []


def test_the_only_field_of_a_node_is_its_name_with_one_value() -> None:
    def field(**fields: Any) -> list[str]:
        entry = {"key": "metadata.name", "operator": "In", "values": ["a"], **fields}
        return [place.removeprefix("matchFields[0].") for place in of_node_term(matchFields=[entry])]

    assert field() == field(operator="NotIn") == []
    assert field(operator="Exists") == ["operator: Invalid value"]
    assert field(values=[]) == field(values=["a", "b"]) == ["values: Required value"]
    assert field(key="metadata.uid") == ["key: Invalid value"]


def test_required_node_affinity_has_a_term() -> None:
    place = f"affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms: Required value"
    assert of_pod(affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": []}}}) == [place]
    assert of_pod(affinity={"nodeAffinity": {REQUIRED: {}}}) == [place]
    assert of_pod(affinity={"nodeAffinity": {}}) == of_pod(affinity={}) == []


@pytest.mark.parametrize("name", ["nodeAffinity", "podAffinity", "podAntiAffinity"])
def test_weights_are_from_1_to_100(name: str) -> None:
    field, term = ("preference", {}) if name == "nodeAffinity" else ("podAffinityTerm", {"topologyKey": "zone"})
    for weight, is_valid in ((1, True), (100, True), (0, False), (101, False)):
        found = of_pod(affinity={name: {PREFERRED: [{"weight": weight, field: term}]}})
        assert found == ([] if is_valid else [f"affinity.{name}.{PREFERRED}[0].weight: Invalid value"])


def test_preferred_terms_are_checked_like_required_ones() -> None:
    weighted = {"weight": 1, "podAffinityTerm": {"topologyKey": "a b"}}
    found = of_pod(affinity={"podAffinity": {PREFERRED: [weighted]}})
    assert found == [f"affinity.podAffinity.{PREFERRED}[0].podAffinityTerm.topologyKey: Invalid value"]
    expression = {"key": "a", "operator": "Like"}
    weighted = {"weight": 1, "preference": {"matchExpressions": [expression]}}
    here = f"affinity.nodeAffinity.{PREFERRED}[0].preference.matchExpressions[0]"
    assert of_pod(affinity={"nodeAffinity": {PREFERRED: [weighted]}}) == [f"{here}.operator: Invalid value"]


@pytest.mark.parametrize("name", ["podAffinity", "podAntiAffinity"])
def test_a_term_of_pods_has_a_topology_key_and_names_of_namespaces(name: str) -> None:
    assert of_term(name) == of_term(name, namespaces=["shop", "a" * 63]) == []
    assert of_term(name, topologyKey="") == ["topologyKey: Required value", "topologyKey: Invalid value"]
    assert of_term(name, topologyKey="a b") == ["topologyKey: Invalid value"]
    assert of_term(name, namespaces=["a", "A", "a.b"]) == ["namespace: Invalid value"] * 2
    for field in ("labelSelector", "namespaceSelector"):
        assert of_term(name, **{field: {"matchLabels": {"a": "b c"}}}) == [f"{field}.matchLabels: Invalid value"]


def test_label_keys_add_to_a_selector_that_does_not_have_them() -> None:
    by_expression = {"matchExpressions": [{"key": "v", "operator": "Exists"}]}
    for field in ("matchLabelKeys", "mismatchLabelKeys"):
        assert of_term(**{field: ["v"]}) == []
        assert of_term(**{field: ["v"]}, labelSelector=None) == [f"{field}: Forbidden"]
        assert of_term(**{field: ["v", "a b"]}) == [f"{field}[1]: Invalid value"]
    assert of_term(matchLabelKeys=["w", "v"], mismatchLabelKeys=["v"]) == ["matchLabelKeys[1]: Invalid value"]
    assert of_term(matchLabelKeys=["app"]) == ["matchLabelKeys[0]: Invalid value"]
    assert of_term(matchLabelKeys=["v"], labelSelector=by_expression) == ["matchLabelKeys[0]: Invalid value"]
    assert of_term(mismatchLabelKeys=["app"]) == []


def test_a_label_selector_knows_four_operators() -> None:
    def selector(operator: str, *values: str) -> list[str]:
        expression = {"key": "a", "operator": operator, "values": list(values)}
        found = places(find_selector_problems({"matchExpressions": [expression]}, "s"))
        return [place.removeprefix("s.matchExpressions[0].") for place in found]

    assert selector("In", "a") == selector("NotIn", "a") == selector("Exists") == selector("DoesNotExist") == []
    for operator in ("Gt", "Lt"):
        assert selector(operator, "1") == ["operator: Invalid value"]
    assert selector("In", "a", "b c") == ["values[1]: Invalid value"]
    assert selector("In") == ["values: Required value"]
    assert list(find_selector_problems(None, "s")) == list(find_selector_problems({}, "s")) == []


def test_a_spread_constraint_has_a_skew_a_key_and_an_action() -> None:
    assert of_constraint() == of_constraint(whenUnsatisfiable="ScheduleAnyway") == []
    for skew, is_valid in ((1, True), (0, False), (-1, False)):
        assert of_constraint(maxSkew=skew) == ([] if is_valid else ["maxSkew: Invalid value"])
    assert of_constraint(topologyKey="") == ["topologyKey: Required value"]
    assert of_constraint(whenUnsatisfiable="Hope") == ["whenUnsatisfiable: Unsupported value"]
    assert of_constraint(labelSelector={"matchLabels": {"a": "b c"}}) == ["labelSelector.matchLabels: Invalid value"]
    assert of_constraint(matchLabelKeys=["a"]) == ["matchLabelKeys: Forbidden"]


def test_constraints_differ_in_their_key_or_their_action() -> None:
    other = {"maxSkew": 5, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    assert of_constraint({**other, "topologyKey": "host"}, {**other, "whenUnsatisfiable": "ScheduleAnyway"}) == []
    assert of_constraint(other) == ["{topologyKey, whenUnsatisfiable}: Duplicate value"]


def test_domains_are_counted_only_where_pods_must_wait() -> None:
    assert of_constraint(minDomains=1) == []
    assert of_constraint(minDomains=0) == ["minDomains: Invalid value"]
    assert of_constraint(minDomains=1, whenUnsatisfiable="ScheduleAnyway") == ["minDomains: Invalid value"]
    for field in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        assert of_constraint(**{field: "Honor"}) == of_constraint(**{field: "Ignore"}) == []
        assert of_constraint(**{field: "Never"}) == [f"{field}: Unsupported value"]


def test_a_toleration_without_a_key_tolerates_everything() -> None:
    assert of_toleration(operator="Exists") == []
    assert of_toleration(operator="Equal", value="a") == ["operator: Invalid value"]
    assert of_toleration() == ["operator: Invalid value"]
    assert of_toleration(key="a b", operator="Exists") == ["key: Invalid value"]


def test_a_toleration_has_the_value_of_its_operator() -> None:
    assert of_toleration(key="a", operator="Equal", value="b") == of_toleration(key="a", value="b") == []
    assert of_toleration(key="a", operator="Exists") == of_toleration(key="a", operator="Equal") == []
    assert of_toleration(key="a", operator="Exists", value="b") == ["operator: Invalid value"]
    assert of_toleration(key="a", operator="Equal", value="b c") == ["operator: Invalid value"]
    assert of_toleration(key="a", value="b c") == ["operator: Invalid value"]
    assert of_toleration(key="a", operator="Like") == ["operator: Unsupported value"]


def test_only_what_evicts_is_tolerated_for_some_time() -> None:
    for effect in ("NoSchedule", "PreferNoSchedule", "NoExecute", ""):
        assert of_toleration(key="a", operator="Exists", effect=effect) == []
        timed = of_toleration(key="a", operator="Exists", effect=effect, tolerationSeconds=5)
        assert timed == ([] if effect == "NoExecute" else ["effect: Invalid value"])
    assert of_toleration(key="a", operator="Exists", effect="Never") == ["effect: Unsupported value"]
