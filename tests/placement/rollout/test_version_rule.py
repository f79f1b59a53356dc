"""The rule that keeps versions apart: where it is put, what it says, and that nothing else is touched."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wukong.api.meta import LabelSelector
from wukong.api.rollout import HASH, PreferredSeparation, RequiredSeparation, VersionAntiAffinity
from wukong.placement.rollout import VersionRule, build_rule, build_template, hash_template, with_rule
from wukong.placement.rollout.version_rule import PREFERRED, REQUIRED, read_rule

OWN = LabelSelector(match_labels={"app": "web"})
NEEDED = VersionAntiAffinity(required=RequiredSeparation())
WISHED = VersionAntiAffinity(preferred=PreferredSeparation(weight=7))
USERS: dict[str, Any] = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "db"}}}
ON_HASH: dict[str, Any] = {
    "topologyKey": "kubernetes.io/hostname",
    "labelSelector": {"matchExpressions": [{"key": HASH, "operator": "In", "values": ["a"]}]},
}
WITHOUT_SELECTOR: dict[str, Any] = {"topologyKey": "zone", "labelSelector": None}


def against(*hashes: str, wanted: VersionAntiAffinity = NEEDED) -> VersionRule:
    rule = build_rule(wanted, OWN, "shop", hashes)
    assert rule is not None
    return rule


def test_a_required_rule_names_every_other_version_and_pins_the_app() -> None:
    assert against("b", "a") == VersionRule(
        REQUIRED,
        {
            "topologyKey": "kubernetes.io/hostname",
            "labelSelector": {
                "matchLabels": {"app": "web"},
                "matchExpressions": [{"key": HASH, "operator": "In", "values": ["a", "b"]}],
            },
            "namespaces": ["shop"],
        },
    )


def test_a_preferred_rule_has_its_weight_and_a_topology_key_of_its_own() -> None:
    wanted = VersionAntiAffinity(preferred=PreferredSeparation(weight=7), topology_key="zone")
    rule = against("a", wanted=wanted)
    assert (rule.list_name, rule.entry["weight"]) == (PREFERRED, 7)
    assert rule.entry["podAffinityTerm"]["topologyKey"] == "zone"


@pytest.mark.parametrize(("wanted", "hashes"), [(None, ["a"]), (NEEDED, []), (VersionAntiAffinity(), ["a"])])
def test_there_is_no_rule_without_a_wish_or_without_another_version(
    wanted: VersionAntiAffinity | None, hashes: list[str]
) -> None:
    assert build_rule(wanted, OWN, "shop", hashes) is None


AFFINITIES: list[dict[str, Any] | None] = [
    None,
    {"podAffinity": {REQUIRED: [USERS]}},
    {"podAntiAffinity": {REQUIRED: [USERS]}},
    {"podAntiAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": USERS}]}},
    {"podAntiAffinity": {REQUIRED: [ON_HASH]}},
    {"podAntiAffinity": {REQUIRED: [WITHOUT_SELECTOR]}},
    {"podAntiAffinity": {REQUIRED: [USERS], PREFERRED: [{"weight": 1, "podAffinityTerm": USERS}]}, "podAffinity": {}},
]


@pytest.mark.parametrize("affinity", AFFINITIES)
@pytest.mark.parametrize("wanted", [NEEDED, WISHED])
def test_the_rule_is_appended_and_removed_and_all_else_stays(
    affinity: dict[str, Any] | None, wanted: VersionAntiAffinity
) -> None:
    rule = against("a", wanted=wanted)
    injected = with_rule(affinity, rule)
    assert injected is not None
    entries = injected["podAntiAffinity"][rule.list_name]
    before = ((affinity or {}).get("podAntiAffinity") or {}).get(rule.list_name) or []
    assert entries == [*before, rule.entry]
    assert with_rule(injected, None, rule) == affinity


def test_another_rule_takes_the_place_of_the_one_before() -> None:
    first, second = against("b"), against("a", wanted=WISHED)
    injected = with_rule({"podAntiAffinity": {REQUIRED: [USERS]}}, first)
    assert with_rule(injected, second, first) == {"podAntiAffinity": {REQUIRED: [USERS], PREFERRED: [second.entry]}}


def test_a_rule_that_somebody_removed_is_not_missed() -> None:
    assert with_rule({"podAntiAffinity": {REQUIRED: [USERS]}}, None, against("a")) == {
        "podAntiAffinity": {REQUIRED: [USERS]}
    }


@given(st.text())
def test_whatever_stands_in_the_annotation_is_read(text: str) -> None:
    rule = read_rule(text)
    assert rule is None or read_rule(rule.encode()) == rule


def test_a_rule_is_read_as_it_was_noted() -> None:
    assert read_rule(against("a").encode()) == against("a")


def test_the_hash_knows_neither_nulls_nor_the_rule() -> None:
    template: dict[str, Any] = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": []}}
    padded = {"metadata": {**template["metadata"], "creationTimestamp": None}, "spec": {"containers": [], "x": None}}
    assert hash_template(template) == hash_template(padded)
    assert hash_template(template) != hash_template({**template, "spec": {"containers": [{"name": "a"}]}})
    built = build_template(template, "abc", against("a"))
    assert built["metadata"]["labels"] == {"app": "web", HASH: "abc"}
    assert built["spec"]["affinity"]["podAntiAffinity"][REQUIRED] == [against("a").entry]
    assert "affinity" not in template["spec"]
