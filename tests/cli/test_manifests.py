"""`wukong manifests` prints documents that kubectl takes, and knows its parts by name."""

from __future__ import annotations

import errno
import importlib
import json
import stat
from pathlib import Path

import pytest
import yaml

from wukong.api.crds import build_crds
from wukong.cli import main
from wukong.cli.verbs.manifests import PARTS


def test_crds_are_a_stream_of_yaml_documents(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["manifests", "crds"]) == 0
    assert list(yaml.safe_load_all(capsys.readouterr().out)) == build_crds()


def test_crds_as_json_are_one_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["manifests", "crds", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"apiVersion": "v1", "kind": "List", "items": build_crds()}


@pytest.mark.slow
def test_crds_in_a_directory_are_a_file_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["manifests", "crds", "-d", str(tmp_path / "deep" / "crds")]) == 0
    assert capsys.readouterr().out == ""
    documents = [yaml.safe_load(path.read_text("utf-8")) for path in sorted((tmp_path / "deep" / "crds").iterdir())]
    assert [document["metadata"]["name"] for document in documents] == [
        "clusterplacementpolicies.placement.novasphere.dev",
        "moves.placement.novasphere.dev",
        "nodenotices.placement.novasphere.dev",
        "placementpolicies.placement.novasphere.dev",
        "rollouts.placement.novasphere.dev",
        "wukongs.vm.novasphere.dev",
    ]


def test_a_directory_that_is_a_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "taken").touch()
    assert main(["manifests", "crds", "-d", str(tmp_path / "taken")]) == 2
    assert "taken: cannot be written" in capsys.readouterr().err


def test_a_full_disk_leaves_the_old_files_and_nothing_beside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["manifests", "crds", "-d", str(tmp_path)]) == 0
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o644}

    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", fail)
    monkeypatch.setattr("wukong.cli.verbs.manifests_crds.HEAD", "# another\n")
    assert main(["manifests", "crds", "-d", str(tmp_path)]) == 2
    assert "cannot be written: No space left on device" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_part_describes_itself_as_the_help_does(capsys: pytest.CaptureFixture[str]) -> None:
    for name, part in PARTS.items():
        command = importlib.import_module(part.module).command
        assert command.get_short_help_str(limit=200) == part.help, name
    assert main(["manifests", "--help"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert all(f"{name} {part.help}" in out for name, part in PARTS.items())


def test_a_typo_in_a_part_suggests_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["manifests", "crd"]) == 2
    assert 'No such command "crd". Did you mean "crds"?' in capsys.readouterr().err


def test_a_reader_may_list_what_decides_placement_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["manifests", "reader"]) == 0
    (role,) = yaml.safe_load_all(capsys.readouterr().out)
    verbs = {verb for rule in role["rules"] for verb in rule["verbs"]}
    resources = {f"{rule['apiGroups'][0]}/{plural}" for rule in role["rules"] for plural in rule["resources"]}
    assert verbs == {"list", "get"}
    assert {"/nodes", "/pods", "apps/deployments", "metrics.k8s.io/nodes", "karpenter.sh/nodepools"} <= resources
    assert not resources & {"/secrets", "/*", "*/*"}
    (rule,) = [rule for rule in role["rules"] if rule["verbs"] != ["list"] or "configmaps" in rule["resources"]]
    assert rule == {
        "apiGroups": [""],
        "resources": ["configmaps"],
        "resourceNames": ["cluster-autoscaler-status"],
        "verbs": ["get"],
    }


def test_a_reader_is_bound_to_whom_it_is_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["manifests", "reader", "--user", "ann", "--group", "sre", "--service-account", "ci:plans"]) == 0
    role, binding = yaml.safe_load_all(capsys.readouterr().out)
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    assert [subject["name"] for subject in binding["subjects"]] == ["ann", "sre", "plans"]
    assert main(["manifests", "reader", "--service-account", "plans"]) == 2
    assert "--service-account: expected NAMESPACE:NAME, got 'plans'." in capsys.readouterr().err
