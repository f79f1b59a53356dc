"""The policy controller tells on each policy what is wrong with it, and writes only when that changed."""

from __future__ import annotations

from typing import Any

import msgspec

from wukong.actions import DONE, Outcome, Patch
from wukong.api.core import Pod
from wukong.api.kinds import CLUSTER_PLACEMENT_POLICIES, PLACEMENT_POLICIES
from wukong.api.placement import ClusterPlacementPolicy, PlacementPolicy
from wukong.api.resources import Key
from wukong.api.unreadable import Unreadable, read_document
from wukong.app.components import COMPONENTS
from wukong.controllers.policy.controller import LONGEST_MESSAGE, Policy, build_condition, judge
from wukong.engine.arrays import Floats
from wukong.placement.fleet import Fleet
from wukong.placement.rule import NoConfig, Rule
from wukong.placement.rules import BUILT_IN
from wukong.state import State

KEY = Key("shop", "web")
NOW = 1_800_000_000.0  # 2027-01-15T08:00:00Z
GOOD: dict[str, Any] = {"capacity": {"strategy": "spot-first"}}
BAD: dict[str, Any] = {"scheduling": {"schedulingPolicy": {"rules": [{"name": "cost-awar", "type": "score"}]}}}


def a_policy(spec: dict[str, Any], status: dict[str, Any] | None = None, generation: int = 1) -> PlacementPolicy:
    meta = {"name": "web", "namespace": "shop", "uid": "u", "resourceVersion": "7", "generation": generation}
    return msgspec.convert({"metadata": meta, "spec": spec, "status": status or {}}, PlacementPolicy)


def reconcile(*policies: PlacementPolicy | ClusterPlacementPolicy, key: Key = KEY, now: float = NOW) -> Outcome:
    state = State()
    for policy in policies:
        state.apply("ADDED", policy)
    return Policy(BUILT_IN).reconcile(key, state, now)


def patch_of(outcome: Outcome) -> Patch:
    (action,) = outcome.actions
    assert isinstance(action, Patch)
    assert action.patch.type == "merge"
    assert action.subresource == "status"
    return action


def status_of(outcome: Outcome) -> dict[str, Any]:
    status: dict[str, Any] = patch_of(outcome).patch.body["status"]
    return status


def accepted(outcome: Outcome) -> dict[str, Any]:
    (condition,) = [entry for entry in status_of(outcome)["conditions"] if entry["type"] == "Accepted"]
    assert isinstance(condition, dict)
    return condition


def test_a_good_policy_is_accepted_at_the_version_it_was_read_at() -> None:
    outcome = reconcile(a_policy(GOOD, generation=3))
    assert patch_of(outcome).patch.body["metadata"] == {"resourceVersion": "7"}
    assert status_of(outcome)["observedGeneration"] == 3
    assert accepted(outcome) == {
        "type": "Accepted",
        "status": "True",
        "reason": "Understood",
        "message": "No problem was found.",
        "lastTransitionTime": "2027-01-15T08:00:00Z",
        "observedGeneration": 3,
    }


def test_a_bad_policy_is_told_every_problem_with_its_path() -> None:
    spec = {**BAD, "selector": {"matchLabels": {"-app": "web"}}}
    condition = accepted(reconcile(a_policy(spec)))
    assert (condition["status"], condition["reason"]) == ("False", "Invalid")
    first_line, other = condition["message"].splitlines()
    assert first_line.startswith("$.spec.selector.matchLabels")
    assert other.startswith("$.spec.scheduling.schedulingPolicy.rules[0].name: expected a rule that is there")
    assert 'Did you mean "cost-aware"?' in other


def test_what_stands_there_already_is_not_written_again() -> None:
    status = status_of(reconcile(a_policy(BAD)))
    assert reconcile(a_policy(BAD, status), now=NOW + 60) == DONE


def test_the_time_moves_only_when_the_status_does() -> None:
    status = status_of(reconcile(a_policy(GOOD)))
    later = accepted(reconcile(a_policy(GOOD, status, generation=2), now=NOW + 60))
    assert (later["observedGeneration"], later["lastTransitionTime"]) == (2, "2027-01-15T08:00:00Z")
    turned = accepted(reconcile(a_policy(BAD, status, generation=2), now=NOW + 60))
    assert turned["lastTransitionTime"] == "2027-01-15T08:01:00Z"


def test_conditions_of_others_are_kept() -> None:
    other = {"type": "Audited", "status": "Unknown", "reason": "Waiting"}
    status = status_of(reconcile(a_policy(GOOD, {"conditions": [other]})))
    assert [entry["type"] for entry in status["conditions"]] == ["Audited", "Accepted"]
    assert status["conditions"][0] == other


def test_a_key_without_a_namespace_is_a_cluster_placement_policy() -> None:
    both = a_policy(GOOD), msgspec.convert({"metadata": {"name": "web"}, "spec": BAD}, ClusterPlacementPolicy)
    outcome = reconcile(*both, key=Key("", "web"))
    assert patch_of(outcome).resource.kind == "ClusterPlacementPolicy"
    assert accepted(outcome)["status"] == "False"
    assert patch_of(reconcile(*both)).resource.kind == "PlacementPolicy"


def test_a_policy_that_is_gone_is_left_alone() -> None:
    assert reconcile() == DONE


def test_a_rule_that_cannot_be_used_as_the_type_given_is_told_what_it_can_be() -> None:
    class Odd(Rule[NoConfig]):
        name = "odd"
        config = NoConfig

        def points(self, config: NoConfig, fleet: Fleet, pod: Pod) -> Floats:
            raise AssertionError("nobody asks")

    spec = {"scheduling": {"schedulingPolicy": {"rules": [{"name": "odd", "type": "filter"}]}}}
    condition = judge(a_policy(spec), {"odd": Odd()}, NOW)
    assert condition.message.startswith(
        "$.spec.scheduling.schedulingPolicy.rules[0].type: expected score or prioritize for odd"
    )


def test_a_message_too_long_for_a_condition_is_cut() -> None:
    rules = [{"name": "x" * 1500 + str(index), "type": "score"} for index in range(32)]
    message = accepted(reconcile(a_policy({"scheduling": {"schedulingPolicy": {"rules": rules}}})))["message"]
    assert len(message) == LONGEST_MESSAGE
    assert message.endswith("…")


def test_a_policy_that_cannot_be_read_is_told_why_once() -> None:
    meta = {"name": "web", "namespace": "shop", "uid": "u", "resourceVersion": "7", "generation": 2}
    document: dict[str, Any] = {"metadata": meta, "spec": {"selector": {"matchExpressions": [{"operator": "Matches"}]}}}
    unreadable = read_document(document, PlacementPolicy)
    assert isinstance(unreadable, Unreadable)
    state = State()
    state.apply("ADDED", unreadable, "PlacementPolicy.placement.novasphere.dev")
    outcome = Policy(BUILT_IN).reconcile(KEY, state, NOW)
    told = accepted(outcome)
    assert (told["status"], told["reason"], told["observedGeneration"]) == ("False", "Unreadable", 2)
    assert told["message"].startswith("$.spec.selector.matchExpressions[0]")
    assert patch_of(outcome).patch.body["metadata"] == {"resourceVersion": "7"}
    document["status"] = status_of(outcome)
    state.apply("MODIFIED", read_document(document, PlacementPolicy), "PlacementPolicy.placement.novasphere.dev")
    assert Policy(BUILT_IN).reconcile(KEY, state, NOW + 60) == DONE


def test_it_is_named_as_its_component_and_hears_of_both_kinds() -> None:
    assert Policy.name == COMPONENTS["policy"].name == "policy"
    own = [watch.resource for watch in Policy.watches if not watch.is_secondary]
    assert own == [PLACEMENT_POLICIES, CLUSTER_PLACEMENT_POLICIES]


def test_a_message_just_short_enough_is_left_whole() -> None:
    text = "x" * LONGEST_MESSAGE
    assert build_condition(a_policy(GOOD), [text], NOW).message == text
    assert build_condition(a_policy(GOOD), [f"{text}y"], NOW).message == f"{text[1:]}…"
    assert LONGEST_MESSAGE == 32_768, "what the schema of a condition allows"
