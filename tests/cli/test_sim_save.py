"""`wukong sim run --save`: the cluster at the end as the next command's snapshot, whole or not at all."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from cli.conftest import Wukong
from cli.manifests import Manifest, deployment, pod, write_json
from wukong.cluster.snapshot_documents import MARK


def web(replicas: int = 3) -> Manifest:
    """A Deployment with an environment."""
    manifest = deployment("web", cpu="1")
    manifest["spec"]["replicas"] = replicas
    manifest["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "TOKEN", "value": "secret"}]
    return manifest


def a_scenario(replicas: int = 3, **fields: object) -> str:
    """Two nodes for three pods each, and the Deployment."""
    nodes = [{"namePrefix": "n", "count": 2, "capacity": {"cpu": 3}}]
    Path("scenario.json").write_text(json.dumps({"nodes": nodes, "manifests": [web(replicas)], **fields}), "utf-8")
    return "scenario.json"


def test_the_next_commands_are_asked_of_the_saved_cluster(wukong: Wukong, tmp_path: Path) -> None:
    saved = wukong("sim", "run", a_scenario(), "--save", "after.json.gz")
    assert (saved.code, saved.notes) == (0, ["note: wrote after.json.gz: 2 Node, 3 Pod and 13 objects in all."])
    write_json(tmp_path / "pod.json", pod("more", cpu="1"))
    assert wukong("capacity", "-s", "after.json.gz", "-f", "pod.json", "-o", "json").document["fits"] == 3
    assert "fits on" in wukong("explain", "-s", "after.json.gz", "-f", "pod.json").out
    write_json(tmp_path / "change.json", web(replicas=6))
    grown = wukong("sim", "run", "-s", "after.json.gz", "-f", "change.json", "--save", "after.json.gz", "-o", "json")
    assert grown.document["before"]["changes"] == 0
    assert grown.document["workloads"]["default/web"]["available"] == 6
    full = wukong("capacity", "-s", "after.json.gz", "-f", "pod.json", "-o", "json")
    assert full.document["fits"] == 0


def test_it_is_the_time_of_the_story_and_nothing_private_that_is_kept(wukong: Wukong) -> None:
    wukong("sim", "run", a_scenario(timeline=[{"at": "1h", "cordon": "n1"}], until="2h"), "--save", "after.json.gz")
    text = gzip.decompress(Path("after.json.gz").read_bytes())
    assert json.loads(text)[MARK] == {"version": 1, "takenAt": "2026-01-01T01:17:40Z"}
    assert b"secret" not in text


def test_a_cluster_that_is_stuck_is_saved_as_well(wukong: Wukong, tmp_path: Path) -> None:
    stuck = wukong("sim", "run", a_scenario(replicas=7), "--save", "after.json", "-o", "json")
    assert (stuck.code, len(stuck.document["stuck"])) == (1, 2)
    write_json(tmp_path / "change.json", web(replicas=7))
    again = wukong("sim", "run", "-s", "after.json", "-f", "change.json", "-o", "json").document
    assert again["before"]["stuck"] == stuck.document["stuck"]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (
            ["--save", "nowhere/after.json"],
            "--save nowhere/after.json: cannot be written. Name a file in a folder that",
        ),
        (["--save", "."], "--save .: cannot be written."),
        (["--save", "a.json", "--seeds", "1-2"], "--seeds plays many stories at once, and --save is for a single one."),
        (["--save", "a.json", "--live", "--yes"], "--save keeps an embedded cluster. Leave it out with --live"),
    ],
)
def test_what_cannot_be_saved_is_refused_before_anything_is_played(
    wukong: Wukong, options: list[str], problem: str
) -> None:
    before = sorted(Path().iterdir())
    run = wukong("sim", "run", a_scenario(), *options)
    assert (run.code, run.out) == (2, "")
    assert problem in run.err
    assert sorted(Path().iterdir()) == sorted([*before, Path("scenario.json")])


def test_a_refused_scenario_leaves_what_was_saved_before(wukong: Wukong) -> None:
    Path("after.json").write_text("precious", "utf-8")
    scenario = a_scenario(timeline=[{"at": "1s", "delete": {"kind": "Pod", "name": "nobody"}}])
    assert wukong("sim", "run", scenario, "--save", "after.json").code == 2
    assert Path("after.json").read_text("utf-8") == "precious"
