"""`wukong sim run --seeds`: what it prints, how it ends, what it refuses, and that its seeds can be replayed."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from cli.conftest import Wukong

# Two pods and one node that takes only one of them: which of the two is left over is drawn.
RIVALS = """
nodes: [{name: n1}]
manifests: [%s, %s]
until: 1m
expect: {settled: false}
"""
RIVAL = """
{apiVersion: apps/v1, kind: Deployment, metadata: {name: NAME},
 spec: {replicas: 1, selector: {matchLabels: {app: NAME}},
  template: {metadata: {labels: {app: NAME}},
   spec: {containers: [{name: main, image: x, resources: {requests: {cpu: 3}}}]}}}}
"""


@pytest.fixture
def rivals(tmp_path: Path) -> Path:
    path = tmp_path / "rivals.yaml"
    path.write_text(RIVALS % (RIVAL.replace("NAME", "one"), RIVAL.replace("NAME", "two")))
    return path


@pytest.mark.slow
def test_each_ending_is_told_with_how_many_seeds_have_it_and_how_to_replay_one(wukong: Wukong, rivals: Path) -> None:
    run = wukong("sim", "run", rivals, "--seeds", "1-20")
    assert run.code == 0
    lines = run.out.splitlines()
    assert lines[-1] == "20 seeds, 2 endings, all as expected."
    assert sum(int(line.split()[0]) for line in lines if " of 20 seeds: not settled" in line) == 20
    replays = [line.partition("Replay it: ")[2] for line in lines if "Replay it: " in line]
    assert len(replays) == 2
    left_over = {wukong(*shlex.split(replay)[1:], "-o", "json").document["stuck"][0][:11] for replay in replays}
    assert left_over == {"default/one", "default/two"}


@pytest.mark.slow
def test_the_endings_for_programs(wukong: Wukong, rivals: Path) -> None:
    run = wukong("sim", "run", rivals, "--seeds", "1-20", "-o", "json")
    document = run.document
    assert (run.code, run.err) == (0, "")
    assert document["seeds"] == {"asked": 20, "played": 20}
    assert sorted(seed for ending in document["endings"] for seed in ending["seeds"]) == list(range(1, 21))
    first = document["endings"][0]
    assert first["count"] == len(first["seeds"]) >= document["endings"][1]["count"]
    assert first["unmet"] == []
    assert {"replicas": 1, "available": 0, "minAvailable": 0} in first["workloads"].values()
    assert wukong("sim", "run", rivals, "--seeds", "1-20", "-o", "json").document == document


@pytest.mark.slow
def test_an_ending_that_is_not_as_expected_ends_it_with_1(wukong: Wukong, rivals: Path) -> None:
    rivals.write_text(rivals.read_text().replace("settled: false", "settled: false, stuck: default/one"))
    run = wukong("sim", "run", rivals, "--seeds", "1-20")
    assert run.code == 1
    assert '  not as expected: stuck: expected a reason that contains "default/one"; found 1 without it' in run.out
    assert run.out.splitlines()[-1].startswith("20 seeds, 2 endings: ")
    assert run.out.splitlines()[-1].endswith(" not as expected.")


@pytest.mark.slow
def test_seeds_of_a_change_to_a_snapshot(wukong: Wukong, tmp_path: Path, rivals: Path) -> None:
    snapshot, change = tmp_path / "cluster.yaml", tmp_path / "change.yaml"
    snapshot.write_text(
        "apiVersion: v1\nkind: List\nitems:\n"
        "- {apiVersion: v1, kind: Node, metadata: {name: n1, labels: {kubernetes.io/hostname: n1}},"
        " status: {capacity: {cpu: '4', memory: 8Gi, pods: '9'}, allocatable: {cpu: '4', memory: 8Gi, pods: '9'},"
        " conditions: [{type: Ready, status: 'True'}]}}\n"
    )
    change.write_text("\n---\n".join(RIVAL.replace("NAME", name) for name in ("one", "two")))
    run = wukong("sim", "run", "-s", snapshot, "-f", change, "--seeds", "1-20", "-o", "json")
    assert run.code == 1  # who expects nothing expects to settle
    assert len(run.document["endings"]) == 2
    for ending in run.document["endings"]:
        assert shlex.split(ending["replay"])[3:-1] == ["-s", str(snapshot), "-f", str(change), "--seed"]
        again = wukong(*shlex.split(ending["replay"])[1:], "-o", "json")
        assert again.document["stuck"] == ending["stuck"]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--seeds", "5-1"], '--seeds: expected a seed such as 7, or a range such as 1-1000, got "5-1".'),
        (["--seeds", "1-2", "--speed", "10x"], "--speed is for a single one"),
        (["--seeds", "1-2", "--trace", "x"], "--trace is for a single one"),
        (["--seeds", "1-2", "--live"], "--live is for a single one"),
    ],
)
def test_what_makes_no_sense_with_many_seeds_is_refused(
    wukong: Wukong, rivals: Path, arguments: list[str], problem: str
) -> None:
    run = wukong("sim", "run", rivals, *arguments)
    assert run.code == 2
    assert problem in run.err
