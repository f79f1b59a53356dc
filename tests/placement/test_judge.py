"""A plan on a fleet: who is refused, why, and how many points the others get."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from builders import a_node, a_pod
from policies import (
    DISRUPTED,
    a_fleet,
    a_plan,
    a_rule,
    all_rows,
    judge_nodes,
    kept_names,
    needs,
    prefers,
    rows_of,
    scores,
    spot,
    steady,
)
from wukong.api.core import Node, Pod
from wukong.engine.arrays import Floats, Mask
from wukong.placement.compile import Plan, Preference
from wukong.placement.fleet import Fleet
from wukong.placement.judge import Judge, score_usage
from wukong.placement.rule import NoConfig, Rule
from wukong.placement.rules import BUILT_IN

S1, S2, D1, D2 = spot("s1"), spot("s2"), steady("d1"), steady("d2")
GONE_SPOT, GONE_STEADY = spot("s-gone", taints=[DISRUPTED]), steady("d-gone", taints=[DISRUPTED])


# ---- capacity


@pytest.mark.parametrize(
    ("strategy", "nodes", "kept", "is_fallback"),
    [
        ("spot-first", [S1, D1, S2], ["s1", "s2"], False),
        ("spot-first", [D1, D2], ["d1", "d2"], True),
        ("spot-first", [GONE_SPOT, D1], ["d1"], True),
        ("spot-first", [GONE_SPOT, GONE_STEADY], [], False),
        ("spot-first", [], [], False),
        ("spot-preferred", [S1, D1], ["s1", "d1"], False),
        ("on-demand-first", [S1, D1, D2], ["d1", "d2"], False),
        ("on-demand-first", [S1, S2], ["s1", "s2"], True),
        ("on-demand-first", [S1, GONE_STEADY], ["s1"], True),
        ("on-demand-only", [S1, D1], ["d1"], False),
        ("on-demand-only", [S1], [], False),
        ("spot-only", [S1, D1], ["s1"], False),
        ("spot-only", [D1], [], False),
        ("", [S1, D1, GONE_SPOT], ["s1", "d1"], False),
    ],
)
def test_a_strategy_keeps_the_capacity_it_wants(
    strategy: str, nodes: list[Node], kept: list[str], is_fallback: bool
) -> None:
    plan, fleet = a_plan(strategy=strategy), a_fleet(*nodes)
    assert kept_names(plan, fleet) == kept
    assert judge_nodes(plan, fleet).is_fallback is is_fallback


def test_a_node_we_have_not_heard_of_is_refused_by_nothing_but_a_strategy_that_must_know() -> None:
    fleet = a_fleet(S1, D1)
    plan = a_plan(
        strategy="spot-first",
        floors=[needs("cpu", 99)],
        rules=[a_rule("label-match", "filter", matchLabels={"a": "b"})],
    )
    judgement = Judge().filter(plan, fleet, rows_of(fleet, "new"), a_pod(), {}, plan.strategy)
    assert (judgement.kept.tolist(), judgement.is_fallback) == ([True], True)
    for strategy, kept in {
        "": [True, True, True],
        "spot-preferred": [True, True, True],
        "spot-first": [False, True, False],
        "spot-only": [False, True, False],
        "on-demand-first": [False, False, True],
        "on-demand-only": [False, False, True],  # it may be a spot node: better none than that
    }.items():
        judgement = Judge().filter(a_plan(), fleet, rows_of(fleet, "new", "s1", "d1"), a_pod(), {}, strategy)
        assert judgement.kept.tolist() == kept, strategy
    scored = Judge().score(a_plan(preferred_cpu=prefers(1, "50%")), fleet, rows_of(fleet, "new"), a_pod())
    assert scored.tolist() == [5]


def test_reasons_say_what_and_whose_and_that_preemption_cannot_help() -> None:
    fleet = a_fleet(S1, D1, GONE_SPOT, steady("ssd", labels={"disk": "ssd"}), free={"cpu": [9, 0, 9, 2000]})
    plan = a_plan(
        strategy="spot-only",
        floors=[needs("cpu", 1)],
        rules=[a_rule("label-match", "filter", matchExpressions=[{"key": "disk", "operator": "DoesNotExist"}])],
    )
    whose = "(PlacementPolicy default/web)"
    judgement = judge_nodes(plan, fleet)
    assert [(refusal.reason, refusal.is_final, refusal.kind) for refusal in judgement.refusals] == [
        ("node is leaving: taint karpenter.sh/disrupted", True, "leaving"),
        (f"rule label-match: labels do not match {whose}", True, "rule"),
        (f"less than cpu 1 free {whose}", True, "resources"),
    ]
    judgement = judge_nodes(a_plan(strategy="spot-first"), a_fleet(S1, D1))
    assert [refusal.reason for refusal in judgement.refusals] == [
        f"not spot: spot-first, and spot nodes are left {whose}"
    ]
    judgement = judge_nodes(a_plan(strategy="on-demand-only"), a_fleet(S1))
    assert [refusal.reason for refusal in judgement.refusals] == [f"not on-demand: on-demand-only {whose}"]


def test_a_spot_node_below_the_floor_is_none_that_is_left() -> None:
    plan = a_plan(strategy="spot-first", floors=[needs("cpu", 2)])
    fleet = a_fleet(S1, D1, free={"cpu": [1999, 2000]})
    assert kept_names(plan, fleet) == ["d1"]
    assert judge_nodes(plan, fleet).is_fallback


# ---- floors


@pytest.mark.parametrize(
    ("resource", "least", "free", "needed", "kept"),
    [
        ("cpu", "2", {"cpu": [2000, 1999]}, {}, ["a"]),
        ("cpu", "2", {"cpu": [3000, 2500]}, {"cpu": 2600}, ["a"]),  # the request, if that is more
        ("cpu", "1e30", {"cpu": [3000, 2500]}, {}, []),
        ("memory", "1Ki", {"memory": [1024, 1023]}, {}, ["a"]),
        ("storage", "1", {"ephemeral-storage": [1, 0]}, {}, ["a"]),
        ("example.com/fpga", "1", {"example.com/fpga": [0, 1]}, {}, ["b"]),
        ("example.com/fpga", "1", {}, {}, []),  # nobody has any
        ("example.com/fpga", "0", {}, {}, ["a", "b"]),
        ("example.com/fpga", "0", {}, {"example.com/fpga": 1}, []),
        ("gpu", "1", {"nvidia.com/gpu": [1, 0]}, {}, ["a"]),
        ("gpu", "1", {"nvidia.com/gpu": [1, 0], "amd.com/gpu": [0, 1]}, {}, ["a", "b"]),
        ("gpu", "2", {"nvidia.com/gpu": [1, 0], "amd.com/gpu": [1, 2]}, {}, ["b"]),  # of one kind
        ("gpu", "1", {"nvidia.com/gpu": [1, 2]}, {"nvidia.com/gpu": 2}, ["b"]),
        ("gpu", "1", {}, {}, []),
        ("nvidia.com/gpu", "1", {"nvidia.com/gpu": [0, 1], "amd.com/gpu": [1, 0]}, {}, ["b"]),
        ("cpu", "0", {"cpu": [-5, 0]}, {}, ["b"]),  # overcommitted
    ],
)
def test_a_floor_asks_for_what_is_free(
    resource: str, least: str, free: dict[str, list[int]], needed: dict[str, int], kept: list[str]
) -> None:
    assert (
        kept_names(a_plan(floors=[needs(resource, least)]), a_fleet(steady("a"), steady("b"), free=free), needed)
        == kept
    )


def test_all_floors_must_hold() -> None:
    plan = a_plan(floors=[needs("cpu", 1), needs("memory", 1)])
    fleet = a_fleet(steady("a"), steady("b"), steady("c"), free={"cpu": [1000, 1000, 0], "memory": [1, 0, 1]})
    assert kept_names(plan, fleet) == ["a"]


def test_floors_are_looked_at_anew_each_time() -> None:
    amounts = np.array([1000, 0], dtype=np.int64)
    fleet = a_fleet(steady("a"), steady("b"))
    fleet.free = {"cpu": amounts}.get
    plan, judge = a_plan(floors=[needs("cpu", 1)]), Judge()
    assert judge_nodes(plan, fleet, judge=judge).kept.tolist() == [True, False]
    amounts[:] = [0, 1000]
    assert judge_nodes(plan, fleet, judge=judge).kept.tolist() == [False, True]


# ---- points


@pytest.mark.parametrize(
    ("threshold", "used", "expected"),
    [
        (70, 0, 100), (70, 35, 75), (70, 69.999999, 50), (70, 70, 25), (70, 85, 12.5), (70, 100, 0), (70, 130, 0),
        (70, -5, 100), (70, None, 50),
        (0, 0, 25), (0, 50, 12.5), (0, 100, 0), (0, None, 50),
        (100, 0, 100), (100, 50, 75), (100, 99.9999999, 50), (100, 100, 0), (100, 120, 0),
    ],
)  # fmt: skip
def test_points_fall_with_usage_and_drop_at_the_threshold(
    threshold: float, used: float | None, expected: float
) -> None:
    fleet = a_fleet(steady("n"), cpu={} if used is None else {"n": used})
    assert score_usage(Preference("cpu", 1, threshold), fleet).tolist() == pytest.approx([expected])


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, {"s": 0, "d": 0}),
        ({"strategy": "spot-preferred"}, {"s": 10, "d": 0}),
        ({"strategy": "spot-first"}, {"s": 0, "d": 0}),
        ({"preferred_cpu": prefers(50, "50%")}, {"s": 1, "d": 8}),  # 10 and 75 points; 1.0 and 7.5
        ({"preferred_cpu": prefers(7, "50%"), "preferred_memory": prefers(3, "50%")}, {"s": 3, "d": 6}),  # 27.1 and 60
        ({"preferred_storage": prefers(1, "90%")}, {"s": 5, "d": 5}),
        ({"preferred_cpu": prefers(100, "50%"), "strategy": "spot-preferred"}, {"s": 6, "d": 4}),  # 55 and 37.5
        ({"rules": [a_rule("load-aware", cpu=1, memory=0)]}, {"s": 2, "d": 8}),  # 20 and 75
        ({"rules": [a_rule("load-aware", weight=3, memory=0), a_rule("spot-risk", worst=40)]}, {"s": 3, "d": 8}),
    ],
)  # fmt: skip
def test_the_score_is_the_weighted_mean_of_all_terms_in_tenths_rounded_half_up(
    spec: dict[str, Any], expected: dict[str, int]
) -> None:
    fleet = a_fleet(spot("s"), steady("d"), cpu={"s": 80, "d": 25}, memory={"s": 33, "d": 50})
    assert scores(a_plan(**spec), fleet) == expected


def test_equal_points_give_their_own_score_whatever_the_weights() -> None:
    """A third of 25 points and two thirds of 25 points are 25, so 3, and not 24.999…, so 2."""
    fleet = a_fleet(steady("n"), cpu={"n": 75})
    rules = [a_rule("load-aware", weight=1, memory=0), a_rule("load-aware", weight=2, memory=0)]
    assert scores(a_plan(rules=rules), fleet) == {"n": 3}


# ---- rules of type prioritize


RANKED = a_fleet(
    steady("a", labels={"disk": "ssd"}), steady("b", labels={"disk": "ssd", "gen": "2"}), steady("c"),
    spot("d", labels={"disk": "ssd", "gen": "2"}),
)  # fmt: skip
SSD = a_rule("label-match", "prioritize", matchLabels={"disk": "ssd"})
NEW = a_rule("label-match", "prioritize", matchLabels={"gen": "2"})
ON_DEMAND = a_rule("spot-risk")


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ([ON_DEMAND], {"a": 10, "b": 10, "c": 10, "d": 2}),
        ([ON_DEMAND, SSD], {"a": 10, "b": 10, "c": 9, "d": 2}),
        ([ON_DEMAND, SSD, NEW], {"a": 9, "b": 10, "c": 9, "d": 2}),
        ([SSD], {"a": 1, "b": 1, "c": 0, "d": 1}),  # all at 0: the better get more
        ([SSD, NEW], {"a": 0, "b": 1, "c": 0, "d": 1}),
        ([a_rule("spot-risk", "prioritize"), NEW], {"a": 0, "b": 1, "c": 0, "d": 0}),
        ([a_rule("load-aware", "prioritize")], {"a": 0, "b": 0, "c": 0, "d": 0}),  # nobody knows: all alike
    ],
)
def test_ranking_touches_only_nodes_tied_at_the_top(rules: list[dict[str, Any]], expected: dict[str, int]) -> None:
    assert scores(a_plan(rules=rules), RANKED) == expected


def test_only_the_nodes_offered_are_ranked() -> None:
    plan = a_plan(rules=[SSD, NEW])
    scores_given = Judge().score(plan, RANKED, rows_of(RANKED, "c", "a", "new", "a"), a_pod())
    assert scores_given.tolist() == [0, 1, 0, 1]  # of a node nobody knows the rank is neutral
    assert Judge().score(plan, RANKED, rows_of(RANKED), a_pod()).tolist() == []


# ---- rules of somebody else's


class Answer(Rule[NoConfig]):
    """Says whatever it was made to say, or raises it."""

    config = NoConfig

    def __init__(self, said: Any, why: Any = "so it is") -> None:
        self.said, self.why = said, why

    def _say(self, fleet: Fleet) -> Any:
        if isinstance(self.said, Exception):
            raise self.said
        return self.said(fleet) if callable(self.said) else self.said

    def points(self, config: NoConfig, fleet: Fleet, pod: Pod) -> Floats:
        found: Floats = self._say(fleet)
        return found

    def refuses(self, config: NoConfig, fleet: Fleet, pod: Pod) -> Mask:
        found: Mask = self._say(fleet)
        return found

    def reason(self, config: NoConfig) -> str:
        if isinstance(self.why, Exception):
            raise self.why
        found: str = self.why
        return found


def spoil(fleet: Fleet) -> Floats:
    fleet.price[:] = 0
    return fleet.price


def with_rule(said: Any, type_: str, why: Any = "so it is", **spec: Any) -> Plan:
    return a_plan(known={**BUILT_IN, "custom": Answer(said, why)}, rules=[a_rule("custom", type_)], **spec)


MISSHAPEN = {
    "raises": RuntimeError("boom"),
    "nothing": None,
    "a number": 7,
    "too few": [1.0],
    "too deep": [[True, False]],
    "text": "ab",
    "texts": ["a", "b"],
    "a hole": [1, None],
    "a set": {1, 2},
    "writes to the fleet": spoil,
    "a generator": lambda fleet: (value for value in (1, 2)),
    "complex numbers": np.array([1j, 2j]),
    "objects": np.array([object(), object()]),
}


@pytest.mark.parametrize("said", MISSHAPEN.values(), ids=MISSHAPEN)
@pytest.mark.parametrize("type_", ["filter", "score", "prioritize"])
def test_a_rule_that_fails_counts_as_if_it_were_not_there(said: Any, type_: str) -> None:
    fleet = a_fleet(S1, D1, cpu={"s1": 20, "d1": 90})
    wish: dict[str, Any] = {"preferred_cpu": prefers(1, "50%"), "strategy": "spot-first"}
    plan, judge = with_rule(said, type_, **wish), Judge()
    assert judge_nodes(plan, fleet, judge=judge).kept.tolist() == judge_nodes(a_plan(**wish), fleet).kept.tolist()
    assert scores(plan, fleet, judge=judge) == scores(a_plan(**wish), fleet)
    assert list(judge.faults) == [""]  # by the rule's name
    assert judge.faults[""].partition(":")[0].endswith(("Error", "Warning"))


@pytest.mark.parametrize("said", [[0.0, 1.0], [0, 1], [np.nan, 1.0]])
def test_a_filter_that_answers_with_numbers_refuses_nobody(said: list[float]) -> None:
    judge = Judge()
    assert judge_nodes(with_rule(said, "filter"), a_fleet(S1, D1), judge=judge).kept.all()
    assert "expected bool" in judge.faults[""]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ([-50.0, 1e9], [0, 10]),
        ([np.nan, np.inf], [5, 10]),
        ([-np.inf, np.nan], [0, 5]),
        ([0, 100], [0, 10]),
        ([False, True], [0, 0]),
        (np.array([40, 60], dtype=np.float32), [4, 6]),
    ],
)
def test_points_are_held_between_0_and_100_and_unknown_ones_are_neutral(said: Any, expected: list[int]) -> None:
    assert list(scores(with_rule(said, "score"), a_fleet(S1, D1)).values()) == expected


@pytest.mark.parametrize(("why", "text"), [("so it is", "so it is"), (7, "7"), (RuntimeError("x"), "refused")])
def test_a_reason_that_fails_is_replaced(why: Any, text: str) -> None:
    (refusal,) = judge_nodes(with_rule([True, False], "filter", why), a_fleet(S1, D1)).refusals
    assert refusal.reason == f"rule : {text} (PlacementPolicy default/web)"


class ByApp(Rule[NoConfig]):
    """Depends on the pod: refuses all nodes to db, and gives web all points."""

    name = "by-app"
    config = NoConfig
    is_per_pod = True

    def points(self, config: NoConfig, fleet: Fleet, pod: Pod) -> Floats:
        return np.full(fleet.size, 100.0 if pod.metadata.labels["app"] == "web" else 0.0)

    def refuses(self, config: NoConfig, fleet: Fleet, pod: Pod) -> Mask:
        return np.full(fleet.size, pod.metadata.labels["app"] == "db")


def test_a_rule_that_depends_on_the_pod_is_asked_for_each() -> None:
    known = {"by-app": ByApp()}
    plan = a_plan(known=known, rules=[a_rule("by-app"), a_rule("by-app", "filter")])
    fleet, judge = a_fleet(S1), Judge()
    for app, is_kept, score in (("web", True, 10), ("db", False, 0), ("web", True, 10)):
        pod = a_pod(app=app)
        assert judge.filter(plan, fleet, all_rows(fleet), pod, {}, "").kept.tolist() == [is_kept]
        assert scores(plan, fleet, pod, judge) == {"s1": score}


def test_what_was_worked_out_holds_only_for_its_plan_and_its_fleet() -> None:
    judge = Judge()
    one, other = a_fleet(S1, D1), a_fleet(spot("s1", taints=[DISRUPTED]), D1)
    plans = [a_plan(strategy="spot-only"), a_plan(strategy="on-demand-only")]
    for fleet, plan, kept in (
        (one, 0, [True, False]),
        (one, 1, [False, True]),
        (other, 0, [False, False]),
        (one, 0, [True, False]),
    ):
        assert judge_nodes(plans[plan], fleet, judge=judge).kept.tolist() == kept


class Counting(Answer):
    name = "counting"
    asked = 0

    def _say(self, fleet: Fleet) -> Any:
        type(self).asked += 1
        return np.zeros(fleet.size)


def test_a_rule_is_asked_once_per_plan_and_fleet() -> None:
    plan = a_plan(known={"counting": Counting(None)}, rules=[a_rule("counting")])
    fleet, judge = a_fleet(S1), Judge()
    for _ in range(5):
        scores(plan, fleet, judge=judge)
        judge_nodes(plan, fleet, judge=judge)
    assert Counting.asked == 1
    judge.forget()
    scores(plan, fleet, judge=judge)
    assert Counting.asked == 2


class Steady(Counting):
    name = "steady"
    is_steady = True
    asked = 0


def test_a_steady_rule_is_asked_once_as_long_as_the_nodes_are_the_same() -> None:
    plan = a_plan(known={"steady": Steady(None)}, rules=[a_rule("steady")])
    fleet, judge = a_fleet(S1), Judge()
    for used in (10.0, 20.0, 30.0):
        scores(plan, Fleet(fleet.nodes, np.full((3, 1), used)), judge=judge)
    assert Steady.asked == 1
    scores(plan, a_fleet(S1), judge=judge)
    assert Steady.asked == 2


def test_terms_are_named_as_in_the_policy() -> None:
    plan = a_plan(preferred_cpu=prefers(5, "50%"), rules=[a_rule("spot-risk", weight=7)], strategy="spot-preferred")
    terms = Judge().build_terms(plan, a_fleet(a_node("n")), a_pod())
    assert [(term.name, term.weight) for term in terms] == [
        ("preferred cpu", 5),
        ("spot-risk", 7),
        ("spot-preferred", 100),
    ]
    assert msgspec.json.encode([term.points.tolist() for term in terms]) == b"[[50.0,50.0],[100.0,50.0],[0.0,50.0]]"
