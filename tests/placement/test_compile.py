"""A policy becomes a plan, or is told all that is wrong with it, each with its path and the way out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
import pytest
import yaml

from policies import a_cluster_policy, a_plan, a_policy, a_rule, a_spec, needs, policy_of, prefers
from wukong.engine.arrays import Floats
from wukong.errors import InputError
from wukong.placement.compile import GPU_NAMES, Floor, Preference, Split, compile_policy, find_policy_problems
from wukong.placement.percent import Share, parse_percent, parse_share
from wukong.placement.rule import Rule
from wukong.placement.rules import BUILT_IN

# The scheduling blocks of seed 001, as they stand there.
SEEDS = """
resourceAffinity:
  preferredCPU:
    weight: 80
    threshold: "70%"
  preferredMemory:
    weight: 60
    threshold: "80%"
  requiredResources:
  - resourceType: gpu
    minAvailable: "1"
---
schedulingPolicy:
  schedulerName: "custom-scheduler"
  priority: 100
  preemptionPolicy: "PreemptLowerPriority"
  rules:
  - name: "cost-aware"
    type: "score"
    weight: 50
    config:
      costFactor: 0.3
---
schedulingPolicy:
  schedulerName: "gpu-scheduler"
"""


@pytest.mark.parametrize("block", list(yaml.safe_load_all(SEEDS)))
def test_every_block_users_were_shown_compiles(block: dict[str, Any]) -> None:
    assert compile_policy(policy_of({"scheduling": block}), BUILT_IN).is_enforced


def test_a_plan_says_what_the_policy_said() -> None:
    affinity, policy, _ = (policy_of({"scheduling": block}) for block in yaml.safe_load_all(SEEDS))
    plan = compile_policy(affinity, BUILT_IN)
    assert plan.name == "PlacementPolicy default/web"
    assert plan.preferences == (Preference("cpu", 80, 70.0), Preference("memory", 60, 80.0))
    assert plan.floors == (Floor("gpu 1", dict.fromkeys(GPU_NAMES, 1)),)
    plan = compile_policy(policy, BUILT_IN)
    (use,) = plan.scores
    assert (use.rule.name, use.weight, use.config.cost_factor) == ("cost-aware", 50, 0.3)
    assert (plan.scheduler_name, plan.priority, plan.never_preempts) == ("custom-scheduler", 100, False)


def test_an_empty_policy_is_a_plan_that_wants_nothing() -> None:
    plan = compile_policy(policy_of({}), BUILT_IN)
    assert not any((plan.strategy, plan.floors, plan.preferences, plan.filters, plan.scores, plan.ranks))
    assert compile_policy(a_cluster_policy(), BUILT_IN).name == "ClusterPlacementPolicy default"


def test_rules_are_sorted_by_what_they_are_used_as() -> None:
    plan = a_plan(
        rules=[a_rule("load-aware", "filter", threshold="65%"), a_rule("load-aware"), a_rule("spot-risk", "prioritize")]
    )
    assert [len(uses) for uses in (plan.filters, plan.scores, plan.ranks)] == [1, 1, 1]
    assert plan.scores[0].weight == 1


@pytest.mark.parametrize(
    ("resource", "least", "expected"),
    [
        ("cpu", "1500m", {"cpu": 1500}),
        ("cpu", 2, {"cpu": 2000}),
        ("memory", "4Gi", {"memory": 4 << 30}),
        ("storage", "1k", {"ephemeral-storage": 1000}),
        ("example.com/fpga", "2", {"example.com/fpga": 2}),
        ("nvidia.com/gpu", "1", {"nvidia.com/gpu": 1}),
        ("gpu", "1", {"a.com/gpu": 1, "b.com/gpu": 1}),
    ],
)
def test_a_floor_is_counted_as_the_scheduler_counts(resource: str, least: str | int, expected: dict[str, int]) -> None:
    (floor,) = compile_policy(a_policy(floors=[needs(resource, least)]), BUILT_IN, ("a.com/gpu", "b.com/gpu")).floors
    assert floor.amounts == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0%", 0.0), ("70%", 70.0), ("100%", 100.0), ("66.6%", 66.6), ("100.0%", 100.0),
        ("100.1%", None), ("101%", None), ("-1%", None), ("70", None), ("07%", None), ("70 %", None), ("%", None),
        ("", None), ("70%\n", None), ("٧%", None),
    ],
)  # fmt: skip
def test_a_percentage_is_written_with_its_sign(text: str, expected: float | None) -> None:
    assert parse_percent(text) == expected


@pytest.mark.parametrize(
    ("value", "total", "expected"),
    [
        (0, 7, 0), (2, 7, 2), (2, 1, 2), ("0%", 7, 0), ("30%", 0, 0), ("30%", 1, 1), ("30%", 3, 1), ("30%", 4, 2),
        ("30%", 10, 3), ("30%", 11, 4), ("1%", 100, 1), ("1%", 101, 2), ("100%", 7, 7), ("50%", 3, 2),
    ],
)  # fmt: skip
def test_a_share_of_pods_is_rounded_up_as_budgets_do(value: int | str, total: int, expected: int) -> None:
    share = parse_share(value)
    assert share is not None
    assert share.count_of(total) == expected


@pytest.mark.parametrize("value", [-1, 2**31, "", "2", "30", "101%", "12.5%", "-1%", "030%", "30%\n", "٣%", "%"])
def test_what_is_no_share_of_pods_is_none(value: int | str) -> None:
    assert parse_share(value) is None


def test_a_split_is_a_base_and_a_share() -> None:
    plans = [
        compile_policy(policy_of({"capacity": {"strategy": "spot-first", **capacity}}), BUILT_IN)
        for capacity in (
            {},
            {"onDemandBase": 2},
            {"onDemandBase": "30%", "spotPercent": 60},
            {"spotPercent": 0, "fallback": "Wait"},
        )
    ]
    assert [plan.split for plan in plans] == [
        None,
        Split(Share(count=2), 100),
        Split(Share(percent=30), 60),
        Split(Share(), 0),
    ]
    assert [plan.waits_for_spot for plan in plans] == [False, False, False, True]


def test_a_critical_policy_goes_on_demand_first_unless_it_says_only() -> None:
    assert compile_policy(policy_of({"critical": True}), BUILT_IN).strategy == "on-demand-first"
    spec = {"critical": True, "capacity": {"strategy": "on-demand-only"}}
    plan = compile_policy(policy_of(spec), BUILT_IN)
    assert (plan.strategy, plan.is_critical) == ("on-demand-only", True)


def test_pods_are_changed_unless_the_policy_says_none() -> None:
    policy = policy_of({})
    policy.metadata.generation = 7
    plan = compile_policy(policy, BUILT_IN)
    assert (plan.is_applied, plan.generation, plan.spec) == (True, 7, policy.spec)
    assert not compile_policy(policy_of({"apply": "None"}), BUILT_IN).is_applied


@pytest.mark.parametrize(
    ("priority", "expected"),
    [
        (None, (100, True)),
        ({"value": 2000}, (2000, False)),
        ({"value": -5, "preemptionPolicy": "Never"}, (-5, True)),
        ({"className": "high"}, (None, False)),  # the class decides: the pod has its value
    ],
)
def test_the_priority_of_the_policy_counts_instead_of_that_of_its_scheduling_policy(
    priority: dict[str, Any] | None, expected: tuple[int | None, bool]
) -> None:
    spec = a_spec(priority=100, preemptionPolicy="Never")
    plan = compile_policy(policy_of(spec if priority is None else {**spec, "priority": priority}), BUILT_IN)
    assert (plan.priority, plan.never_preempts) == expected


POLICY, AFFINITY = "$.spec.scheduling.schedulingPolicy", "$.spec.scheduling.resourceAffinity"


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        (
            a_spec(strategy="spot-frist"),
            "$.spec.capacity.strategy: expected spot-first, spot-preferred, on-demand-first, "
            'on-demand-only or spot-only, got "spot-frist". Did you mean "spot-first"?',
        ),
        (a_spec(mode="Watch"), '$.spec.mode: expected Enforce or Observe, got "Watch". Choose one.'),
        (
            a_spec(preferred_cpu=prefers(0, "70%")),
            f"{AFFINITY}.preferredCPU.weight: expected a weight from 1 to 100, got 0.",
        ),
        (a_spec(preferred_memory=prefers(101, "7%")), f"{AFFINITY}.preferredMemory.weight: expected a weight from 1"),
        (a_spec(preferred_storage=prefers(1, "70")), f"{AFFINITY}.preferredStorage.threshold: expected a percentage"),
        (
            a_spec(floors=[needs("cpu", 1), needs("gpus", 1)]),
            f"{AFFINITY}.requiredResources[1].resourceType: expected cpu, "
            'memory, storage, gpu or an extended resource such as example.com/fpga, got "gpus". Did you mean "gpu"?',
        ),
        (a_spec(floors=[needs("fpga", 1)]), f"{AFFINITY}.requiredResources[0].resourceType: expected cpu"),
        (a_spec(floors=[needs("-/x", 1)]), f"{AFFINITY}.requiredResources[0].resourceType: expected cpu"),
        (
            a_spec(floors=[needs("cpu", "lots")]),
            f"{AFFINITY}.requiredResources[0].minAvailable: expected a quantity such",
        ),
        (
            a_spec(floors=[needs("cpu", -1)]),
            f"{AFFINITY}.requiredResources[0].minAvailable: expected a quantity that is",
        ),
        (a_spec(preemptionPolicy="Always"), f"{POLICY}.preemptionPolicy: expected Never or PreemptLowerPriority"),
        (
            a_spec(rules=[a_rule("cost-awrae")]),
            f"{POLICY}.rules[0].name: expected a rule that is there (cost-aware, "
            'label-match, latency, load-aware, packing, spot-risk), got "cost-awrae". Did you mean "cost-aware"?',
        ),
        (a_spec(rules=[a_rule("spot-risk", "rank")]), f"{POLICY}.rules[0].type: expected score, filter or prioritize"),
        (
            a_spec(rules=[a_rule("spot-risk", weight=0)]),
            f"{POLICY}.rules[0].weight: expected a weight from 1 to 100, got 0",
        ),
        (
            a_spec(rules=[a_rule("spot-risk", "filter", 5)]),
            f"{POLICY}.rules[0].weight: expected no weight but for type",
        ),
        (
            a_spec(rules=[a_rule("spot-risk", wurst=1)]),
            f'{POLICY}.rules[0].config.wurst: unknown field. Did you mean "worst"?',
        ),
        (
            a_spec(rules=[a_rule("spot-risk", zzz=1)]),
            f"{POLICY}.rules[0].config.zzz: unknown field. spot-risk knows percent, byInstanceType, worst.",
        ),
        (
            a_spec(rules=[a_rule("cost-aware", costFactor="0.3")]),
            f"{POLICY}.rules[0].config.costFactor: expected float, got str.",
        ),
        (
            a_spec(rules=[a_rule("cost-aware", costFactor=3)]),
            f"{POLICY}.rules[0].config.costFactor: expected a number from 0",
        ),
        (a_spec(selects={"-": "x"}), '$.spec.selector.matchLabels["-"]: expected'),
        (
            {"capacity": {"strategy": "spot-first", "onDemandBase": "thirty"}},
            '$.spec.capacity.onDemandBase: expected a number of pods, such as 2, or a share from "0%" to "100%", got '
            '"thirty". Write 2, or "30%".',
        ),
        (
            {"capacity": {"strategy": "spot-only", "spotPercent": 70}},
            "$.spec.capacity.strategy: expected a strategy that leaves a choice with onDemandBase or spotPercent, got "
            '"spot-only". Use spot-first, or remove the numbers.',
        ),
        (
            {"apply": "Addmission"},
            '$.spec.apply: expected Admission or None, got "Addmission". Did you mean "Admission"?',
        ),
        (
            {"priority": {"value": 2_000_000_000}},
            "$.spec.priority.value: expected at most 1,000,000,000, the highest that is not the system's, got "
            "2000000000. Lower it.",
        ),
        (
            {"priority": {}},
            "$.spec.priority: expected either value or className, got nothing. Keep one of them.",
        ),
        (
            {"disruption": {"minAvailable": 1}},
            "$.spec.disruption: expected a selector with labels beside disruption, got nothing. Add one: a budget is "
            "about pods by their labels.",
        ),
        (
            {"critical": True, "capacity": {"strategy": "spot-first"}},
            "$.spec.critical: expected no capacity, or on-demand-first or on-demand-only without onDemandBase and "
            'spotPercent, beside it, got "spot-first". Leave capacity out: critical pods are kept on demand.',
        ),
    ],
)
def test_what_is_wrong_is_told_with_its_path_and_the_way_out(spec: dict[str, Any], problem: str) -> None:
    (reported,) = find_policy_problems(policy_of(spec), BUILT_IN)
    assert reported.startswith(problem)


def test_all_problems_are_told_at_once_and_there_is_no_plan() -> None:
    policy = a_policy(strategy="spot", mode="Off", rules=[a_rule("x"), a_rule("cost-aware", costFactor=2)])
    with pytest.raises(InputError) as caught:
        compile_policy(policy, BUILT_IN)
    assert [problem.partition(": ")[0] for problem in caught.value.problems] == [
        "$.spec.capacity.strategy",
        "$.spec.mode",
        f"{POLICY}.rules[0].name",
        f"{POLICY}.rules[1].config.costFactor",
    ]


def test_the_default_selects_nobody_in_particular() -> None:
    wrong = find_policy_problems(a_cluster_policy(selects={"app": "web"}, namespaces={"team": "a"}), BUILT_IN)
    assert [problem.partition(": ")[0] for problem in wrong] == ["$.spec.selector", "$.spec.namespaceSelector"]
    assert (
        find_policy_problems(a_policy("default", selects={"app": "web"}), BUILT_IN) == []
    )  # of a namespace: a name like any other


class Picky(msgspec.Struct, frozen=True):
    size: int = 0

    def __post_init__(self) -> None:
        if self.size:
            raise RuntimeError("not today")


class Broken(Rule[Picky]):
    """Somebody else's: its own checks fail, and it can only score."""

    name = "broken"
    config = Picky

    def problems(self, config: Picky, type_: str) -> Iterable[str]:
        raise ZeroDivisionError("oh")

    def points(self, config: Picky, fleet: object, pod: object) -> Floats:
        raise AssertionError("never asked")


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        (a_rule("broken"), f"{POLICY}.rules[0].config: the rule broken failed to check it: ZeroDivisionError: oh"),
        (
            a_rule("broken", size=1),
            f"{POLICY}.rules[0].config: the rule broken failed to read it: RuntimeError: not today",
        ),
        (a_rule("broken", "filter"), f'{POLICY}.rules[0].type: expected score or prioritize for broken, got "filter"'),
    ],
)
def test_a_rule_of_somebody_elses_spoils_only_the_policy_that_names_it(rule: dict[str, Any], problem: str) -> None:
    (reported,) = find_policy_problems(a_policy(rules=[rule]), {"broken": Broken()})
    assert reported.startswith(problem)
