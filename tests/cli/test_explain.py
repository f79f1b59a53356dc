"""`wukong explain`: the matrix, the reasons and the fixes, on clusters where every number can be checked by hand."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from cli.conftest import Wukong
from cli.manifests import Manifest, node, pod, write_json, write_yaml

ZONE = "topology.kubernetes.io/zone"
TAINT = {"taints": [{"key": "spot", "value": "true", "effect": "NoSchedule"}]}
CLUSTER: tuple[Manifest, ...] = (
    node("a", cpu="4"),
    node("b", cpu="4"),
    {**node("c", cpu="8"), "spec": TAINT},
    {**node("d", cpu="8"), "spec": {**TAINT, "unschedulable": True}},
    pod("old", cpu="3", on="b"),
    pod("waiting", cpu="2"),
)


@pytest.fixture(autouse=True)
def files(tmp_path: Path) -> None:
    write_json(tmp_path / "cluster.json", *CLUSTER)
    write_yaml(tmp_path / "web.yaml", pod("web", cpu="500m"))
    write_yaml(tmp_path / "stuck.yaml", pod("stuck", cpu="5"))


def test_the_winner_comes_first_with_every_plugins_points(wukong: Wukong) -> None:
    document = wukong("explain", "-s", "cluster.json", "-f", "web.yaml", "-o", "json").document
    assert (document["winner"], document["feasible"], document["nodes"]) == ("a", 2, 4)
    first, second, *refused = document["groups"]
    assert (first["nodes"], first["best"], second["nodes"], second["best"]) == (["a"], True, ["b"], False)
    assert first["total"] == sum(first["points"].values()) > second["total"]
    assert first["points"]["TaintToleration"] == 300
    assert [group["nodes"] for group in refused] == [["c"], ["d"]]
    assert list(refused[1]["refusals"]) == ["NodeUnschedulable", "TaintToleration"]


def test_the_table_marks_the_winner_and_says_why_not(wukong: Wukong) -> None:
    out = wukong("explain", "-s", "cluster.json", "-f", "web.yaml").out
    lines = out.splitlines()
    assert lines[0] == "Pod default/web fits on 2 of 4 nodes and goes to a."
    assert lines[2].split()[:3] == ["NODES", "COUNT", "TOTAL"]
    assert lines[3].startswith("★  a ")
    assert lines[6:] == [
        "NODES  COUNT  WHY NOT",
        "c          1  taint spot=true:NoSchedule",
        "d          1  cordoned; taint spot=true:NoSchedule",
    ]


def test_wide_has_a_cross_for_every_plugin_that_refuses_and_what_each_node_lacks(wukong: Wukong) -> None:
    lines = wukong("explain", "-s", "cluster.json", "-f", "stuck.yaml", "-o", "wide").out.splitlines()
    assert [line.split(maxsplit=4) for line in lines[7:12]] == [
        ["NODE", "CORDON", "TAINT", "FIT", "WHY NOT"],
        ["a", "✓", "✓", "✗", "lacks 1 cpu"],
        ["b", "✓", "✓", "✗", "lacks 4 cpu"],
        ["c", "✓", "✗", "✓", "taint spot=true:NoSchedule"],
        ["d", "✗", "✗", "✓", "cordoned; taint spot=true:NoSchedule"],
    ]


def test_equal_nodes_share_a_line_and_wide_takes_them_apart(wukong: Wukong, tmp_path: Path) -> None:
    write_json(tmp_path / "cluster.json", *(node(f"node-{number}") for number in range(5)))
    grouped = wukong("explain", "-s", "cluster.json", "-f", "web.yaml").out.splitlines()
    assert grouped[0].endswith("goes to node-0, or another of the 5 with the highest total.")
    assert grouped[3].split()[1:8] == ["node-0,", "node-1,", "node-2", "and", "2", "more", "5"]
    wide = wukong("explain", "-s", "cluster.json", "-f", "web.yaml", "-o", "wide").out.splitlines()
    assert [line.split()[1] for line in wide[3:]] == [f"node-{number}" for number in range(5)]


def test_very_many_different_nodes_are_cut_off_with_a_count(wukong: Wukong, tmp_path: Path) -> None:
    write_json(tmp_path / "cluster.json", *(node(f"node-{number:03}", cpu=f"{number + 1}") for number in range(100)))
    lines = wukong("explain", "-s", "cluster.json", "-f", "web.yaml").out.splitlines()
    assert len(lines) < 30
    assert lines[-1].startswith("… and ")
    assert lines[-1].endswith("-o wide shows every node.")


@pytest.mark.slow
@pytest.mark.parametrize("manifest", ["web.yaml", "stuck.yaml"])
def test_five_thousand_nodes_stay_readable(
    manifest: str, wukong: Wukong, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """They differ in zone, load and taint, as in a real cluster. The time it took is shown, not judged."""
    nodes = [
        {**node(f"node-{number:04}", **{ZONE: f"zone-{number % 3}"}), "spec": TAINT if number % 4 == 0 else {}}
        for number in range(5000)
    ]
    pods = [pod(f"old-{number}", cpu=f"{number % 37 * 100}m", on=f"node-{number:04}") for number in range(5000)]
    write_json(tmp_path / "cluster.json", *nodes, *pods)
    begun = time.process_time()
    run = wukong("explain", "-s", "cluster.json", "-f", manifest)
    took = time.process_time() - begun
    record_property("figure", f"wukong explain -f {manifest}, 5,000 nodes, 5,000 pods: {took:.2f} s")
    assert run.code == 0
    assert len(run.out.splitlines()) < 50


def test_a_pod_that_fits_nowhere_gets_a_histogram_and_what_would_help(wukong: Wukong) -> None:
    document = wukong("explain", "-s", "cluster.json", "-f", "stuck.yaml", "-o", "json").document
    assert (document["winner"], document["feasible"]) == (None, 0)
    assert document["histogram"] == [
        {"nodes": 2, "plugin": "NodeResourcesFit", "reason": "Insufficient cpu"},
        {"nodes": 1, "plugin": "NodeUnschedulable", "reason": "node(s) were unschedulable"},
        {"nodes": 1, "plugin": "TaintToleration", "reason": "node(s) had untolerated taint(s)"},
    ]
    assert {"kind": "request", "change": "ask for at most 4 cpu (now 5)", "nodes": 1} in document["fixes"]
    assert {"kind": "tolerate", "change": "tolerate the taint spot=true:NoSchedule", "nodes": 1} in document["fixes"]
    assert document["message"].startswith("0/4 nodes are available: 1 node(s) had untolerated taint(s), ")


def test_the_table_of_a_stuck_pod_ends_with_fixes_and_the_words_of_kube_scheduler(wukong: Wukong) -> None:
    out = wukong("explain", "-s", "cluster.json", "-f", "stuck.yaml").out
    assert out.startswith("Pod default/stuck fits on 0 of 4 nodes.\n\nNODES  REASON")
    assert "\n  - tolerate the taint spot=true:NoSchedule: fits on 1 node\n" in out
    assert out.splitlines()[-1].startswith("kube-scheduler says: 0/4 nodes are available: ")


def test_a_pod_that_waits_in_the_snapshot_is_explained_as_it_is(wukong: Wukong) -> None:
    document = wukong("explain", "-s", "cluster.json", "pod/default/waiting", "-o", "json").document
    assert (document["pod"], document["winner"], document["runsOn"]) == ("Pod default/waiting", "a", None)


def test_a_pod_that_runs_is_placed_again_as_if_it_were_not_there(wukong: Wukong, tmp_path: Path) -> None:
    """On b it takes 3 of 4 cpu: it fits there only because it makes room for itself."""
    document = wukong("explain", "-s", "cluster.json", "pod/default/old", "-o", "json").document
    assert (document["runsOn"], document["feasible"]) == ("b", 2)
    out = wukong("explain", "-s", "cluster.json", "pod/old").out
    assert "It runs on b now." in out
    assert "b (now)" in out


def test_a_pod_that_is_leaving_is_placed_again_like_any_other(wukong: Wukong, tmp_path: Path) -> None:
    leaving = pod("leaving", cpu="3", on="a")
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    write_json(tmp_path / "cluster.json", node("a"), leaving)
    document = wukong("explain", "-s", "cluster.json", "pod/leaving", "-o", "json").document
    assert (document["winner"], document["runsOn"]) == ("a", "a")


def test_preemption_is_told(wukong: Wukong, tmp_path: Path) -> None:
    low = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "low"}, "value": -5}
    write_json(tmp_path / "cluster.json", node("a"), low, pod("old", cpu="3", on="a", priorityClassName="low"))
    write_yaml(tmp_path / "web.yaml", pod("web", cpu="2"))
    run = wukong("explain", "-s", "cluster.json", "-f", "web.yaml")
    assert "It would evict default/old from a to fit." in run.out
    document = wukong("explain", "-s", "cluster.json", "-f", "web.yaml", "-o", "json").document
    preemption = {"node": "a", "victims": ["default/old"], "budgetsBroken": 0, "budgets": []}
    assert document["preemption"] == preemption


def test_the_budget_that_a_preemption_breaks_is_named(wukong: Wukong, tmp_path: Path) -> None:
    low = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "low"}, "value": -5}
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
        "status": {"disruptionsAllowed": 0},
    }
    write_json(tmp_path / "cluster.json", node("a"), low, budget, pod("old", cpu="3", on="a", priorityClassName="low"))
    write_yaml(tmp_path / "web.yaml", pod("web", cpu="2"))
    told = "would evict default/old from a to fit, breaking the disruption budget default/web."
    for verb, limit in (("explain", ()), ("capacity", ("--max", "1"))):
        run = wukong(verb, "-s", "cluster.json", "-f", "web.yaml", *limit)
        assert told in run.out
        document = wukong(verb, "-s", "cluster.json", "-f", "web.yaml", *limit, "-o", "json").document
        assert document["preemption"]["budgets"] == ["default/web"]


def test_yaml_says_the_same_as_json(wukong: Wukong) -> None:
    arguments = ("explain", "-s", "cluster.json", "-f", "stuck.yaml", "-o")
    assert yaml.safe_load(wukong(*arguments, "yaml").out) == wukong(*arguments, "json").document


def test_one_feasible_node_is_chosen_without_points(wukong: Wukong) -> None:
    document = wukong("explain", "-s", "cluster.json", "pod/waiting", "-o", "json").document
    assert document["feasible"] == 1
    assert document["groups"][0]["total"] is None
    assert wukong("explain", "-s", "cluster.json", "pod/waiting").out.startswith(
        "Pod default/waiting fits on 1 of 4 nodes and goes to a.\n"
    )


def test_an_empty_cluster_is_no_crash(wukong: Wukong, tmp_path: Path) -> None:
    write_json(tmp_path / "cluster.json", pod("waiting"))
    out = wukong("explain", "-s", "cluster.json", "-f", "web.yaml").out
    assert out.splitlines()[-1] == "kube-scheduler says: no nodes available to schedule pods"


def test_text_is_printed_as_it_is_and_not_read_as_markup(wukong: Wukong, tmp_path: Path) -> None:
    near = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "none"}}}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [near]}
    write_yaml(tmp_path / "web.yaml", pod("web", affinity={"podAffinity": required}))
    out = wukong("explain", "-s", "cluster.json", "-f", "web.yaml").out
    assert "make required podAffinity[0] (app=none per kubernetes.io/hostname) preferred instead of required" in out
