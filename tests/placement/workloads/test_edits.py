"""Rules of ours in workloads: what is built, recognised and removed, and that nothing else ever changes."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from affinities import AFFINITIES, HOSTNAME, PREFERRED, REQUIRED, ZONE, a_workload
from wukong.errors import InputError
from wukong.placement.workloads.edits import Edit, edit_workload
from wukong.placement.workloads.rules import Rule
from wukong.placement.workloads.template_rules import ANNOTATION, find_own_rules, keep_marks

Document = dict[str, Any]
APART = Rule(name="apart", topology_key=HOSTNAME)
GENTLE = Rule(name="apart", topology_key=ZONE, weight=30)
PER_VERSION = Rule(name="apart", topology_key=HOSTNAME, is_per_version=True)
SEPARATE = Rule(name="separate", topology_key=HOSTNAME)
RULES = [APART, GENTLE, PER_VERSION, SEPARATE, Rule(name="separate", topology_key=ZONE, weight=100)]
OWN = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": HOSTNAME}


def put(document: Document, rule: Rule) -> Document:
    return edit_workload(document, Edit(rule=rule))


def remove(document: Document, name: Any) -> Document:
    return edit_workload(document, Edit(removed=name))


def affinity_of(document: Document) -> Document:
    affinity: Document = document["spec"]["template"]["spec"]["affinity"]
    return affinity


def text(document: Document) -> str:
    """Byte for byte, in the order in which the fields stand."""
    return json.dumps(document)


@pytest.mark.parametrize(
    ("rule", "anti_affinity"),
    [
        (APART, {REQUIRED: [OWN]}),
        (GENTLE, {PREFERRED: [{"weight": 30, "podAffinityTerm": {**OWN, "topologyKey": ZONE}}]}),
        (PER_VERSION, {REQUIRED: [{**OWN, "matchLabelKeys": ["pod-template-hash"]}]}),
        (SEPARATE, {REQUIRED: [{**OWN, "mismatchLabelKeys": ["pod-template-hash"]}]}),
    ],
)
def test_a_rule_is_a_term_about_the_workloads_own_pods(rule: Rule, anti_affinity: Document) -> None:
    assert affinity_of(put(a_workload(), rule)) == {"podAntiAffinity": anti_affinity}


def test_a_stateful_set_tells_versions_by_its_own_label() -> None:
    edited = put(a_workload(kind="StatefulSet"), PER_VERSION)
    (term,) = affinity_of(edited)["podAntiAffinity"][REQUIRED]
    assert term["matchLabelKeys"] == ["controller-revision-hash"]


@pytest.mark.parametrize("rule", RULES)
def test_what_was_there_survives_a_rule_of_ours_byte_for_byte(rule: Rule) -> None:
    for name in AFFINITIES:
        check_survival(name, rule)


def check_survival(name: str, rule: Rule) -> None:
    before = a_workload(copy.deepcopy(AFFINITIES[name]))
    read = text(before)
    edited = put(before, rule)
    assert text(before) == read, "what was read is never changed in place"
    own = find_own_rules(edited["spec"]["template"])
    assert own or name.endswith("a term like ours"), name  # the very rule is there and is somebody else's
    for side, parts in (AFFINITIES[name] or {}).items():
        if side != "podAntiAffinity":
            assert text(affinity_of(edited)[side]) == text(parts), name
        for list_name, entries in parts.items() if side == "podAntiAffinity" else ():
            assert text(affinity_of(edited)[side][list_name][: len(entries)]) == text(entries)
    assert text(remove(edited, rule.name)) == read, name


def test_our_rule_of_an_older_version_is_replaced_where_it_stands() -> None:
    for name, affinity in AFFINITIES.items():
        old = put(a_workload(copy.deepcopy(affinity)), Rule(name="apart", topology_key="example.com/old"))
        assert text(put(old, PER_VERSION)) == text(put(a_workload(copy.deepcopy(affinity)), PER_VERSION)), name


@settings(max_examples=40)
@given(
    affinity=st.sampled_from(list(AFFINITIES.values())),
    rules=st.lists(st.sampled_from(RULES), min_size=1, max_size=6),
    annotations=st.dictionaries(st.sampled_from(["a", "b/c"]), st.text(max_size=3)),
)
def test_whatever_rules_come_and_go_the_rest_is_as_before_in_the_end(
    affinity: Document | None, rules: list[Rule], annotations: dict[str, str]
) -> None:
    before = a_workload(copy.deepcopy(affinity))
    if annotations:
        before["spec"]["template"]["metadata"]["annotations"] = annotations
    edited = before
    for rule in rules:
        edited = put(edited, rule)
        assert text(put(edited, rule)) == text(edited), "the second time nothing changes"
        assert len(find_own_rules(edited["spec"]["template"])) <= len({rule.name for rule in rules})
    assert text(remove(remove(edited, "apart"), "separate")) == text(before)


def test_a_rule_that_somebody_changed_is_not_ours_any_more() -> None:
    edited = put(a_workload(), APART)
    term = affinity_of(edited)["podAntiAffinity"][REQUIRED][0]
    term["labelSelector"] = {"matchLabels": {"app": "web", "tier": "front"}}
    assert find_own_rules(edited["spec"]["template"]) == {}
    left = remove(edited, "apart")
    assert affinity_of(left)["podAntiAffinity"][REQUIRED] == [term]
    assert ANNOTATION not in left["spec"]["template"]["metadata"].get("annotations", {})


def test_a_rule_of_somebody_elses_that_says_the_same_stays_the_only_one_and_stays() -> None:
    before = a_workload({"podAntiAffinity": {REQUIRED: [OWN]}})
    assert text(put(before, APART)) == text(before)
    assert text(remove(before, "apart")) == text(before)


def test_what_advice_made_of_a_rule_is_ours_still() -> None:
    before = put(a_workload({"podAntiAffinity": {REQUIRED: [{**OWN, "topologyKey": ZONE}]}}), APART)
    after = copy.deepcopy(before)
    rules = affinity_of(after)["podAntiAffinity"]
    rules[REQUIRED][1]["matchLabelKeys"] = ["pod-template-hash"]
    kept = keep_marks(before["spec"]["template"], after["spec"]["template"])
    assert find_own_rules(kept)["apart"].entry == rules[REQUIRED][1]
    rules[PREFERRED] = [{"weight": 100, "podAffinityTerm": OWN}]
    del rules[REQUIRED][1]
    kept = keep_marks(before["spec"]["template"], after["spec"]["template"])
    assert find_own_rules(kept)["apart"].entry == rules[PREFERRED][0]
    del rules[PREFERRED]
    kept = keep_marks(before["spec"]["template"], after["spec"]["template"])
    assert ANNOTATION not in kept["metadata"].get("annotations", {})


@pytest.mark.parametrize("mark", ["", "{", "[]", '{"apart":1}', '{"apart":{"list":"x","entry":{}}}', "[" * 5000, 7])
def test_a_mark_that_cannot_be_read_makes_no_rule_ours(mark: Any) -> None:
    document = a_workload({"podAntiAffinity": {REQUIRED: [OWN]}})
    document["spec"]["template"]["metadata"]["annotations"] = {ANNOTATION: mark}
    assert find_own_rules(document["spec"]["template"]) == {}
    assert affinity_of(remove(document, "apart")) == affinity_of(document)


def test_sizes_are_set_and_the_rest_of_the_strategy_stays() -> None:
    document = a_workload()
    document["spec"]["strategy"] = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 1}}
    edited = edit_workload(document, Edit(replicas=5, max_surge=0))
    assert edited["spec"]["replicas"] == 5
    assert edited["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": 0, "maxUnavailable": 1}


@pytest.mark.parametrize(
    ("document", "edit", "minor", "problem"),
    [
        (a_workload(kind="DaemonSet"), Edit(rule=APART), None, "expected a Deployment or a StatefulSet"),
        (a_workload(kind="StatefulSet"), Edit(rule=SEPARATE), None, "expected a Deployment, got a StatefulSet"),
        (
            a_workload(),
            Edit(rule=Rule(name="apart", topology_key="no key")),
            None,
            "expected hostname, zone or a label",
        ),
        (a_workload(), Edit(rule=Rule(name="apart", topology_key="a", weight=101)), None, "expected 1 to 100, got 101"),
        (
            a_workload(),
            Edit(rule=Rule(name="apart", topology_key="a", selector={"matchLabels": {"app": "x"}})),
            None,
            "does not select the workload's own pods, which have app=web",
        ),
        (a_workload(), Edit(rule=Rule(name="apart", topology_key="a", selector={})), None, "at least one label"),
        (
            a_workload(),
            Edit(rule=Rule(name="apart", topology_key="a", selector={"matchLabels": 1})),
            None,
            "a label sel",
        ),
        (a_workload(), Edit(rule=PER_VERSION), 30, "1.30, which drops matchLabelKeys silently"),
        (a_workload(), Edit(rule=SEPARATE), 30, "1.30, which drops mismatchLabelKeys silently"),
        (a_workload(kind="StatefulSet"), Edit(max_surge=1), None, "a StatefulSet has no such strategy"),
        ({"kind": "Deployment", "spec": []}, Edit(replicas=1), None, "expected a workload with spec.template"),
        (a_workload("x"), Edit(rule=APART), None, "affinity: expected an object"),  # type: ignore[arg-type]
        (a_workload({"podAntiAffinity": {REQUIRED: {}}}), Edit(rule=APART), None, "expected a list of rules"),
    ],
)
def test_what_cannot_be_done_is_refused_with_the_reason(
    document: Document, edit: Edit, minor: int | None, problem: str
) -> None:
    with pytest.raises(InputError, match=problem.replace("(", r"\(")):
        edit_workload(document, edit, minor)


def test_a_recreated_deployment_has_no_surge() -> None:
    document = a_workload()
    document["spec"]["strategy"] = {"type": "Recreate"}
    with pytest.raises(InputError, match="Recreate"):
        edit_workload(document, Edit(max_surge=1))


@pytest.mark.parametrize("minor", [None, 31, 35])
def test_label_keys_are_written_from_1_31_on(minor: int | None) -> None:
    edit_workload(a_workload(), Edit(rule=SEPARATE), minor)
