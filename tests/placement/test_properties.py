"""Judge on random fleets and plans: what must always hold, and that it equals the plain reading of oracle.py.

All numbers are on a grid on which floats are exact (quarters, powers of two) or only compared, so scores must be equal
and not merely close.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from builders import ZONE, a_pod
from placement.oracle import PlainNode, Wanted, list_kept, scores
from policies import DISRUPTED, a_fleet, a_plan, prefers, spot, steady
from wukong.placement.compile import Plan
from wukong.placement.fleet import USED, Fleet
from wukong.placement.judge import Judge
from wukong.placement.rules.spot_risk import RISK_LABEL

STRATEGIES = ("", "spot-first", "spot-preferred", "on-demand-first", "on-demand-only", "spot-only")
RESOURCES = ("cpu", "memory", "ephemeral-storage", "nvidia.com/gpu", "amd.com/gpu", "example.com/fpga")
GPUS = ("nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/i915", "gpu.intel.com/xe")
AS_WRITTEN = {"ephemeral-storage": "storage"}  # what policies call it
TYPE, RTT = "node.kubernetes.io/instance-type", "example.com/rtt"
percents = st.none() | st.sampled_from([0, 10, 25, 30, 50, 60, 75, 90, 100, 125])
labels = st.fixed_dictionaries(
    {},
    optional={
        RISK_LABEL: st.sampled_from(["0", "5", "20", "50"]),
        TYPE: st.sampled_from(["x.small", "x.big"]),
        ZONE: st.sampled_from(["a", "b", "c"]),
        RTT: st.sampled_from(["0", "8", "16", "99"]),
        "disk": st.sampled_from(["ssd", "hdd"]),
    },
)


@dataclass(frozen=True)
class Case:
    nodes: list[PlainNode]
    offered: list[int]  # rows; -1 for a node nobody has heard of; some may be offered twice
    wanted: Wanted
    needed: dict[str, int]

    def plain(self) -> list[PlainNode | None]:
        return [None if row < 0 else self.nodes[row] for row in self.offered]

    def rows(self) -> np.ndarray[Any, np.dtype[np.intp]]:
        return np.array(self.offered, dtype=np.intp)


@st.composite
def plain_nodes(draw: st.DrawFn, name: str) -> PlainNode:
    return PlainNode(
        name,
        is_spot=draw(st.booleans()),
        is_leaving=draw(st.integers(0, 5)) == 5,
        labels=draw(labels),
        cores=draw(st.sampled_from([1, 2, 4])),
        price=draw(st.none() | st.sampled_from([0, 2, 4, 8])),
        cpu=draw(percents),
        memory=draw(percents),
        storage=draw(percents),
        free={resource: draw(st.integers(-1, 3)) for resource in RESOURCES},
    )


def configs(name: str) -> st.SearchStrategy[dict[str, Any]]:
    if name == "cost-aware":
        return st.fixed_dictionaries(
            {"costFactor": st.sampled_from([0.0, 0.25, 0.5, 1.0]), "maxPerHour": st.sampled_from([0, 4, 8])}
        )
    if name == "load-aware":
        counts = st.integers(0, 2)
        return st.fixed_dictionaries(
            {
                "cpu": st.integers(1, 2),
                "memory": counts,
                "storage": counts,
                "threshold": st.sampled_from(["50%", "90%"]),
            }
        )
    if name == "spot-risk":
        return st.fixed_dictionaries(
            {
                "percent": st.sampled_from([0, 10, 20]),
                "byInstanceType": st.sampled_from([{}, {"x.big": 5}]),
                "worst": st.sampled_from([10, 20, 40]),
            }
        )
    if name == "latency":
        matrix = {"matrix": {"a": {"a": 0, "b": 8}}, "from": "a"}
        return st.sampled_from(
            [{"label": RTT, "maxMillis": 16}, {**matrix, "maxMillis": 8}, {**matrix, "maxMillis": 4}]
        )
    return st.sampled_from([{"matchLabels": {"disk": "ssd"}}, {"matchLabels": {"disk": "ssd", ZONE: "a"}}])


@st.composite
def rules(draw: st.DrawFn) -> tuple[str, str, int, dict[str, Any]]:
    name = draw(st.sampled_from(["cost-aware", "load-aware", "spot-risk", "latency", "label-match"]))
    return name, draw(st.sampled_from(["filter", "score", "score", "prioritize"])), draw(weights), draw(configs(name))


weights = st.sampled_from([1, 2, 5, 64])
floors = st.tuples(st.sampled_from([*((name,) for name in RESOURCES), GPUS]), st.integers(0, 2))
preferences = st.lists(
    st.tuples(st.sampled_from(["cpu", "memory", "storage"]), weights, st.sampled_from([0, 50, 75, 100])),
    max_size=3,
    unique_by=lambda wish: wish[0],
)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    nodes = [draw(plain_nodes(f"n{number}")) for number in range(draw(st.integers(0, 6)))]
    wanted = Wanted(
        strategy=draw(st.sampled_from(STRATEGIES)),
        preferences=draw(preferences),
        floors=draw(st.lists(floors, max_size=2)),
        rules=draw(st.lists(rules(), max_size=4)),
    )
    offered = draw(st.lists(st.integers(-1, len(nodes) - 1), max_size=9))
    needed = draw(st.dictionaries(st.sampled_from(RESOURCES), st.integers(0, 2)))
    return Case(nodes, offered, wanted, needed)


def fleet_of(nodes: list[PlainNode]) -> Fleet:
    made = [
        (spot if node.is_spot else steady)(
            node.name,
            labels=node.labels,
            price=node.price,
            cpu=str(node.cores),
            taints=[DISRUPTED] if node.is_leaving else [],
        )
        for node in nodes
    ]
    known = {kind: {node.name: used for node in nodes if (used := node.used(kind)) is not None} for kind in USED}
    free = {resource: [node.free[resource] for node in nodes] for resource in RESOURCES}
    return a_fleet(*made, cpu=known["cpu"], memory=known["memory"], storage=known["storage"], free=free)


def plan_of(wanted: Wanted) -> Plan:
    written: dict[str, Any] = {
        f"preferred_{resource}": prefers(weight, f"{threshold}%") for resource, weight, threshold in wanted.preferences
    }
    needs = []
    for resources, least in wanted.floors:
        name = "gpu" if resources == GPUS else AS_WRITTEN.get(resources[0], resources[0])
        needs.append({"resourceType": name, "minAvailable": f"{least}m" if name == "cpu" else least})
    uses = [
        {"name": name, "type": type_, "config": config, **({"weight": weight} if type_ == "score" else {})}
        for name, type_, weight, config in wanted.rules
    ]
    return a_plan(strategy=wanted.strategy, floors=needs, rules=uses, **written)


@given(cases())
def test_kept_and_refused_nodes_are_all_nodes_offered_each_once(case: Case) -> None:
    plan, fleet = plan_of(case.wanted), fleet_of(case.nodes)
    judgement = Judge().filter(plan, fleet, case.rows(), a_pod(), case.needed, plan.strategy)
    times = judgement.kept.astype(np.int64)
    for refusal in judgement.refusals:
        times += refusal.mask
    assert (times == 1).all()
    assert all(refusal.mask.any() for refusal in judgement.refusals)
    assert len({refusal.reason for refusal in judgement.refusals}) == len(judgement.refusals)


@given(cases())
def test_a_leaving_node_is_never_kept_and_its_refusal_is_final(case: Case) -> None:
    plan, fleet = plan_of(case.wanted), fleet_of(case.nodes)
    judgement = Judge().filter(plan, fleet, case.rows(), a_pod(), case.needed, plan.strategy)
    for place, node in enumerate(case.plain()):
        if node is not None and node.is_leaving:
            (why,) = [refusal for refusal in judgement.refusals if refusal.mask[place]]
            assert (why.kind, why.is_final) == ("leaving", True)


@given(cases())
def test_a_strategy_of_first_never_mixes_and_never_refuses_all_that_were_left(case: Case) -> None:
    plan, fleet = plan_of(case.wanted), fleet_of(case.nodes)
    for strategy in ("spot-first", "on-demand-first"):
        judgement = Judge().filter(plan, fleet, case.rows(), a_pod(), case.needed, strategy)
        any_way = Judge().filter(plan, fleet, case.rows(), a_pod(), case.needed, "")
        kinds = {
            None if node is None else node.is_spot
            for node, is_kept in zip(case.plain(), judgement.kept.tolist(), strict=True)
            if is_kept
        }
        assert not {True, False} <= kinds
        assert judgement.kept.any() == any_way.kept.any()
        assert judgement.is_fallback == bool(kinds and kinds != {strategy == "spot-first"})


@given(cases())
def test_judge_equals_one_node_at_a_time(case: Case) -> None:
    plan, fleet, judge = plan_of(case.wanted), fleet_of(case.nodes), Judge()
    judgement = judge.filter(plan, fleet, case.rows(), a_pod(), case.needed, plan.strategy)
    assert judgement.kept.tolist() == list_kept(case.wanted, case.plain(), case.needed)
    assert judge.score(plan, fleet, case.rows(), a_pod()).tolist() == scores(case.wanted, case.nodes, case.plain())
    assert judge.faults == {}


@given(cases())
def test_a_score_is_from_0_to_10(case: Case) -> None:
    scores_given = Judge().score(plan_of(case.wanted), fleet_of(case.nodes), case.rows(), a_pod())
    assert scores_given.dtype == np.int64
    assert all(0 <= score <= 10 for score in scores_given.tolist())


@given(
    st.lists(st.floats(-10, 200), min_size=1, max_size=5), st.floats(0, 150), st.integers(0, 100), st.integers(1, 100)
)
def test_more_usage_never_gives_a_higher_score(used: list[float], more: float, threshold: int, weight: int) -> None:
    plan = a_plan(preferred_cpu=prefers(weight, f"{threshold}%"), strategy="spot-preferred")
    names = [f"n{number}" for number in range(len(used))]
    nodes = [steady(name) for name in names]
    rows = np.arange(len(used), dtype=np.intp)
    before = Judge().score(plan, a_fleet(*nodes, cpu=dict(zip(names, used, strict=True))), rows, a_pod())
    raised = [used[0] + more, *used[1:]]
    after = Judge().score(plan, a_fleet(*nodes, cpu=dict(zip(names, raised, strict=True))), rows, a_pod())
    assert after[0] <= before[0]
    assert after[1:].tolist() == before[1:].tolist()
