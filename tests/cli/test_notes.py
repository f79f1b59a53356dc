"""What is said beside the result: on stderr, once, and never among what a program reads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.api_server import serve
from cli.conftest import Wukong
from cli.manifests import deployment, node, pod, write_json, write_yaml

ARGUMENTS = ("capacity", "-s", "cluster.json", "-f", "web.yaml")


@pytest.fixture(autouse=True)
def files(tmp_path: Path) -> None:
    write_json(tmp_path / "cluster.json", node("a"), pod("old", on="a"))
    write_yaml(tmp_path / "web.yaml", pod("web"))


def test_what_a_snapshot_lacks_is_said_once(wukong: Wukong) -> None:
    run = wukong(*ARGUMENTS, "-o", "json")
    (lacking,) = [note for note in run.notes if "holds no" in note]
    assert "poddisruptionbudgets" in lacking
    assert "priorityclasses" in lacking
    assert "nodes" not in lacking.replace("cluster.json", "").split(", ")
    json.loads(run.out)  # and nothing of it among the result


def test_the_version_is_guessed_from_most_kubelets_and_the_guess_is_said(wukong: Wukong, tmp_path: Path) -> None:
    nodes = [node("a", kubelet="v1.35.1"), node("b", kubelet="v1.37.0"), node("c", kubelet="v1.37.2-eks-1")]
    write_json(tmp_path / "cluster.json", *nodes)
    (version_note,) = [note for note in wukong(*ARGUMENTS).notes if "decided as in" in note and "Kubernetes" in note]
    assert version_note == "note: decided as in Kubernetes 1.37: the kubelets run 1.37. Choose with --kubernetes."


def test_an_unknown_kubelet_means_the_nearest_version_and_is_said(wukong: Wukong, tmp_path: Path) -> None:
    write_json(tmp_path / "cluster.json", node("a", kubelet="v1.31.4"))
    assert any("1.31, which is not modelled; 1.33 is the nearest" in note for note in wukong(*ARGUMENTS).notes)


def test_nodes_without_a_kubelet_version_are_said_too(wukong: Wukong, tmp_path: Path) -> None:
    write_json(tmp_path / "cluster.json", node("a", kubelet=""))
    assert any("do not say which Kubernetes they run" in note for note in wukong(*ARGUMENTS).notes)


@pytest.mark.slow
def test_the_version_of_a_live_server_decides_whatever_its_kubelets_run(wukong: Wukong, tmp_path: Path) -> None:
    """1.35 tells why no claims were deallocated, 1.37 does not."""
    with serve(tmp_path, [node("a", kubelet="v1.37.0")]) as kubeconfig:  # which says that it is 1.35
        run = wukong("capacity", "--kubeconfig", kubeconfig, "-f", "web.yaml", "-o", "json")
    assert "no new claims" in run.document["reason"]
    assert not any("Kubernetes" in note for note in run.notes)


def test_that_a_change_is_played_as_in_another_version_is_said(wukong: Wukong, tmp_path: Path) -> None:
    for verb in (("plan", "--seeds", "1"), ("sim", "run")):
        for kubelet, notes in (
            ("v1.33.4", ["note: played as in Kubernetes 1.35: the kubelets run 1.33."]),
            ("v1.35.1", []),
        ):
            write_json(tmp_path / "cluster.json", node("a", kubelet=kubelet))
            run = wukong(*verb, *ARGUMENTS[1:])
            assert [note for note in run.notes if "Kubernetes" in note] == notes


def test_a_version_asked_for_is_not_commented(wukong: Wukong) -> None:
    assert not any("Kubernetes" in note for note in wukong(*ARGUMENTS, "--kubernetes", "1.37").notes)


def test_a_version_asked_for_that_is_not_known_is_said(wukong: Wukong) -> None:
    run = wukong(*ARGUMENTS, "--kubernetes", "v1.44")
    assert run.code == 0
    assert "note: Kubernetes 1.44 is not modelled; decided as in 1.37, the nearest that is." in run.notes


def test_the_version_asked_for_decides(wukong: Wukong) -> None:
    """1.35 tells why no claims were deallocated, 1.37 does not."""
    assert "no new claims" in wukong(*ARGUMENTS, "--kubernetes", "1.35", "-o", "json").document["reason"]
    assert "no new claims" not in wukong(*ARGUMENTS, "--kubernetes", "1.37", "-o", "json").document["reason"]


def test_objects_that_do_not_decide_placement_are_left_out_and_counted(wukong: Wukong, tmp_path: Path) -> None:
    others = [
        {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "j"}},
        {"apiVersion": "serving.knative.dev/v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"selector": 3}},
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}},
    ]
    write_json(tmp_path / "cluster.json", node("a"), *others)
    run = wukong(*ARGUMENTS)
    assert run.code == 0
    assert "note: cluster.json: left out what does not decide placement: 1 CronJob, 1 Secret, 1 Service." in run.notes


def test_what_about_a_pod_is_not_modelled_is_said(wukong: Wukong, tmp_path: Path) -> None:
    write_yaml(tmp_path / "web.yaml", pod("web", resourceClaims=[{"name": "gpu"}], schedulerName="volcano"))
    run = wukong(*ARGUMENTS)
    assert any("resource claims" in note for note in run.notes)
    assert any("asks for the scheduler 'volcano'" in note for note in run.notes)


def test_a_daemon_set_is_said_to_be_counted_as_ordinary_pods(wukong: Wukong, tmp_path: Path) -> None:
    write_yaml(tmp_path / "web.yaml", {**deployment("agent"), "kind": "DaemonSet"})
    assert any("a DaemonSet puts one pod on each node" in note for note in wukong(*ARGUMENTS).notes)


def test_a_large_cluster_is_sampled_by_a_real_scheduler_and_that_is_said_once(wukong: Wukong, tmp_path: Path) -> None:
    write_json(tmp_path / "cluster.json", *(node(f"n{number}") for number in range(120)))
    write_yaml(tmp_path / "web.yaml", pod("web"))
    (tmp_path / "all.yaml").write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\npercentageOfNodesToScore: 100\n"
    )
    for verb in ("explain", "capacity"):
        notes = wukong(verb, "-s", "cluster.json", "-f", "web.yaml").notes
        assert [text for text in notes if "120 nodes" in text] == [
            "note: of 120 nodes kube-scheduler looks at as many as it takes to find 100 that fit, and picks among "
            "those; here all are looked at."
        ]
        notes = wukong(verb, "-s", "cluster.json", "-f", "web.yaml", "--scheduler-config", "all.yaml").notes
        assert not [text for text in notes if "120 nodes" in text]


def test_that_a_large_cluster_is_sampled_is_said_of_forecasts_too(wukong: Wukong, tmp_path: Path) -> None:
    write_json(tmp_path / "cluster.json", *(node(f"n{number}") for number in range(120)))
    for verb in (("plan", "--seeds", "1"), ("sim", "run")):
        notes = wukong(*verb, "-s", "cluster.json", "-f", "web.yaml").notes
        assert [text for text in notes if "120 nodes" in text] == [
            "note: of 120 nodes kube-scheduler looks at as many as it takes to find 100 that fit, and picks among "
            "those; here all are looked at."
        ]
    write_json(tmp_path / "cluster.json", *(node(f"n{number}") for number in range(100)))
    assert not any("100 nodes" in text for text in wukong("plan", "--seeds", "1", *ARGUMENTS[1:]).notes)
