"""A policy that is too large says so in its status, and costs nobody anything."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from policies import a_cluster_policy, a_fleet, a_plan, a_policy, a_rule, judge_nodes, needs, policy_of, steady
from wukong.api.crds import Schema, build_crds
from wukong.api.meta import LabelSelector
from wukong.api.pod_affinity import MOST_CONSTRAINTS, MOST_TERMS, MOST_TOLERATIONS
from wukong.controllers.policy.controller import judge
from wukong.placement import limits
from wukong.placement.compile import Policy, find_policy_problems
from wukong.placement.limits import MOST_BYTES, MOST_EXPRESSIONS, MOST_FLOORS, MOST_LABELS, MOST_RULES, MOST_VALUES
from wukong.placement.rules import BUILT_IN
from wukong.semantics.selectors import compile_selector, selects

RULES = "$.spec.scheduling.schedulingPolicy.rules"


def expressions(count: int, values: int = 0) -> list[dict[str, Any]]:
    operator = {"operator": "NotIn", "values": [f"v{number}" for number in range(values)]}
    return [{"key": f"k{number}", **(operator if values else {"operator": "Exists"})} for number in range(count)]


def selecting(**selector: Any) -> Policy:
    policy = a_policy()
    policy.spec.selector = msgspec.convert(selector, LabelSelector)
    return policy


def with_match(**config: Any) -> Policy:
    return a_policy(rules=[a_rule("label-match", "filter", **config)])


def with_block(**scheduling: Any) -> Policy:
    return policy_of({"scheduling": scheduling})


TOO_LARGE = {
    "expressions": (
        with_match(matchExpressions=expressions(33)),
        f"{RULES}[0].config.matchExpressions: expected at most 32, got 33.",
    ),
    "values": (
        with_match(matchExpressions=expressions(2, 65)),
        f"{RULES}[0].config.matchExpressions[0].values: expected at most 64, got 65.",
    ),
    "labels": (
        with_match(matchLabels={f"k{number}": "v" for number in range(33)}),
        f"{RULES}[0].config.matchLabels: expected at most 32, got 33.",
    ),
    "rules": (a_policy(rules=[a_rule("cost-aware")] * 33), f"{RULES}: expected at most 32, got 33."),
    "floors": (
        a_policy(floors=[needs("cpu", 1)] * 17),
        "$.spec.scheduling.resourceAffinity.requiredResources: expected at most 16, got 17.",
    ),
    "pod terms": (
        with_block(podAffinity={"required": [{"topologyKey": "zone"}] * 17}),
        "$.spec.scheduling.podAffinity.required: expected at most 16, got 17.",
    ),
    "node wishes": (
        with_block(nodeAffinity={"preferred": [{"weight": 1, "preference": {}}] * 17}),
        "$.spec.scheduling.nodeAffinity.preferred: expected at most 16, got 17.",
    ),
    "tolerations": (
        with_block(tolerations=[{"operator": "Exists"}] * 33),
        "$.spec.scheduling.tolerations: expected at most 32, got 33.",
    ),
    "constraints": (
        with_block(topologySpreadConstraints=[{"maxSkew": 1, "topologyKey": "zone"}] * 9),
        "$.spec.scheduling.topologySpreadConstraints: expected at most 8, got 9.",
    ),
    "a selector": (
        selecting(matchExpressions=expressions(33)),
        "$.spec.selector.matchExpressions: expected at most 32, got 33.",
    ),
    "bytes": (
        a_policy(rules=[a_rule("spot-risk", byInstanceType={f"t{number}.large": 1 for number in range(2500)})] * 2),
        "$.spec: expected at most 65,536 bytes, got 7",
    ),
    "25,000 expressions": (
        a_policy(rules=[a_rule("label-match", "filter", matchExpressions=expressions(1000))] * 25),
        "$.spec: expected at most 65,536 bytes, got",
    ),
}


@pytest.mark.parametrize(("policy", "problem"), TOO_LARGE.values(), ids=TOO_LARGE)
def test_what_is_too_large_is_told_with_its_place_and_both_numbers(policy: Policy, problem: str) -> None:
    problems = find_policy_problems(policy, BUILT_IN)
    assert problems[0].startswith(problem)
    assert len(problems) <= MOST_EXPRESSIONS  # nobody looks at the rest of it
    condition = judge(policy, BUILT_IN, 0.0)
    assert (condition.status, condition.reason) == ("False", "Invalid")
    assert condition.message.startswith(problem)


def test_a_policy_at_every_limit_is_accepted() -> None:
    selector: dict[str, Any] = {"matchExpressions": expressions(MOST_EXPRESSIONS)}
    most = {**selector, "matchLabels": {f"l{number}": "v" for number in range(MOST_LABELS)}}
    rules = [a_rule("label-match", "filter", **selector) for _ in range(MOST_RULES)]
    policy = a_policy(rules=rules, floors=[needs("cpu", 1)] * MOST_FLOORS)
    policy.spec.selector = msgspec.convert(most, LabelSelector)
    assert find_policy_problems(policy, BUILT_IN) == []
    assert len(msgspec.json.encode(policy.spec)) > MOST_BYTES / 2
    assert find_policy_problems(with_match(matchExpressions=expressions(1, MOST_VALUES)), BUILT_IN) == []


@pytest.mark.parametrize("depth", [100, 5000])
def test_a_spec_that_cannot_be_written_down_is_a_problem_not_a_failure(depth: int) -> None:
    config: dict[str, Any] = {}
    for _ in range(depth):
        config = {"a": config}
    policy = a_policy(rules=[a_rule("label-match", "filter")])
    assert policy.spec.scheduling is not None
    assert policy.spec.scheduling.scheduling_policy is not None
    policy.spec.scheduling.scheduling_policy.rules[0].config = {"matchLabels": config}
    assert find_policy_problems(policy, BUILT_IN)


def test_the_definitions_have_the_same_limits() -> None:
    others = {"Move", "NodeNotice", "Rollout"}  # what becomes of pods, and versions of them
    placing = [document for document in build_crds() if document["spec"]["names"]["kind"] not in others]
    assert len(placing) == 3
    for document in placing:
        schema = document["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
        scheduling = schema["scheduling"]["properties"]
        assert scheduling["schedulingPolicy"]["properties"]["rules"]["maxItems"] == limits.MOST_RULES
        assert scheduling["resourceAffinity"]["properties"]["requiredResources"]["maxItems"] == limits.MOST_FLOORS
        for name in ("podAffinity", "podAntiAffinity", "nodeAffinity"):
            for terms in ("required", "preferred"):
                assert scheduling[name]["properties"][terms]["maxItems"] == MOST_TERMS
        assert scheduling["tolerations"]["maxItems"] == MOST_TOLERATIONS
        assert scheduling["topologySpreadConstraints"]["maxItems"] == MOST_CONSTRAINTS
        for field in {"selector", "namespaceSelector"} & set(schema):
            check_selector(schema[field]["properties"])


def check_selector(schema: Schema) -> None:
    assert schema["matchLabels"]["maxProperties"] == MOST_LABELS
    assert schema["matchExpressions"]["maxItems"] == MOST_EXPRESSIONS
    assert schema["matchExpressions"]["items"]["properties"]["values"]["maxItems"] == MOST_VALUES


NODES = [
    steady("a", labels={"zone": "1", "disk": "ssd"}),
    steady("b", labels={"zone": "2", "disk": ""}),
    steady("c", labels={"zone": "1"}),
    steady("d"),
]


@pytest.mark.parametrize("operator", ["In", "NotIn", "Exists", "DoesNotExist"])
@pytest.mark.parametrize("key", ["zone", "disk", "absent"])
@pytest.mark.parametrize("values", [["1"], ["1", "2", "3"], ["3"], [""], ["ssd", ""]])
def test_nodes_are_selected_by_columns_as_one_by_one(operator: str, key: str, values: list[str]) -> None:
    requirement = {"key": key, "operator": operator, "values": values if "In" in operator else []}
    for others in ([], [{"key": "zone", "operator": "Exists"}], [{"key": "no", "operator": "DoesNotExist"}]):
        selector = compile_selector(msgspec.convert({"matchExpressions": [requirement, *others]}, LabelSelector))
        expected = [selects(selector, node.metadata.labels) for node in NODES]
        assert a_fleet(*NODES).select(selector).tolist() == expected
        plan = a_plan(rules=[a_rule("label-match", "filter", matchExpressions=[requirement, *others])])
        assert judge_nodes(plan, a_fleet(*NODES)).kept.tolist() == expected


def test_labels_that_no_node_has_are_not_kept() -> None:
    fleet = a_fleet(*NODES)
    for number in range(1000):
        assert fleet.column(f"k{number}") == [None] * 4
        fleet.select(((f"k{number}", "NotIn", frozenset("v")), ("zone", "Gt", frozenset("1"))))
    assert set(fleet.nodes._columns) | set(fleet.nodes._label_codes) <= {"zone"}


def test_the_default_policy_is_held_to_the_same() -> None:
    assert find_policy_problems(a_cluster_policy("default", rules=[a_rule("cost-aware")] * 33), BUILT_IN)
