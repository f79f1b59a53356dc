"""`wukong explain` with policies: which holds, whom it refuses, what it adds; small enough to check by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.conftest import Run, Wukong
from cli.manifests import Manifest, node, pod, write_json, write_yaml

SPOT = {"node.kubernetes.io/capacity": "spot"}
TYPE = "node.kubernetes.io/instance-type"
USAGE = "usage.novasphere.dev"
API = "placement.novasphere.dev/v1alpha1"
PRICES = "asOf: 2026-11-01\nprices: [{instanceType: big, perHour: 0.4}, {instanceType: small, perHour: 0.1}]\n"


def policy(name: str = "web", kind: str = "PlacementPolicy", **spec: Any) -> Manifest:
    namespace = {"namespace": "default"} if kind == "PlacementPolicy" else {}
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name, **namespace}, "spec": spec}


def strategy(word: str, **more: Any) -> Manifest:
    return policy(capacity={"strategy": word}, **more)


def scheduling(**policies: Any) -> Manifest:
    return {"scheduling": {"schedulingPolicy": policies}}


def rule(name: str, type_: str = "score", weight: int | None = None, **config: Any) -> Manifest:
    counted = {} if weight is None else {"weight": weight}
    return {"name": name, "type": type_, **counted, "config": config}


NODES = (
    node("od-1"),
    node("od-2"),
    node("spot-1", **SPOT),
    node("spot-2", **SPOT),
)


@pytest.fixture(autouse=True)
def files(tmp_path: Path) -> None:
    write_json(tmp_path / "cluster.json", *NODES)
    write_yaml(tmp_path / "web.yaml", pod("web", cpu="500m"))
    (tmp_path / "prices.yaml").write_text(PRICES, "utf-8")


def explain(wukong: Wukong, *policies: Manifest, more: tuple[object, ...] = ()) -> Any:
    """The document for web.yaml on cluster.json by these policies."""
    run = ask(wukong, *policies, more=(*more, "-o", "json"))
    assert run.code == 0, run.err
    return run.document


def ask(wukong: Wukong, *policies: Manifest, more: tuple[object, ...] = ()) -> Run:
    write_yaml(Path("policy.yaml"), *policies)
    return wukong("explain", "-s", "cluster.json", "-f", "web.yaml", "--policy", "policy.yaml", *more)


def fitting(document: Any) -> list[str]:
    return sorted(name for group in document["groups"] if group["fits"] for name in group["nodes"])


def refusals(document: Any) -> dict[str, str]:
    """Node → why the extender refuses it."""
    return {
        name: reason
        for group in document["groups"]
        for reason in group["refusals"].get("Extender", ())
        for name in group["nodes"]
    }


def points(document: Any) -> dict[str, int]:
    """Node → what the extender adds."""
    return {
        name: group["points"]["Extender"]
        for group in document["groups"]
        if "Extender" in group["points"]
        for name in group["nodes"]
    }


# Strategies --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "nodes_kept"),
    [
        ("spot-first", ["spot-1", "spot-2"]),
        ("spot-only", ["spot-1", "spot-2"]),
        ("on-demand-first", ["od-1", "od-2"]),
        ("on-demand-only", ["od-1", "od-2"]),
        ("spot-preferred", ["od-1", "od-2", "spot-1", "spot-2"]),
    ],
)
def test_each_strategy_keeps_its_nodes(word: str, nodes_kept: list[str], wukong: Wukong) -> None:
    document = explain(wukong, strategy(word))
    assert fitting(document) == nodes_kept
    assert document["policy"]["name"] == "PlacementPolicy default/web"
    assert document["policy"]["strategy"] == word
    assert not document["policy"]["fallback"]


def test_the_scheduler_alone_would_have_gone_elsewhere(wukong: Wukong) -> None:
    document = explain(wukong, strategy("spot-first"))
    assert (document["winner"], document["policy"]["winnerWithout"]) == ("spot-1", "od-1")
    assert "Without the extender it would go to od-1." in ask(wukong, strategy("spot-first")).out


def test_spot_preferred_adds_points_instead_of_refusing(wukong: Wukong) -> None:
    document = explain(wukong, strategy("spot-preferred"))
    assert points(document) == {"spot-1": 500, "spot-2": 500, "od-1": 0, "od-2": 0}
    assert document["weights"]["Extender"] == document["policy"]["extenderWeight"] == 5
    first = document["groups"][0]
    assert first["total"] == sum(first["points"].values())


@pytest.mark.parametrize("word", ["spot-first", "on-demand-first"])
def test_when_none_of_the_wanted_is_left_the_other_is_taken_and_said(word: str, wukong: Wukong, tmp_path: Path) -> None:
    left = "od" if word == "spot-first" else "spot"
    write_json(tmp_path / "cluster.json", *(entry for entry in NODES if entry["metadata"]["name"].startswith(left)))
    document = explain(wukong, strategy(word))
    assert document["feasible"] == 2
    assert document["policy"]["fallback"]
    wanted, other = ("spot", "on-demand") if left == "od" else ("on-demand", "spot")
    message = f"No {wanted} node is left for {word}; using {other} (PlacementPolicy default/web)."
    assert message in document["policy"]["notes"]
    assert f"Note: {message}" in ask(wukong, strategy(word)).out


def test_a_spot_node_that_is_full_is_none_that_is_left(wukong: Wukong, tmp_path: Path) -> None:
    """The extender sees only nodes that passed the scheduler's own filters."""
    full = [pod(f"old-{number}", cpu="4", on=f"spot-{number}") for number in (1, 2)]
    write_json(tmp_path / "cluster.json", *NODES, *full)
    document = explain(wukong, strategy("spot-first"))
    assert fitting(document) == ["od-1", "od-2"]
    assert (document["policy"]["fallback"], document["policy"]["offered"]) == (True, 2)


def make_urgent(tmp_path: Path) -> None:
    """The pod gets the priority 1000."""
    urgent = {"kind": "PriorityClass", "apiVersion": "scheduling.k8s.io/v1", "metadata": {"name": "urgent"}}
    write_json(tmp_path / "cluster.json", *NODES, {**urgent, "value": 1000})
    write_yaml(tmp_path / "web.yaml", pod("web", priorityClassName="urgent"))


def test_a_critical_pod_goes_on_demand_first(wukong: Wukong, tmp_path: Path) -> None:
    make_urgent(tmp_path)
    document = explain(wukong, strategy("spot-first"))
    assert fitting(document) == ["od-1", "od-2"]
    report = document["policy"]
    assert (report["critical"], report["ownStrategy"], report["strategy"]) == (True, "spot-first", "on-demand-first")
    out = ask(wukong, strategy("spot-first")).out
    assert "Critical, its priority 1000 being 1000 or more: on-demand-first instead of spot-first." in out


def test_what_is_critical_can_be_said_and_the_policys_priority_counts_first(wukong: Wukong, tmp_path: Path) -> None:
    make_urgent(tmp_path)
    assert not explain(wukong, strategy("spot-first"), more=("--critical-priority", 1001))["policy"]["critical"]
    assert not explain(wukong, strategy("spot-first", **scheduling(priority=7)))["policy"]["critical"]
    assert not explain(wukong, strategy("spot-only"))["policy"]["critical"]


# Refusing ----------------------------------------------------------------------------------------------------------


def test_floors_refuse_nodes_with_too_little_room(wukong: Wukong, tmp_path: Path) -> None:
    write_json(tmp_path / "cluster.json", *NODES, pod("old", cpu="2", on="od-1"))
    floor = {"resourceAffinity": {"requiredResources": [{"resourceType": "cpu", "minAvailable": "3"}]}}
    document = explain(wukong, policy(scheduling=floor))
    assert refusals(document) == {"od-1": "less than cpu 3 free (PlacementPolicy default/web)"}


def test_the_pod_that_is_placed_again_does_not_stand_in_its_own_way(wukong: Wukong, tmp_path: Path) -> None:
    write_json(tmp_path / "cluster.json", *NODES, pod("old", cpu="2", on="od-1"))
    floor = {"resourceAffinity": {"requiredResources": [{"resourceType": "cpu", "minAvailable": "3"}]}}
    write_yaml(tmp_path / "policy.yaml", policy(scheduling=floor))
    run = wukong("explain", "-s", "cluster.json", "pod/default/old", "--policy", "policy.yaml", "-o", "json")
    assert refusals(run.document) == {}


def test_a_leaving_node_is_refused_whatever_the_policy(wukong: Wukong, tmp_path: Path) -> None:
    noticed = node("spot-0", **SPOT)
    noticed["metadata"]["annotations"] = {"placement.novasphere.dev/notice": "soon"}
    write_json(tmp_path / "cluster.json", *NODES, noticed)
    why = "node is leaving: annotation placement.novasphere.dev/notice"
    assert refusals(explain(wukong, strategy("spot-preferred"))) == {"spot-0": why}
    assert refusals(explain(wukong, strategy("spot-preferred", mode="Observe"))) == {"spot-0": why}


def test_a_filter_rule_refuses_and_is_named(wukong: Wukong, tmp_path: Path) -> None:
    write_json(tmp_path / "cluster.json", node("dear", **{TYPE: "big"}), node("cheap", **{TYPE: "small"}), node("odd"))
    dear = policy(**scheduling(rules=[rule("cost-aware", "filter", maxPerHour=0.2)]))
    document = explain(wukong, dear, more=("--prices", "prices.yaml"))
    assert refusals(document) == {"dear": "rule cost-aware: costs more than 0.2 per hour (PlacementPolicy default/web)"}


def test_one_node_left_is_chosen_without_points(wukong: Wukong, tmp_path: Path) -> None:
    write_json(tmp_path / "cluster.json", *NODES[:3])
    document = explain(wukong, strategy("spot-first"))
    assert (document["winner"], document["groups"][0]["total"], points(document)) == ("spot-1", None, {})


def test_the_scores_are_worked_out_among_the_nodes_the_extender_leaves(wukong: Wukong, tmp_path: Path) -> None:
    """od-1 alone matches the preference: without it nobody does, and nobody gets its 200 points."""
    write_json(tmp_path / "cluster.json", node("od-1", disk="fast"), *NODES[1:])
    fast = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["fast"]}]}
    rather = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": fast}]}
    write_yaml(tmp_path / "web.yaml", pod("web", affinity={"nodeAffinity": rather}))
    document = explain(wukong, strategy("spot-first"))
    assert {group["points"]["NodeAffinity"] for group in document["groups"] if group["fits"]} == {0}


# Nowhere to go -----------------------------------------------------------------------------------------------------


def test_when_everything_is_refused_the_words_are_kube_schedulers(wukong: Wukong, tmp_path: Path) -> None:
    write_json(tmp_path / "cluster.json", *NODES[:2])
    document = explain(wukong, strategy("spot-only"))
    assert (document["winner"], document["feasible"]) == (None, 0)
    assert document["message"] == (
        "0/2 nodes are available: 2 not spot: spot-only (PlacementPolicy default/web). no new claims to deallocate, "
        "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
    )
    reason = "not spot: spot-only (PlacementPolicy default/web)"
    assert document["histogram"] == [{"nodes": 2, "plugin": "Extender", "reason": reason}]
    assert document["fixes"] == []


def test_what_would_help_must_please_the_extender_too(wukong: Wukong, tmp_path: Path) -> None:
    """Tolerating the taint opens od-2 and spot-1, of which spot-only leaves one; more on-demand nodes are no help."""
    taint = {"taints": [{"key": "gpu", "effect": "NoSchedule"}]}
    write_json(tmp_path / "cluster.json", NODES[0], {**NODES[1], "spec": taint}, {**NODES[2], "spec": taint})
    document = explain(wukong, strategy("spot-only"))
    assert document["fixes"] == [{"kind": "tolerate", "change": "tolerate the taint gpu:NoSchedule", "nodes": 1}]


def test_one_more_node_like_a_spot_node_helps_where_spot_is_wanted(wukong: Wukong, tmp_path: Path) -> None:
    write_json(tmp_path / "cluster.json", *NODES[:3], pod("old", cpu="4", on="spot-1"))
    fixes = explain(wukong, strategy("spot-only"))["fixes"]
    assert {"kind": "node", "change": "add one node like spot-1", "nodes": 1} in fixes
    assert "add one node like od-1" not in {fix["change"] for fix in fixes}


LOW = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "low"}, "value": -5}


def full_cluster(tmp_path: Path) -> None:
    """On every node a pod of low priority is in the way."""
    names = [entry["metadata"]["name"] for entry in NODES]
    olds = [pod(f"old-{name}", cpu="4", on=name) for name in names]
    for old in olds:
        old["spec"]["priorityClassName"] = "low"
    write_json(tmp_path / "cluster.json", *NODES, LOW, *olds)


def test_preemption_asks_the_extender_which_nodes_it_may_free(wukong: Wukong, tmp_path: Path) -> None:
    full_cluster(tmp_path)
    document = explain(wukong, strategy("spot-only"))
    unbroken = {"budgetsBroken": 0, "budgets": []}
    assert document["preemption"] == {"node": "spot-1", "victims": ["default/old-spot-1"], **unbroken}


def test_a_policy_that_never_preempts_leaves_no_candidate(wukong: Wukong, tmp_path: Path) -> None:
    full_cluster(tmp_path)
    document = explain(wukong, policy(**scheduling(preemptionPolicy="Never")))
    assert document["preemption"] is None
    assert document["message"].endswith("preemption: no candidate node for preemption")


def test_nobody_is_preempted_for_a_floor(wukong: Wukong, tmp_path: Path) -> None:
    """kube-scheduler does not know the floor: it would find nobody to evict, and stumble."""
    old = pod("old", cpu="2", on="od-1")
    old["spec"]["priorityClassName"] = "low"
    write_json(tmp_path / "cluster.json", NODES[0], LOW, old)
    floor = {"resourceAffinity": {"requiredResources": [{"resourceType": "cpu", "minAvailable": "3"}]}}
    document = explain(wukong, policy(scheduling=floor))
    assert document["message"] == (
        "0/1 nodes are available: 1 less than cpu 3 free (PlacementPolicy default/web). "
        "no new claims to deallocate, preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
    )


# Points ------------------------------------------------------------------------------------------------------------


def priced(tmp_path: Path) -> None:
    """Equal nodes but for price and usage: quiet and dear, busy and cheap, and one of which nobody knows anything."""
    write_json(
        tmp_path / "cluster.json",
        node("busy", **{TYPE: "small", f"{USAGE}/cpu": "80", f"{USAGE}/memory": "80"}),
        node("quiet", **{TYPE: "big", f"{USAGE}/cpu": "20", f"{USAGE}/memory": "20"}),
        node("odd"),
    )


def test_a_score_rule_is_broken_down_by_node(wukong: Wukong, tmp_path: Path) -> None:
    priced(tmp_path)
    rules = [rule("cost-aware", weight=50, costFactor=0.25)]
    document = explain(wukong, policy(**scheduling(rules=rules)), more=("--prices", "prices.yaml"))
    (term,) = document["policy"]["terms"]
    # 100 · (0.75 · quietness + 0.25 · cheapness)
    assert term == {"name": "cost-aware", "weight": 50, "points": {"busy": 40.0, "quiet": 60.0, "odd": 50.0}}
    assert document["policy"]["scores"] == {"busy": 4, "quiet": 6, "odd": 5}
    assert points(document) == {"busy": 200, "quiet": 300, "odd": 250}


def test_terms_add_up_by_their_weights(wukong: Wukong, tmp_path: Path) -> None:
    priced(tmp_path)
    preferred = {"preferredCPU": {"weight": 30, "threshold": "40%"}}
    rules = [rule("label-match", weight=10, matchLabels={TYPE: "small"})]
    both = {"resourceAffinity": preferred, "schedulingPolicy": {"rules": rules}}
    report = explain(wukong, policy(scheduling=both))["policy"]
    usage, label = report["terms"]
    assert (usage["name"], usage["weight"], label["name"], label["weight"]) == ("preferred cpu", 30, "label-match", 10)
    assert usage["points"] == {"busy": 8.33, "quiet": 75.0, "odd": 50.0}  # 25 · 20 / 60; 100 − 50 · 20 / 40
    assert report["points"] == {"busy": 31.25, "quiet": 56.25, "odd": 37.5}
    assert report["scores"] == {"busy": 3, "quiet": 6, "odd": 4}


def test_the_table_has_a_line_for_each_term_and_the_formula(wukong: Wukong, tmp_path: Path) -> None:
    priced(tmp_path)
    rules = [rule("cost-aware", weight=50, costFactor=0.25), rule("label-match", "prioritize", matchLabels={"a": "b"})]
    out = ask(wukong, policy(**scheduling(rules=rules)), more=("--prices", "prices.yaml", "--extender-weight", 7)).out
    lines = [line.split() for line in out.splitlines()]
    assert ["TERM", "WEIGHT", "quiet", "odd", "busy"] in lines
    assert ["cost-aware", "50", "60.0", "50.0", "40.0"] in lines
    assert ["score", "6", "5", "4"] in lines
    assert ["EXT", "7", "420", "350", "280"] in lines
    assert "score = points / 10, rounded half up; EXT = score × 7 × 10." in out
    assert "Of the nodes tied at the best score, those that label-match ranks lower get one less." in out
    assert "EXT" in lines[2]


def test_unknown_usage_is_neutral_and_said(wukong: Wukong) -> None:
    preferred = {"resourceAffinity": {"preferredMemory": {"weight": 30, "threshold": "40%"}}}
    report = explain(wukong, policy(scheduling=preferred))["policy"]
    assert set(report["points"].values()) == {50.0}
    assert report["notes"] == ["The usage of 4 nodes is not known, which counts as neutral: neither good nor bad."]
    assert explain(wukong, strategy("spot-first"))["policy"]["notes"] == []


def test_prometheus_must_answer_if_it_is_named(wukong: Wukong) -> None:
    run = ask(wukong, strategy("spot-first"), more=("--prometheus", "http://127.0.0.1:1"))
    assert (run.code, run.out) == (3, "")
    assert "Prometheus at http://127.0.0.1:1 did not answer" in run.err
    run = ask(wukong, strategy("spot-first"), more=("--prometheus", "prometheus:9090"))
    assert (run.code, run.out) == (2, "")
    assert "--prometheus: expected an address such as http://prometheus:9090" in run.err


def test_prices_nobody_gave_are_said_to_be_list_prices_of_a_day(wukong: Wukong, tmp_path: Path) -> None:
    label = {TYPE: "m5.large", "placement.novasphere.dev/price-per-hour": "0.03"}
    nodes = (node("listed", **{TYPE: "m5.large"}, **SPOT), node("labelled", **label), node("odd"))
    write_json(tmp_path / "cluster.json", *nodes)
    cost = policy(**scheduling(rules=[rule("cost-aware", costFactor=1)]))
    report = explain(wukong, cost)["policy"]
    # per core: 0.35 · 0.096 / 4 is more than 0.03 / 4
    assert report["points"] == {"listed": 0.0, "labelled": 100.0, "odd": 50.0}
    assert report["notes"][1:] == [
        "The price of 1 node is not known, which counts as neutral, too.",
        "Of 1 node the built-in list prices of 2025-06-01 count, spot at 35% of on-demand: --prices has yours.",
    ]
    (tmp_path / "own.yaml").write_text("prices: [{instanceType: m5.large, perHour: 0.01}]\nnodes: {odd: 1}", "utf-8")
    assert len(explain(wukong, cost, more=("--prices", "own.yaml"))["policy"]["notes"]) == 1


def test_latencies_come_from_a_file(wukong: Wukong, tmp_path: Path) -> None:
    zone = "topology.kubernetes.io/zone"
    write_json(tmp_path / "cluster.json", node("near", **{zone: "a"}), node("far", **{zone: "b"}))
    (tmp_path / "ms.yaml").write_text("office: {a: 10, b: 90}\n", "utf-8")
    near = policy(**scheduling(rules=[{"name": "latency", "type": "score", "config": {"from": "office"}}]))
    assert points(explain(wukong, near, more=("--latencies", "ms.yaml"))) == {"near": 450, "far": 50}


# Whose policy ------------------------------------------------------------------------------------------------------


def test_observing_refuses_nothing_and_says_what_it_would_have(wukong: Wukong) -> None:
    document = explain(wukong, strategy("spot-first", mode="Observe"))
    assert fitting(document) == ["od-1", "od-2", "spot-1", "spot-2"]
    report = document["policy"]
    reason = "not spot: spot-first, and spot nodes are left (PlacementPolicy default/web)"
    assert (report["mode"], report["observed"], set(points(document).values())) == ("Observe", {reason: 2}, {0})
    out = ask(wukong, strategy("spot-first", mode="Observe")).out
    assert "holds: spot-first, but only observes: nothing is refused, no points are added." in out
    assert "observes only: it would have kept 2 of 4 nodes: 2 not spot" in out


def test_of_policies_just_as_specific_the_first_by_name_holds_and_the_others_are_named(wukong: Wukong) -> None:
    mine = {"selector": {"matchLabels": {"app": "web"}}}
    several = [strategy("spot-first", **mine), strategy("on-demand-first", **mine), strategy("spot-only")]
    for number, name in enumerate(("b", "a", "c")):
        several[number]["metadata"]["name"] = name
    report = explain(wukong, *several)["policy"]
    assert (report["name"], report["justAsSpecific"]) == ("PlacementPolicy default/a", ["PlacementPolicy default/b"])
    assert report["notes"][0] == (
        "PlacementPolicy default/a holds, the first by name; just as specific: PlacementPolicy default/b."
    )


def test_a_pod_no_policy_selects_is_placed_as_the_extender_does_by_itself(wukong: Wukong) -> None:
    other = strategy("spot-only", selector={"matchLabels": {"app": "db"}})
    assert explain(wukong, other)["policy"]["name"] == "no policy"
    assert "No policy selects it: spot-first, as the extender has it for such pods." in ask(wukong, other).out


def test_what_holds_without_a_policy_can_be_said(wukong: Wukong) -> None:
    other = strategy("spot-only", selector={"matchLabels": {"app": "db"}})
    document = explain(wukong, other, more=("--default-strategy", "on-demand-only"))
    assert fitting(document) == ["od-1", "od-2"]
    assert explain(wukong, other, more=("--default-strategy", "none"))["feasible"] == 4


def test_the_default_of_the_cluster_holds_where_no_other_does(wukong: Wukong) -> None:
    default = policy("default", "ClusterPlacementPolicy", capacity={"strategy": "on-demand-only"})
    assert explain(wukong, default)["policy"]["name"] == "ClusterPlacementPolicy default"


def test_several_files_and_several_documents_are_taken_together(wukong: Wukong, tmp_path: Path) -> None:
    write_yaml(tmp_path / "more.yaml", strategy("spot-only", selector={"matchLabels": {"app": "web"}}))
    default = policy("default", "ClusterPlacementPolicy", capacity={"strategy": "on-demand-only"})
    other = policy("other", capacity={"strategy": "on-demand-only"})
    assert explain(wukong, default, other, more=("--policy", "more.yaml"))["policy"]["strategy"] == "spot-only"


def test_the_policies_of_the_snapshot_hold_and_a_bad_one_is_noted_and_left_out(wukong: Wukong, tmp_path: Path) -> None:
    good, bad = strategy("on-demand-only"), strategy("spot-frist", selector={"matchLabels": {"app": "web"}})
    bad["metadata"]["name"] = "bad"
    write_json(tmp_path / "cluster.json", *NODES, good, bad)
    run = wukong("explain", "-s", "cluster.json", "-f", "web.yaml", "-o", "json")
    assert run.document["policy"]["name"] == "PlacementPolicy default/web"
    (noted,) = [line for line in run.notes if "PlacementPolicy" in line]
    assert noted.startswith("note: PlacementPolicy default/bad is left out, as the extender leaves it out: $.spec.cap")
    assert 'Did you mean "spot-first"?' in noted


def capacity(wukong: Wukong, *more: object) -> Any:
    return wukong("capacity", "-s", "cluster.json", "-f", "web.yaml", *more, "-o", "json").document


def test_capacity_counts_by_the_policies_of_the_cluster_or_of_a_file(wukong: Wukong, tmp_path: Path) -> None:
    assert capacity(wukong)["perNode"].keys() == {"od-1", "od-2", "spot-1", "spot-2"}
    write_json(tmp_path / "cluster.json", *NODES, strategy("on-demand-only"))
    document = capacity(wukong)
    assert document["perNode"].keys() == {"od-1", "od-2"}
    assert document["fits"] == sum(document["perNode"].values()) == capacity(wukong, "--max", 100)["fits"]
    write_yaml(tmp_path / "policy.yaml", strategy("spot-only"))
    assert capacity(wukong, "--policy", "policy.yaml")["perNode"].keys() == {"spot-1", "spot-2"}


def test_capacity_asks_the_extender_anew_about_every_copy(wukong: Wukong, tmp_path: Path) -> None:
    """Spot first: the first copies are on spot nodes, those after them fall back; a floor ends it before cpu does."""
    write_yaml(tmp_path / "policy.yaml", strategy("spot-first"))
    everywhere = capacity(wukong)["fits"]
    assert capacity(wukong, "--policy", "policy.yaml")["fits"] == everywhere
    first = capacity(wukong, "--policy", "policy.yaml", "--max", everywhere // 2)
    assert first["perNode"].keys() == {"spot-1", "spot-2"}
    floor = {"resourceAffinity": {"requiredResources": [{"resourceType": "cpu", "minAvailable": "2"}]}}
    write_yaml(tmp_path / "policy.yaml", policy(scheduling=floor))
    document = capacity(wukong, "--policy", "policy.yaml")
    assert 0 < document["fits"] < everywhere
    assert "cpu" in document["reason"]


def test_policies_of_a_file_replace_those_of_the_snapshot(wukong: Wukong, tmp_path: Path) -> None:
    write_json(tmp_path / "cluster.json", *NODES, strategy("on-demand-only"))
    run = ask(wukong, strategy("spot-only"), more=("-o", "json"))
    assert run.document["policy"]["strategy"] == "spot-only"
    assert "note: only --policy counts; the policies of the cluster itself (1) are left aside." in run.notes


# The scheduler's side ----------------------------------------------------------------------------------------------


def test_without_policies_nothing_changes_and_no_extender_is_asked(wukong: Wukong) -> None:
    document = wukong("explain", "-s", "cluster.json", "-f", "web.yaml", "-o", "json").document
    assert document["policy"] is None
    assert "Extender" not in document["weights"]
    assert "EXT" not in wukong("explain", "-s", "cluster.json", "-f", "web.yaml").out


def test_an_extender_can_be_asked_for_without_policies(wukong: Wukong) -> None:
    document = wukong("explain", "-s", "cluster.json", "-f", "web.yaml", "--extender", "-o", "json").document
    assert (document["policy"]["name"], fitting(document)) == ("no policy", ["spot-1", "spot-2"])


CONFIG = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


def configured(**entry: Any) -> tuple[object, ...]:
    write_yaml(Path("config.yaml"), {**CONFIG, "extenders": [{"urlPrefix": "https://wukong:8443", **entry}]})
    return "--scheduler-config", "config.yaml"


def test_the_weight_comes_from_the_schedulers_configuration_unless_it_is_given(wukong: Wukong) -> None:
    verbs = {"filterVerb": "filter", "prioritizeVerb": "prioritize", "weight": 3}
    more = configured(**verbs)
    assert points(explain(wukong, strategy("spot-preferred"), more=more))["spot-1"] == 300
    assert points(explain(wukong, strategy("spot-preferred"), more=(*more, "--extender-weight", 2)))["spot-1"] == 200


def test_an_extender_is_asked_only_what_its_configuration_has_a_verb_for(wukong: Wukong) -> None:
    document = explain(wukong, strategy("spot-only"), more=configured(prioritizeVerb="prioritize", weight=1))
    assert document["feasible"] == 4
    document = explain(wukong, strategy("spot-preferred"), more=configured(filterVerb="filter"))
    assert points(document) == {}


def test_an_extender_of_managed_resources_is_not_asked_about_other_pods(wukong: Wukong) -> None:
    managed = [{"name": "example.com/fpga", "ignoredByScheduler": True}]
    run = ask(wukong, strategy("spot-only"), more=configured(filterVerb="filter", managedResources=managed))
    assert "note: default/web wants none of the extender's managedResources: it is not asked." in run.notes
    assert "fits on 4 of 4 nodes" in run.out


def test_yaml_says_the_same_as_json(wukong: Wukong) -> None:
    out = ask(wukong, strategy("spot-preferred"), more=("-o", "yaml")).out
    assert yaml.safe_load(out) == explain(wukong, strategy("spot-preferred"))


def test_wide_shows_every_node(wukong: Wukong) -> None:
    lines = ask(wukong, strategy("spot-preferred"), more=("-o", "wide")).out.splitlines()
    assert [line.split()[-1] for line in lines[3:7]] == ["500", "500", "0", "0"]


# What is wrong -----------------------------------------------------------------------------------------------------

CPU = {"weight": 50, "threshold": "70%"}
BAD: dict[str, tuple[str | Manifest | list[Manifest], list[str]]] = {
    "an unknown strategy": (
        strategy("spot-frist"),
        ["policy.yaml: PlacementPolicy default/web: $.spec.capacity.strategy: expected", 'Did you mean "spot-first"?'],
    ),
    "a misspelt field": (
        policy(capcity={"strategy": "spot-first"}),
        ['policy.yaml: $.spec.capcity: unknown field. Did you mean "capacity"?'],
    ),
    "a misspelt field deep down": (
        policy(scheduling={"resourceAffinity": {"preferredCpu": CPU}}),
        ['$.spec.scheduling.resourceAffinity.preferredCpu: unknown field. Did you mean "preferredCPU"?'],
    ),
    "a misspelt field of a rule": (
        policy(**scheduling(rules=[{"name": "latency", "type": "score", "confg": {}}])),
        ['$.spec.scheduling.schedulingPolicy.rules[0].confg: unknown field. Did you mean "config"?'],
    ),
    "a misspelt setting": (
        policy(**scheduling(rules=[rule("cost-aware", costFaktor=1)])),
        ['rules[0].config.costFaktor: unknown field. Did you mean "costFactor"?'],
    ),
    "an unknown rule": (
        policy(**scheduling(rules=[rule("cost-awere")])),
        ["rules[0].name: expected a rule that is there", 'Did you mean "cost-aware"?'],
    ),
    "a weight beyond": (
        policy(scheduling={"resourceAffinity": {"preferredCPU": {**CPU, "weight": 101}}}),
        ["preferredCPU.weight: expected a weight from 1 to 100, got 101"],
    ),
    "a number for a text": (
        policy(scheduling={"resourceAffinity": {"preferredCPU": {**CPU, "threshold": 70}}}),
        ["policy.yaml: PlacementPolicy default/web: $.spec.scheduling.resourceAffinity.preferredCPU.threshold: "],
    ),
    "no spec": ({"apiVersion": API, "kind": "PlacementPolicy", "metadata": {"name": "web"}}, ["$.spec: expected"]),
    "no name": (
        {"apiVersion": API, "kind": "PlacementPolicy", "metadata": {}, "spec": {}},
        ["$.metadata.name: expected a name"],
    ),
    "another version": (
        {**policy(), "apiVersion": "placement.novasphere.dev/v1"},
        ["policy.yaml: $.apiVersion: expected placement.novasphere.dev/v1alpha1, got 'placement.novasphere.dev/v1'"],
    ),
    "a misspelt kind": (
        {**policy(), "kind": "PlacmentPolicy"},
        ["$.kind: expected PlacementPolicy or ClusterPlacementPolicy", 'Did you mean "PlacementPolicy"?'],
    ),
    "a pod": (pod(), ["$.kind: expected PlacementPolicy or ClusterPlacementPolicy, got 'Pod'"]),
    "nothing": ("", ["policy.yaml: expected a PlacementPolicy or a ClusterPlacementPolicy, got nothing"]),
    "broken YAML": ("kind: [", ["policy.yaml: broken YAML: line 2"]),
    "no mapping": ("- a\n", ["policy.yaml: expected a Kubernetes object"]),
    "a cluster policy in a namespace": (
        {**policy("x", "ClusterPlacementPolicy"), "metadata": {"name": "x", "namespace": "shop"}},
        ["ClusterPlacementPolicy shop/x: $.metadata.namespace: expected none"],
    ),
    "the same twice": ([strategy("spot-only"), strategy("spot-first")], ["PlacementPolicy default/web is there twice"]),
    "two problems": (
        [strategy("spott-only"), policy("b", mode="Watch", sellector={})],
        [
            "$.spec.capacity.strategy",
            "document 2: $.spec.sellector",
            "PlacementPolicy default/b: $.spec.mode: expected",
        ],
    ),
}


@pytest.mark.parametrize(("content", "parts"), BAD.values(), ids=BAD)
def test_a_bad_policy_file_is_refused_with_place_expectation_and_fix(
    content: str | Manifest | list[Manifest], parts: list[str], wukong: Wukong, tmp_path: Path
) -> None:
    documents = content if isinstance(content, list) else [content]
    text = content if isinstance(content, str) else yaml.safe_dump_all(documents)
    (tmp_path / "policy.yaml").write_text(text, "utf-8")
    run = wukong("explain", "-s", "cluster.json", "-f", "web.yaml", "--policy", "policy.yaml")
    assert (run.code, run.out) == (2, "")
    assert all(line.startswith(("error: ", "note: ")) for line in run.err.splitlines())
    assert [part for part in parts if part not in run.err] == [], run.err


@pytest.mark.parametrize(
    ("option", "text", "message"),
    [
        ("--prices", "prices: [{instanceType: a, perHour: -1}]", "given.yaml: $.prices[0].perHour: expected a price"),
        ("--latencies", "a: {b: -1}", "given.yaml: $.a.b: expected milliseconds"),
        ("--prices", "prcies: []", "given.yaml: $: object contains unknown field prcies"),
    ],
)
def test_bad_prices_and_latencies_are_refused(
    option: str, text: str, message: str, wukong: Wukong, tmp_path: Path
) -> None:
    (tmp_path / "given.yaml").write_text(text, "utf-8")
    run = ask(wukong, strategy("spot-first"), more=(option, "given.yaml"))
    assert run.code == 2
    assert message in run.err


# The scheduling blocks of the design document, word for word, as policies.
SEEDS = [
    """
    resourceAffinity:
      preferredCPU:
        weight: 80
        threshold: "70%"  # 优先选择 CPU 使用率低于 70% 的节点
      preferredMemory:
        weight: 60
        threshold: "80%"  # 优先选择内存使用率低于 80% 的节点
      requiredResources:
      - resourceType: gpu
        minAvailable: "1"
    """,
    """
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
    """,
    """
    schedulingPolicy:
      schedulerName: "gpu-scheduler"  # 使用 GPU 专用调度器
    """,
]


@pytest.mark.parametrize("block", SEEDS)
def test_every_scheduling_block_of_the_design_is_a_policy(block: str, wukong: Wukong, tmp_path: Path) -> None:
    gpu = node("gpu-1")
    gpu["status"]["allocatable"]["nvidia.com/gpu"] = "2"
    write_json(tmp_path / "cluster.json", *NODES, gpu)
    document = explain(wukong, policy(scheduling=yaml.safe_load(block)))
    assert document["policy"]["name"] == "PlacementPolicy default/web"
    if "gpu\n" in block:
        assert fitting(document) == ["gpu-1"]
        assert set(refusals(document).values()) == {"less than gpu 1 free (PlacementPolicy default/web)"}
    else:
        name = yaml.safe_load(block)["schedulingPolicy"]["schedulerName"]
        assert any(f"meant for pods of the scheduler {name}" in text for text in document["policy"]["notes"])


# Wukongs -----------------------------------------------------------------------------------------------------------


def explain_machine(wukong: Wukong, scheduling: Manifest, *more: str) -> Any:
    """The document for a pod of the Wukong default/db with this block, in a cluster that has one busy node."""
    busy = {f"{USAGE}/cpu": "90"}
    machine: Manifest = {
        "apiVersion": "vm.novasphere.dev/v1alpha1",
        "kind": "Wukong",
        "metadata": {"name": "db", "namespace": "default"},
        "spec": {"scheduling": scheduling},
    }
    write_json(Path("cluster.json"), node("od-1", **busy), node("od-2", **{f"{USAGE}/cpu": "10"}), machine)
    launcher = pod("virt-launcher-db", cpu="500m")
    launcher["metadata"]["labels"] = {"wukong.novasphere.dev/name": "db"}
    write_yaml(Path("web.yaml"), launcher)
    run = wukong("explain", "-s", "cluster.json", "-f", "web.yaml", "-o", "json", *more)
    assert run.code == 0, run.err
    return run.document


def test_the_points_of_a_wukong_are_shown_as_those_of_a_policy(wukong: Wukong) -> None:
    block = {"resourceAffinity": {"preferredCPU": {"weight": 80, "threshold": "70%"}}}
    document = explain_machine(wukong, block, "--resource-affinity", "extender")
    assert document["policy"]["name"] == "Wukong default/db"
    assert document["policy"]["terms"] == [
        {"name": "preferred cpu", "weight": 80, "points": {"od-1": 8.33, "od-2": 92.86}}
    ]
    assert points(document) == {"od-1": 50, "od-2": 450}
    assert document["winner"] == "od-2"


def test_the_floor_of_a_wukong_is_explained_by_its_name(wukong: Wukong) -> None:
    block = {"resourceAffinity": {"requiredResources": [{"resourceType": "gpu", "minAvailable": "1"}]}}
    document = explain_machine(wukong, block, "--resource-affinity", "scheduler")
    reason = "less than gpu 1 free (Wukong default/db)"
    assert refusals(document) == {"od-1": reason, "od-2": reason}


def test_by_labels_a_wukong_alone_makes_nobody_ask_an_extender(wukong: Wukong) -> None:
    block = {"resourceAffinity": {"requiredResources": [{"resourceType": "gpu", "minAvailable": "1"}]}}
    assert explain_machine(wukong, block).get("policy") is None
    rules = {"schedulingPolicy": {"rules": [rule("load-aware", weight=5)]}}
    assert explain_machine(wukong, rules)["policy"]["name"] == "Wukong default/db"
