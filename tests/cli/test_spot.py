"""`wukong spot plan`, `status` and `history` and `wukong get moves`, from a snapshot or a cluster."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cli.api_server import serve
from cli.conftest import Wukong
from cli.manifests import write_json

Json = dict[str, Any]
RECORD = '{"source":"taint x","course":"Reclaim","seen":"2020-11-18T10:00:00Z","deadline":"2020-11-18T10:02:00Z"}'


def a_node(name: str, cpu: str = "2", **annotations: str) -> Json:
    size = {"cpu": cpu, "memory": "8Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}, "annotations": annotations},
        "status": {"capacity": size, "allocatable": size},
    }


def a_pod(name: str, node: str, *, cpu: str = "1", owner: tuple[str, str] | None = None, **spec: Any) -> Json:
    references = [
        {"apiVersion": "apps/v1", "kind": kind, "name": title, "uid": title, "controller": True}
        for kind, title in ([owner] if owner is not None else [])
    ]
    container = {"name": "app", "image": "app", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "uid": name, "ownerReferences": references},
        "spec": {"nodeName": node, "containers": [container], **spec},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }


def a_workload(kind: str, name: str, owner: str = "") -> Json:
    references = [{"apiVersion": "apps/v1", "kind": "Deployment", "name": owner, "uid": owner, "controller": True}]
    meta = {"name": name, "namespace": "shop", "uid": name, "ownerReferences": references if owner else []}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "app", "image": "app"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": meta, "spec": spec}


MOVE: Json = {
    "apiVersion": "placement.novasphere.dev/v1alpha1",
    "kind": "Move",
    "metadata": {"name": "deployment.web", "namespace": "shop", "uid": "m"},
    "spec": {
        "owner": {"kind": "Deployment", "name": "web", "uid": "web"},
        "original": 1,
        "surged": 2,
        "pods": [{"name": "web-1-a", "uid": "web-1-a", "node": "spot-1"}],
    },
    "status": {"phase": "Surging", "message": "replacements start"},
}
WEB = [a_workload("Deployment", "web"), a_workload("ReplicaSet", "web-1", "web")]
PODS = [
    a_pod("web-1-a", "spot-1", owner=("ReplicaSet", "web-1"), priority=10),
    a_pod("db-0", "spot-1", cpu="500m", owner=("StatefulSet", "db")),
    a_pod("agent", "spot-1", cpu="0", owner=("DaemonSet", "agent")),
]


@pytest.fixture
def cluster(tmp_path: Path) -> str:
    objects = [a_node("spot-1"), a_node("od-1"), *WEB, a_workload("StatefulSet", "db"), *PODS]
    write_json(tmp_path / "cluster.json", *objects)
    return "cluster.json"


def test_the_plan_says_how_each_pod_leaves_and_where_it_goes(wukong: Wukong, cluster: str) -> None:
    run = wukong("spot", "plan", "spot-1", "-s", cluster)
    assert run.code == 0, run.err
    assert [line.split() for line in run.out.splitlines()] == [
        ["spot-1:", "2", "pods", "to", "leave,", "none", "without", "a", "place", "to", "go."],
        ["POD", "HOW", "TO", "WHY"],
        ["shop/web-1-a", "replaced", "first", "od-1"],
        ["shop/db-0", "evicted", "od-1"],
    ]


def test_who_fits_nowhere_is_named_with_the_reason_and_ends_with_1(wukong: Wukong, tmp_path: Path) -> None:
    bare = a_pod("bare", "spot-1")
    write_json(tmp_path / "full.json", a_node("spot-1"), a_node("od-1", cpu="500m"), *WEB, PODS[0], bare)
    run = wukong("spot", "plan", "spot-1", "-s", "full.json", "-o", "json")
    assert run.code == 1
    web, left = json.loads(run.out)["items"]
    assert (web["pod"], web["to"], web["isSafe"]) == ("shop/web-1-a", "", False)
    assert "1 Insufficient cpu" in web["reason"]
    assert (left["pod"], left["way"]) == ("shop/bare", "STAYS")


def test_nodes_that_would_go_together_are_no_place_for_each_others_pods(wukong: Wukong, cluster: str) -> None:
    run = wukong("spot", "plan", "spot-1", "od-1", "-s", cluster, "-o", "json")
    assert run.code == 1
    assert [item["to"] for item in json.loads(run.out)["items"]] == ["", ""]


def test_a_cascade_is_told(wukong: Wukong, tmp_path: Path) -> None:
    low = a_pod("low-0", "od-1", cpu="2", owner=("StatefulSet", "low"), priority=1)
    write_json(tmp_path / "tight.json", a_node("spot-1"), a_node("od-1"), *WEB, PODS[0], low)
    run = wukong("spot", "plan", "spot-1", "-s", "tight.json", "-o", "wide")
    assert run.code == 1
    assert "would preempt shop/low-0; no node has room for shop/low-0 then" in run.out


def test_a_node_that_is_not_there_is_an_error_with_the_nearest_name(wukong: Wukong, cluster: str) -> None:
    run = wukong("spot", "plan", "spot-11", "-s", cluster)
    assert run.code == 2
    assert 'no node spot-11 there. Did you mean "spot-1"?' in run.err


def test_the_status_names_leaving_nodes_and_moves(wukong: Wukong, tmp_path: Path) -> None:
    node = a_node("spot-1", **{"placement.novasphere.dev/leaving": RECORD})
    with serve(tmp_path, [node, *PODS, MOVE]) as kubeconfig:
        run = wukong("spot", "status", "--kubeconfig", str(kubeconfig))
        document = json.loads(wukong("spot", "status", "--kubeconfig", str(kubeconfig), "-o", "json").out)
    lines = [line.split() for line in run.out.splitlines() if line]
    assert lines[:2] == [
        ["NODE", "COURSE", "LEFT", "PODS", "SOURCE"],
        ["spot-1", "Reclaim", "0s", "2", "taint", "x"],
    ]
    assert lines[3][:6] == ["shop", "deployment.web", "1→2", "1", "spot-1", "Surging"]
    assert document["nodes"][0]["deadline"] == "2020-11-18T10:02:00Z"
    assert document["moves"][0]["surged"] == 2


@pytest.mark.slow
def test_where_nothing_leaves_that_is_said(wukong: Wukong, tmp_path: Path) -> None:
    with serve(tmp_path, [a_node("spot-1")]) as kubeconfig:
        assert wukong("spot", "status", "--kubeconfig", str(kubeconfig)).out == "No node leaves.\n"


@pytest.mark.slow
def test_the_plan_of_a_cluster_knows_autoscalers_and_quotas(wukong: Wukong, tmp_path: Path) -> None:
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "few", "namespace": "shop"},
        "status": {"hard": {"pods": "2"}, "used": {"pods": "2"}},
    }
    with serve(tmp_path, [a_node("spot-1"), a_node("od-1"), *WEB, PODS[0], quota]) as kubeconfig:
        run = wukong("spot", "plan", "spot-1", "--kubeconfig", str(kubeconfig), "-o", "json")
    (item,) = json.loads(run.out)["items"]
    assert (item["way"], item["to"]) == ("EVICTED", "od-1")
    assert "ResourceQuota few has no room" in item["reason"]


def test_moves_are_shown_like_other_kinds(wukong: Wukong, tmp_path: Path) -> None:
    with serve(tmp_path, [MOVE]) as kubeconfig:
        where = ("--kubeconfig", str(kubeconfig))
        rows = wukong("get", "moves", "-n", "shop", *where).out.splitlines()
        names = wukong("get", "moves", "-A", "-o", "name", *where).out
        missing = wukong("get", "moves", "deployment.wep", "-n", "shop", *where)
    assert rows[0].split() == ["MOVE", "REPLICAS", "PODS", "FROM", "PHASE", "MESSAGE"]
    assert rows[1].split()[0] == "deployment.web"
    assert names == "move.placement.novasphere.dev/deployment.web\n"
    assert missing.code == 2
    assert 'Did you mean "deployment.web"?' in missing.err


def test_moves_are_read_from_a_cluster_only(wukong: Wukong, cluster: str) -> None:
    run = wukong("get", "moves", "-A", "-s", cluster)
    assert run.code == 2
    assert "Moves are read from a cluster only" in run.err


def a_notice(node: str, **status: Any) -> Json:
    return {
        "apiVersion": "placement.novasphere.dev/v1alpha1",
        "kind": "NodeNotice",
        "metadata": {"name": f"{node}.1", "uid": node},
        "spec": {
            "node": node,
            "uid": node,
            "source": "taint x",
            "course": "Reclaim",
            "seen": "2026-11-18T10:00:00Z",
            "deadline": "2026-11-18T10:02:00Z",
        },
        "status": status,
    }


def a_noticed_pod(name: str, way: str, second: int) -> Json:
    at = f"2026-11-18T10:00:{second:02}Z"
    return {"namespace": "shop", "name": name, "uid": name, "workload": "StatefulSet/db", "way": way, "at": at}


NOTICES = [
    a_notice(
        "spot-1",
        phase="Finished",
        outcome="Gone",
        emptied="2026-11-18T10:00:43Z",
        total=2,
        shortSeconds=61,
        pods=[a_noticed_pod("db-0", "evicted", 2), a_noticed_pod("web-1", "replaced", 43)],
        shortages=[{"namespace": "shop", "workload": "StatefulSet/db", "seconds": 61}],
    ),
    a_notice("spot-2", phase="Leaving", total=2, pods=[a_noticed_pod("db-1", "lost", 9), {"name": "db-2"}], lost=1),
]


@pytest.mark.slow
def test_the_history_says_how_pods_left_and_for_how_long_workloads_were_short(wukong: Wukong, tmp_path: Path) -> None:
    with serve(tmp_path, NOTICES) as kubeconfig:
        where = ("--kubeconfig", str(kubeconfig))
        lines = wukong("spot", "history", "-o", "wide", *where).out.splitlines()
        document = json.loads(wukong("spot", "history", "-o", "json", *where).out)
        pods = wukong("spot", "history", "spot-1", *where).out.splitlines()
    assert lines[1].split()[1:9] == ["spot-1", "Reclaim", "120s", "2", "1", "replaced,", "1", "evicted"]
    assert lines[1].split()[9:12] == ["43s", "61s", "Gone"]
    assert "1 lost, 1 still there" in lines[2]
    assert lines[-1] == "2 notices: 2 pods moved, 1 lost, 61 replica-seconds short."
    first, second = document["items"]
    assert (first["replaced"], first["evicted"], first["shortSeconds"], first["outcome"]) == (1, 1, 61, "Gone")
    assert (second["node"], second["lost"], second["deadline"]) == ("spot-2", 1, "2026-11-18T10:02:00Z")
    assert pods[2].split() == ["shop/db-0", "StatefulSet/db", "evicted", "2s"]
    assert pods[-1] == "shop/StatefulSet/db: short by 61 replica-seconds."


@pytest.mark.slow
def test_a_node_without_a_notice_is_an_error_and_an_empty_history_is_not(wukong: Wukong, tmp_path: Path) -> None:
    with serve(tmp_path, NOTICES) as kubeconfig:
        run = wukong("spot", "history", "spot-11", "--kubeconfig", str(kubeconfig))
    assert run.code == 2
    assert 'no notice of a node spot-11 is known. Did you mean "spot-1"?' in run.err
    with serve(tmp_path, []) as kubeconfig:
        run = wukong("spot", "history", "--kubeconfig", str(kubeconfig))
    assert (run.code, run.out) == (0, "No node has had notice.\n")
