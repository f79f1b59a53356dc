"""`wukong manifests extender`: a stream or files, all of them or none."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.conftest import Run, Wukong

BASIC = ("manifests", "extender", "--image", "wukong:test")


def documents(run: Run) -> list[dict[str, Any]]:
    assert run.code == 0, run.err
    return list(yaml.safe_load_all(run.out))


def test_the_stream_holds_only_objects_of_the_cluster(wukong: Wukong) -> None:
    run = wukong(*BASIC)
    kinds = [entry["kind"] for entry in documents(run)]
    assert kinds[0] == "Namespace"
    assert "KubeSchedulerConfiguration" not in kinds
    assert any("the certificates expire on" in line for line in run.notes)
    assert any("--cluster-ip" in line for line in run.notes)


def test_memory_is_as_it_was_asked_for(wukong: Wukong) -> None:
    run = wukong(*BASIC, "--memory", "512Mi", "--memory-limit", "2Gi")
    (deployment,) = [entry for entry in documents(run) if entry["kind"] == "Deployment"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["resources"]["requests"]["memory"] == "512Mi"
    assert container["resources"]["limits"] == {"memory": "2Gi"}


def test_with_a_second_scheduler_both_are_in_the_stream(wukong: Wukong) -> None:
    run = wukong(*BASIC, "--second-scheduler", "--scheduler-image", "kube-scheduler:test", "--scheduler-name", "placer")
    found = [entry["metadata"]["name"] for entry in documents(run) if entry["kind"] == "Deployment"]
    assert found == ["wukong-extender", "wukong-scheduler"]
    assert any("schedulerName: placer" in line for line in run.notes)


def test_files_are_separate_and_readable_by_the_owner_alone(wukong: Wukong, tmp_path: Path) -> None:
    assert wukong(*BASIC, "--cluster-ip", "10.96.0.50", "--out", "made").code == 0
    paths = sorted((tmp_path / "made").iterdir())
    assert [path.name for path in paths] == ["10-extender.yaml", "scheduler-config.yaml"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in paths} == {0o600}
    config = yaml.safe_load(paths[1].read_text())
    assert config["kind"] == "KubeSchedulerConfiguration"
    assert config["extenders"][0]["urlPrefix"] == "https://10.96.0.50:8443"


def test_existing_files_stay_unless_forced(wukong: Wukong, tmp_path: Path) -> None:
    kept = tmp_path / "made" / "scheduler-config.yaml"
    kept.parent.mkdir()
    kept.write_text("mine")
    run = wukong(*BASIC, "--out", "made")
    assert run.code == 2
    assert "scheduler-config.yaml: is there already. Replace it with --force." in run.err
    assert [path.name for path in kept.parent.iterdir()] == [kept.name]
    assert kept.read_text() == "mine"
    assert wukong(*BASIC, "--out", "made", "--force").code == 0
    assert "KubeSchedulerConfiguration" in kept.read_text()


def test_nothing_is_left_where_a_file_cannot_be_written(wukong: Wukong, tmp_path: Path) -> None:
    (tmp_path / "made" / "scheduler-config.yaml" / "in the way").mkdir(parents=True)
    run = wukong(*BASIC, "--out", "made", "--force")
    assert run.code == 2
    assert "scheduler-config.yaml: expected a file or none" in run.err
    assert [path.name for path in (tmp_path / "made").iterdir()] == ["scheduler-config.yaml"]


def test_a_folder_that_cannot_be_made_is_said(wukong: Wukong, tmp_path: Path) -> None:
    (tmp_path / "made").write_text("a file")
    run = wukong(*BASIC, "--out", "made")
    assert run.code == 2
    assert "--out made: cannot be written" in run.err


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--second-scheduler",), "--scheduler-image: expected the kube-scheduler image"),
        (("--scheduler-name", "x"), "Add --second-scheduler."),
        (("--force",), "Add --out DIR."),
        (("--namespace", "kube-system"), "--namespace: expected one of Wukong's own"),
        (("--cluster-ip", "here"), "--cluster-ip: expected an address"),
        (("--components", "extendre"), "unknown component"),
        (("--memory", "lots"), "--memory: expected a quantity"),
        (("--memory-limit", "-1Gi"), "--memory-limit: expected an amount of memory"),
        (("--memory-limit", "200Mi"), "--memory-limit: expected no less than is requested"),
    ],
)
def test_a_wrong_option_is_named_with_its_fix(wukong: Wukong, words: tuple[str, ...], problem: str) -> None:
    run = wukong(*BASIC, *words)
    assert run.code == 2
    assert problem in run.err
    assert run.out == ""
