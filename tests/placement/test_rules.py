"""Each built-in rule: its points, whom it refuses, and what it says of a config that makes no sense."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from builders import ZONE, a_pod
from policies import a_fleet, spot, steady
from wukong.errors import InputError
from wukong.placement.fleet import Fleet
from wukong.placement.prices import TYPE_LABELS
from wukong.placement.rules import BUILT_IN
from wukong.placement.rules.latency import read_latencies
from wukong.placement.rules.spot_risk import RISK_LABEL

RTT = "example.com/rtt"
UNKNOWN = None  # neutral


def points(rule: str, fleet: Fleet, **config: Any) -> dict[str, float | None]:
    """Node → points; None where the rule has no opinion."""
    answer = BUILT_IN[rule].points(read(rule, config), fleet, a_pod())
    assert answer.shape == (fleet.size,)
    return {
        name: None if math.isnan(value) else value for name, value in zip(fleet.names, answer.tolist(), strict=True)
    }


def refused(rule: str, fleet: Fleet, **config: Any) -> list[str]:
    mask = BUILT_IN[rule].refuses(read(rule, config), fleet, a_pod())
    assert mask.dtype == bool
    return [name for name, is_refused in zip(fleet.names, mask.tolist(), strict=True) if is_refused]


def read(rule: str, config: Mapping[str, Any]) -> Any:
    return msgspec.convert(dict(config), BUILT_IN[rule].config)


def problems(rule: str, type_: str, config: Mapping[str, Any]) -> list[str]:
    return list(BUILT_IN[rule].problems(read(rule, config), type_))


# ---- cost-aware

TWO_PRICES = a_fleet(
    steady("cheap", cpu="4", price=0.4),
    steady("middle", cpu="2", price=0.5),  # per core, 0.25
    steady("dear", cpu="4", price=1.6),
    steady("unknown"),
    cpu={"cheap": 80, "middle": 40, "dear": 0},
    memory={"cheap": 40, "middle": 40, "dear": 20},
)


@pytest.mark.parametrize(
    ("factor", "expected"),
    [
        (0, {"cheap": 40, "middle": 60, "dear": 90, "unknown": 50}),
        (1, {"cheap": 100, "middle": 50, "dear": 0, "unknown": 50}),
        (0.3, {"cheap": 58, "middle": 57, "dear": 63, "unknown": 50}),
        (0.5, {"cheap": 70, "middle": 55, "dear": 45, "unknown": 50}),
    ],
)
def test_cost_aware_weighs_load_against_price_per_core(factor: float, expected: dict[str, float]) -> None:
    assert points("cost-aware", TWO_PRICES, costFactor=factor) == pytest.approx(expected)


def test_cost_aware_takes_what_is_known_of_cpu_and_memory() -> None:
    fleet = a_fleet(
        steady("cpu"), steady("memory"), steady("over"), cpu={"cpu": 30, "over": 180}, memory={"memory": 10}
    )
    assert points("cost-aware", fleet, costFactor=0) == pytest.approx({"cpu": 70, "memory": 90, "over": 0})


def test_where_all_cost_the_same_all_are_cheapest() -> None:
    fleet = a_fleet(steady("a", price=1), steady("b", price=1), steady("c"))
    assert points("cost-aware", fleet, costFactor=1) == pytest.approx({"a": 100, "b": 100, "c": 50})


def test_a_node_without_cores_has_no_price_per_core() -> None:
    fleet = a_fleet(steady("none", cpu="0", price=1), steady("bad", cpu="many", price=1), steady("a", price=1))
    assert points("cost-aware", fleet, costFactor=1) == pytest.approx({"none": 50, "bad": 50, "a": 100})


def test_cost_aware_refuses_what_costs_more_and_not_what_costs_nobody_knows_what() -> None:
    assert refused("cost-aware", TWO_PRICES, maxPerHour=0.5) == ["dear"]
    assert refused("cost-aware", TWO_PRICES, maxPerHour=0) == ["cheap", "middle", "dear"]


# ---- load-aware

LOADED = a_fleet(
    steady("busy"), steady("quiet"), steady("half"), steady("fresh"), steady("over"),
    cpu={"busy": 90, "quiet": 10, "half": 30, "over": 130},
    memory={"busy": 70, "quiet": 30},
    storage={"busy": 100, "half": 100},
)  # fmt: skip


def test_load_aware_gives_the_mean_of_what_is_free_and_known() -> None:
    expected = {"busy": 20, "quiet": 80, "half": 70, "fresh": UNKNOWN, "over": 0}
    assert points("load-aware", LOADED) == expected


def test_load_aware_counts_resources_as_it_is_told() -> None:
    weighted = points("load-aware", LOADED, cpu=3, memory=1, storage=0)
    assert weighted == {"busy": 15, "quiet": 85, "half": 70, "fresh": UNKNOWN, "over": 0}
    of_storage = points("load-aware", LOADED, cpu=0, memory=0, storage=1)
    assert of_storage == {"busy": 0, "quiet": UNKNOWN, "half": 0, "fresh": UNKNOWN, "over": UNKNOWN}


def test_load_aware_refuses_what_is_used_more_than_the_threshold_in_anything_that_counts() -> None:
    assert refused("load-aware", LOADED, threshold="65%") == ["busy", "over"]
    assert refused("load-aware", LOADED, threshold="30%") == ["busy", "over"]  # at it is not above it
    assert refused("load-aware", LOADED, threshold="29.9%") == ["busy", "quiet", "half", "over"]
    assert refused("load-aware", LOADED, threshold="65%", cpu=0, memory=0, storage=1) == ["busy", "half"]


# ---- spot-risk

RISKY = a_fleet(
    steady("steady", labels={RISK_LABEL: "99"}),
    spot("said", labels={RISK_LABEL: "5"}),
    spot("typed", labels={TYPE_LABELS[0]: "m5.large"}),
    spot("usual"),
    spot("worst", labels={RISK_LABEL: "50"}),
    spot("absurd", labels={RISK_LABEL: "often"}),
)


def test_spot_risk_reads_the_label_then_the_type_then_the_usual() -> None:
    answer = points("spot-risk", RISKY, percent=20, byInstanceType={"m5.large": 10}, worst=25)
    assert answer == pytest.approx({"steady": 100, "said": 80, "typed": 60, "usual": 20, "worst": 0, "absurd": 20})


def test_spot_risk_refuses_what_is_worse_than_the_worst() -> None:
    assert refused("spot-risk", RISKY) == ["worst"]
    assert refused("spot-risk", RISKY, worst=10, byInstanceType={"m5.large": 10}) == ["usual", "worst", "absurd"]


# ---- latency

NEAR = a_fleet(
    steady("near", zone="a", labels={RTT: "2.5"}),
    steady("far", zone="b", labels={RTT: "50"}),
    steady("beyond", zone="c", labels={RTT: "500"}),
    steady("nowhere", labels={RTT: "slow"}),
    latencies={"a": {"a": 0.5, "b": 10, "c": 20.5}},
)


def test_latency_reads_a_label() -> None:
    expected = {"near": 97.5, "far": 50, "beyond": 0, "nowhere": UNKNOWN}
    assert points("latency", NEAR, label=RTT) == expected
    assert refused("latency", NEAR, label=RTT, maxMillis=49) == ["far", "beyond"]


def test_latency_reads_the_matrix_of_the_config_else_the_file() -> None:
    assert points("latency", NEAR, **{"from": "a"}, maxMillis=20) == pytest.approx(
        {"near": 97.5, "far": 50, "beyond": 0, "nowhere": UNKNOWN}
    )
    own = {"matrix": {"a": {"b": 5}}, "from": "a", "maxMillis": 20}
    assert points("latency", NEAR, **own) == {"near": UNKNOWN, "far": 75, "beyond": UNKNOWN, "nowhere": UNKNOWN}
    assert refused("latency", NEAR, **{"from": "a"}, maxMillis=20) == ["beyond"]
    assert set(points("latency", NEAR, **{"from": "z"}).values()) == {UNKNOWN}


def test_latency_measures_between_whatever_the_topology_key_names() -> None:
    fleet = a_fleet(steady("x", labels={"rack": "r1"}), steady("y", zone="r1"))
    config = {"from": "r0", "matrix": {"r0": {"r1": 40}}, "topologyKey": "rack"}
    assert points("latency", fleet, **config) == {"x": 60, "y": UNKNOWN}


def test_a_matrix_file_is_read_and_told_what_is_wrong() -> None:
    assert read_latencies(b"a: {a: 0.2, b: 1}") == {"a": {"a": 0.2, "b": 1.0}}
    assert read_latencies(b"") == {}
    with pytest.raises(InputError) as caught:
        read_latencies(b"a: {b: -1, c: 2}\nb: {a: .inf, b: .nan}")
    assert [problem.partition(":")[0] for problem in caught.value.problems] == ["$.a.b", "$.b.a", "$.b.b"]
    for data in (b"[]", b"a: 1", b"a: {b: near}", b"a: [", b"a: !!bool maybe"):
        with pytest.raises(InputError):
            read_latencies(data)


# ---- label-match

LABELLED = a_fleet(steady("a", zone="z1", labels={"disk": "ssd"}), steady("b", zone="z2"), steady("c"))


def test_label_match_takes_what_the_selector_selects() -> None:
    assert points("label-match", LABELLED, matchLabels={"disk": "ssd"}) == {"a": 100, "b": 0, "c": 0}
    within = [{"key": ZONE, "operator": "In", "values": ["z1", "z2"]}]
    assert points("label-match", LABELLED, matchExpressions=within) == {"a": 100, "b": 100, "c": 0}
    assert refused("label-match", LABELLED, matchExpressions=within) == ["c"]
    assert refused("label-match", LABELLED, matchExpressions=within, matchLabels={"disk": "ssd"}) == ["b", "c"]
    assert refused("label-match", LABELLED, matchExpressions=[{"key": "disk", "operator": "DoesNotExist"}]) == ["a"]


# ---- for all

SENSIBLE: dict[str, dict[str, Any]] = {
    "cost-aware": {"maxPerHour": 1.0},
    "load-aware": {"threshold": "50%"},
    "spot-risk": {},
    "latency": {"label": RTT},
    "label-match": {"matchLabels": {"disk": "ssd"}},
    "packing": {"maxStranded": "30%"},
}


@pytest.mark.parametrize("rule", sorted(BUILT_IN))
def test_a_rule_answers_for_no_nodes_too_and_gives_its_reason(rule: str) -> None:
    assert problems(rule, "filter", SENSIBLE[rule]) == []
    assert points(rule, a_fleet(), **SENSIBLE[rule]) == {}
    assert refused(rule, a_fleet(), **SENSIBLE[rule]) == []
    assert BUILT_IN[rule].reason(read(rule, SENSIBLE[rule])) not in ("", "refused")
    assert all(BUILT_IN[rule].can_be(type_) for type_ in ("filter", "score", "prioritize"))


@pytest.mark.parametrize(
    ("rule", "type_", "config", "places"),
    [
        ("cost-aware", "score", {}, []),
        ("cost-aware", "score", {"costFactor": 1}, []),
        ("cost-aware", "score", {"costFactor": 1.1}, ["costFactor"]),
        ("cost-aware", "score", {"costFactor": -0.1, "maxPerHour": -1}, ["costFactor", "maxPerHour"]),
        ("cost-aware", "filter", {}, ["maxPerHour"]),
        ("cost-aware", "filter", {"maxPerHour": float("nan")}, ["maxPerHour"]),
        ("load-aware", "score", {}, []),
        ("load-aware", "filter", {}, ["threshold"]),
        ("load-aware", "filter", {"threshold": "65"}, ["threshold"]),
        ("load-aware", "filter", {"threshold": "101%"}, ["threshold"]),
        ("load-aware", "filter", {"threshold": "100%"}, []),
        ("load-aware", "score", {"cpu": -1}, ["cpu"]),
        ("load-aware", "score", {"memory": float("inf")}, ["memory"]),
        ("load-aware", "score", {"cpu": 0, "memory": 0}, ["cpu"]),
        ("spot-risk", "filter", {}, []),
        ("spot-risk", "score", {"percent": 101, "worst": 0}, ["percent", "worst"]),
        ("spot-risk", "score", {"byInstanceType": {"m5.large": -1}}, ["byInstanceType.m5.large"]),
        ("latency", "score", {"label": RTT}, []),
        ("latency", "score", {"from": "a"}, []),
        ("latency", "score", {}, ["label"]),
        ("latency", "score", {"label": RTT, "from": "a"}, ["label"]),
        ("latency", "score", {"label": RTT, "maxMillis": 0}, ["maxMillis"]),
        ("latency", "score", {"label": RTT, "maxMillis": float("inf")}, ["maxMillis"]),
        ("latency", "score", {"from": "a", "matrix": {"a": {"b": -1}}}, ["matrix.a.b"]),
        ("label-match", "score", {}, ["matchLabels"]),
        ("label-match", "score", {"matchLabels": {"-": "x"}}, ['matchLabels["-"]']),
        (
            "label-match",
            "filter",
            {"matchExpressions": [{"key": "disk", "operator": "In"}]},
            ["matchExpressions[0].values"],
        ),
    ],
)
def test_a_config_is_told_all_that_is_wrong_and_where(
    rule: str, type_: str, config: dict[str, Any], places: list[str]
) -> None:
    assert [problem.partition(": ")[0] for problem in problems(rule, type_, config)] == places
