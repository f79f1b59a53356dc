"""`wukong sim run`: what it prints, how it ends, and which files it reads."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
import yaml

from cli.conftest import Wukong

EXAMPLES = Path(__file__).parents[2] / "examples" / "sim"
POD = "{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: a, image: b}]}}"


def test_the_deadlock_is_told_to_people(wukong: Wukong) -> None:
    run = wukong("sim", "run", EXAMPLES / "deadlock.yaml")
    assert run.code == 0
    lines = run.out.splitlines()
    assert "00:00:00  nodes                   3 added" in lines
    assert "00:11:01  default/web  3/3        ProgressDeadlineExceeded" in lines
    assert "Not settled:" in lines
    assert "  default/web: pending: 0/3 nodes are available: 3 node(s) didn't match pod anti-affinity rules." in run.out


def test_a_story_for_programs_holds_what_the_view_shows(wukong: Wukong) -> None:
    run = wukong("sim", "run", EXAMPLES / "no-surge.yaml", "-o", "json")
    assert (run.code, run.err) == (0, "")
    story = run.document
    assert list(story) == [
        *("version", "settled", "interrupted", "atRest", "stuck", "workloads", "nodes", "moves", "availability"),
        *("writes", "virtualSeconds", "digest", "findings", "timeline"),
    ]
    assert (story["version"], story["settled"], story["stuck"]) == (2, True, [])
    summary = story["workloads"]["default/web"]
    assert (summary["minAvailable"], summary["perNode"]) == (2, {"node-1": 1, "node-2": 1, "node-3": 1})
    assert yaml.safe_load(wukong("sim", "run", EXAMPLES / "no-surge.yaml", "-o", "yaml").out) == story


def test_the_digest_is_that_of_the_trace(wukong: Wukong) -> None:
    run = wukong("sim", "run", EXAMPLES / "no-surge.yaml", "-o", "json", "--trace", "trace.jsonl")
    text = Path("trace.jsonl").read_bytes()
    assert hashlib.sha256(text).hexdigest() == run.document["digest"]
    first = json.loads(text.splitlines()[0])
    assert (first["at"], first["by"], first["action"]["type"]) == (0.0, "scenario", "Create")


@pytest.mark.parametrize("output", [(), ("-o", "json")])
def test_an_expectation_that_is_not_met_ends_with_one(wukong: Wukong, output: tuple[str, ...]) -> None:
    scenario = b"{nodes: [{name: a}], expect: {nodes: {end: 2}}}"
    run = wukong("sim", "run", "-", *output, stdin=scenario)
    assert run.code == 1
    assert "nodes.end: expected 2, got 1" in run.out + run.err


def test_who_expects_nothing_expects_to_settle(wukong: Wukong) -> None:
    assert wukong("sim", "run", "-", stdin=f"{{nodes: [{{name: a}}], manifests: [{POD}]}}".encode()).code == 0
    run = wukong("sim", "run", "-", stdin=f"manifests: [{POD}]".encode())
    assert run.code == 1
    assert "pod default/web: pending: no nodes available to schedule pods" in run.out


@pytest.mark.parametrize("options", [(), ("-o", "json"), ("--faults", "clock-jump", "-o", "json"), ("--seeds", "1-2")])
def test_expectations_that_nobody_wrote_are_not_called_unmet(wukong: Wukong, options: tuple[str, ...]) -> None:
    run = wukong("sim", "run", "-", *options, stdin=f"{{nodes: [], manifests: [{POD}], until: 10m}}".encode())
    assert run.code == 1
    assert "expect" not in run.out + run.err
    assert "settle" in run.out + run.err


def test_evictions_are_called_so_and_expected_by_that_name(wukong: Wukong) -> None:
    template = "{metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: 'web:1'}]}}"
    spec = f"{{replicas: 1, selector: {{matchLabels: {{app: web}}}}, template: {template}}}"
    web = f"{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: web}}, spec: {spec}}}"
    for word in ("evicted", "restarts"):  # the second is what it was called before
        expected = f"expect: {{workloads: {{default/web: {{{word}: 1}}}}}}"
        scenario = f"{{nodes: [{{name: a}}], manifests: [{web}], {expected}}}"
        run = wukong("sim", "run", "-", "-o", "json", stdin=scenario.encode())
        assert run.document["workloads"]["default/web"]["evicted"] == 0
        assert "expectation not met: workloads.default/web.evicted: expected 1, got 0" in run.err


def test_files_are_found_beside_the_scenario(wukong: Wukong) -> None:
    Path("deep").mkdir()
    Path("deep/scenario.yaml").write_text("{nodes: [{name: a}], files: [pods.yaml]}", "utf-8")
    Path("deep/pods.yaml").write_text(f"{POD}\n---\n{POD.replace('web', 'more')}", "utf-8")
    run = wukong("sim", "run", "deep/scenario.yaml")
    assert run.code == 0
    assert "pod default/more" in run.out


@pytest.mark.parametrize(
    "file", ["../pods.yaml", "inner/../../pods.yaml", "link.yaml", "{folder}/pods.yaml", "/etc/passwd"]
)
def test_files_outside_the_scenarios_folder_are_not_read_unless_told(wukong: Wukong, file: str) -> None:
    """Who plays somebody's scenario does not mean to show it their files."""
    Path("deep/inner").mkdir(parents=True)
    Path("pods.yaml").write_text(POD, "utf-8")
    Path("deep/link.yaml").symlink_to("../pods.yaml")
    file = file.format(folder=Path.cwd())
    Path("deep/scenario.yaml").write_text(json.dumps({"nodes": [{"name": "a"}], "files": [file]}), "utf-8")
    refused = wukong("sim", "run", "deep/scenario.yaml")
    assert refused.code == 2
    assert refused.err.startswith(f"error: deep/scenario.yaml: $.files[0]: expected a file below deep, got '{file}'.")
    if file != "/etc/passwd":
        assert wukong("sim", "run", "deep/scenario.yaml", "--files-below", ".").code == 0
        shown = wukong("sim", "run", "deep/scenario.yaml", "--files-below", ".", "--seeds", "1-2").out
        assert "Replay it: wukong sim run deep/scenario.yaml --files-below . --seed 1" in shown


def test_what_does_not_decide_placement_is_left_out_of_files_and_noted(wukong: Wukong) -> None:
    Path("scenario.yaml").write_text("{nodes: [{name: a}], files: [all.yaml]}", "utf-8")
    others = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}, {apiVersion: example.com/v1, kind: Thing}"
    Path("all.yaml").write_text(f"{{apiVersion: v1, kind: List, items: [{others}, {POD}]}}", "utf-8")
    run = wukong("sim", "run", "scenario.yaml")
    assert run.code == 0
    assert run.notes == ["note: left out of the files, for they do not decide placement: ConfigMap, Thing."]
    assert "pod default/web" in run.out


def test_a_bad_scenario_ends_with_two_and_names_the_files(wukong: Wukong) -> None:
    Path("scenario.yaml").write_text("{files: [pods.yaml, gone.yaml]}", "utf-8")
    Path("pods.yaml").write_text("{apiVersion: v1, kind: Pot, metadata: {name: a}}", "utf-8")
    run = wukong("sim", "run", "scenario.yaml")
    assert run.code == 2
    assert 'error: pods.yaml: object 1.kind: unknown kind "Pot". Did you mean "Pod"?' in run.err
    assert "error: gone.yaml: no such file." in run.err
    run = wukong("sim", "run", "-", stdin=b"{nods: []}")
    assert run.code == 2
    assert 'error: standard input: $.nods: unknown field. Did you mean "nodes"?' in run.err


def test_a_trace_that_cannot_be_written_is_told(wukong: Wukong) -> None:
    run = wukong("sim", "run", "-", "--trace", "no/such/place", stdin=b"{}")
    assert run.code == 2
    assert "--trace no/such/place: cannot be written: No such file or directory." in run.err


@pytest.mark.parametrize("option", [("--create-nodes",), ("--keep",), ("--yes",)])
def test_options_for_a_cluster_are_refused_without_one(wukong: Wukong, option: tuple[str, ...]) -> None:
    run = wukong("sim", "run", EXAMPLES / "no-surge.yaml", *option)
    assert run.code == 2
    assert f"{option[0]}: is about a run on a real cluster. Add --live, or leave it out." in run.err


@pytest.mark.parametrize("option", [("--seed", "3"), ("--speed", "10x")])
def test_a_real_cluster_takes_neither_seed_nor_speed(wukong: Wukong, option: tuple[str, ...]) -> None:
    run = wukong("sim", "run", EXAMPLES / "no-surge.yaml", "--live", "--kubeconfig", "none", *option)
    assert run.code == 2
    assert f"{option[0]}: a real cluster" in run.err


def test_nothing_is_written_to_a_cluster_unless_somebody_says_yes(wukong: Wukong, tmp_path: Path) -> None:
    """Nobody answers at that address, and nobody is asked: it ends before anything is sent."""
    cluster = {"name": "c", "cluster": {"server": "http://127.0.0.1:9"}}
    context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
    config = {"clusters": [cluster], "contexts": [context], "users": [{"name": "u"}], "current-context": "c"}
    (tmp_path / "config").write_text(yaml.safe_dump(config), "utf-8")
    run = wukong("sim", "run", EXAMPLES / "no-surge.yaml", "--live", "--kubeconfig", tmp_path / "config")
    assert run.code == 2
    assert "--live writes to http://127.0.0.1:9. Add --yes where nobody can be asked." in run.err


@pytest.mark.parametrize("more", [("--live",), ()])
def test_a_kubeconfig_that_is_not_there_is_said(wukong: Wukong, more: tuple[str, ...]) -> None:
    run = wukong("sim", "run", EXAMPLES / "no-surge.yaml", "--kubeconfig", "none", *more)
    assert run.code == 2
    assert "none" in run.err
