"""`wukong sim run --start-seconds`, `--stop-seconds` and the same in a scenario: how long pods take, and whose."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import Wukong
from cli.manifests import deployment, node, pod, write_json
from wukong.cluster.snapshot_documents import MARK

ANNOTATED = "sim.novasphere.dev/start-seconds"


def a_scenario(**fields: object) -> dict[str, object]:
    """Two Deployments, one in another namespace, and a pod with an annotation; all but one pod go after two minutes."""
    shop = deployment("web")
    shop["metadata"]["namespace"] = "shop"
    lone = pod("lone")
    lone["metadata"]["annotations"] = {ANNOTATED: "7"}
    return {
        "nodes": [{"namePrefix": "n", "count": 3}],
        "manifests": [deployment("web"), shop, lone],
        "timeline": [{"at": "2m", "delete": {"kind": "Pod", "name": "lone"}}],
        **fields,
    }


def times_of(story: dict[str, Any], text: str) -> dict[str, int]:
    """Whom an event is about → its second."""
    return {event["subject"]: int(event["at"]) for event in story["timeline"] if event["text"] == text}


def ready_after(story: dict[str, Any]) -> tuple[int, int, int]:
    seconds = times_of(story, "ready")
    return seconds["default/web"], seconds["shop/web"], seconds["pod default/lone"]


@pytest.mark.parametrize(
    ("options", "fields", "expected"),
    [
        ([], {}, (0, 0, 7)),
        (["20"], {}, (20, 20, 7)),
        (["20", "deploy/web=40"], {}, (40, 20, 7)),
        (["deployments/shop/web=40", "pod/lone=3"], {}, (0, 40, 3)),
        ([], {"startSeconds": 20}, (20, 20, 7)),
        (["deploy/web=5"], {"startSeconds": {"all": 20, "deploy/web": 40, "Deployment/shop/web": 60}}, (5, 60, 7)),
    ],
)
def test_the_most_precise_word_on_how_long_pods_start_counts(
    wukong: Wukong, options: list[str], fields: dict[str, object], expected: tuple[int, int, int]
) -> None:
    Path("scenario.json").write_text(json.dumps(a_scenario(**fields)), "utf-8")
    arguments = [argument for text in options for argument in ("--start-seconds", text)]
    run = wukong("sim", "run", "scenario.json", *arguments, "-o", "json")
    assert run.code == 0, run.err
    assert ready_after(run.document) == expected


def test_pods_take_their_time_to_stop_within_their_grace_period(wukong: Wukong) -> None:
    for seconds, gone_at in ((10, 130), (100, 150)):
        Path("scenario.json").write_text(json.dumps(a_scenario(stopSeconds={"pod/lone": seconds})), "utf-8")
        story = wukong("sim", "run", "scenario.json", "-o", "json").document
        assert times_of(story, "gone") == {"pod default/lone": gone_at}


def test_kubelets_of_a_process_of_their_own_know_whose_pods_they_run(wukong: Wukong) -> None:
    Path("scenario.json").write_text(json.dumps(a_scenario(startSeconds={"deploy/web": 40})), "utf-8")
    story = wukong("sim", "run", "scenario.json", "--faults", "duplicated", "-o", "json").document
    assert ready_after(story) == (40, 0, 7)


def test_pods_of_a_snapshot_that_are_up_stay_so_and_new_ones_take_their_time(wukong: Wukong, tmp_path: Path) -> None:
    taken_at = datetime(2026, 1, 1, tzinfo=UTC)
    young = pod("young", on="a")
    young["metadata"]["uid"] = "1"
    started = (taken_at - timedelta(seconds=3)).strftime("%Y-%m-%dT%H:%M:%SZ")
    conditions = [{"type": kind, "status": "True"} for kind in ("Ready", "ContainersReady", "PodScheduled")]
    young["status"] = {"phase": "Running", "startTime": started, "conditions": conditions}
    cluster = write_json(tmp_path / "cluster.json", node("a"), young)
    document = json.loads(cluster.read_text("utf-8"))
    document[MARK] = {"version": 1, "takenAt": taken_at.strftime("%Y-%m-%dT%H:%M:%SZ")}
    cluster.write_text(json.dumps(document), "utf-8")
    write_json(tmp_path / "change.json", pod("late"))
    Path("scenario.json").write_text(json.dumps({"timeline": [{"at": "1s", "cordon": "a"}]}), "utf-8")
    options = ("--start-seconds", "30", "--start-seconds", "po/young=5000")
    arguments = ("scenario.json", "-s", cluster, "-f", "change.json", *options)
    story = wukong("sim", "run", *arguments, "-o", "json").document
    assert times_of(story, "ready") == {"pod default/late": 30}
    assert not [event for event in story["timeline"] if event["subject"] == "pod default/young"]


def test_a_workload_without_a_namespace_is_in_that_of_the_command(wukong: Wukong, tmp_path: Path) -> None:
    change = deployment("web")
    del change["metadata"]["namespace"]
    write_json(tmp_path / "change.json", change)
    nodes = write_json(tmp_path / "nodes.json", node("a"))
    run = wukong(
        "sim", "run", "-s", nodes, "-f", "change.json", "-n", "shop", "--start-seconds", "deploy/web=40", "-o", "json"
    )
    assert times_of(run.document, "ready") == {"shop/web": 40}


@pytest.mark.slow
def test_seeds_are_replayed_with_the_same_durations(wukong: Wukong) -> None:
    Path("scenario.json").write_text(json.dumps(a_scenario()), "utf-8")
    run = wukong(
        "sim", "run", "scenario.json", "--seeds", "1", "--start-seconds", "20", "--stop-seconds", "deploy/web=2"
    )
    assert "Replay it: wukong sim run scenario.json --start-seconds 20 --stop-seconds deploy/web=2 --seed 1" in run.out


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("soon", '--start-seconds: expected seconds from 0 to 1,000,000, such as 20 or deploy/web=40, got "soon".'),
        ("-1", 'such as 20 or deploy/web=40, got "-1".'),
        ("nan", 'such as 20 or deploy/web=40, got "nan".'),
        ("inf", 'such as 20 or deploy/web=40, got "inf".'),
        ("deploy/web=", 'such as 20 or deploy/web=40, got "deploy/web=".'),
        ("=20", '--start-seconds: expected a workload such as deploy/web or deploy/shop/web, got "".'),
        ("web=20", 'expected a workload such as deploy/web or deploy/shop/web, got "web".'),
        ("depoy/web=20", 'got "depoy/web". Did you mean "deploy"?'),
        ("deploy/a/b/c=20", 'got "deploy/a/b/c".'),
        ("deploy/wbe=20", 'there is no Deployment default/wbe. Did you mean "default/web"?'),
    ],
)
def test_a_duration_that_makes_no_sense_is_refused(wukong: Wukong, text: str, problem: str) -> None:
    Path("scenario.json").write_text(json.dumps(a_scenario()), "utf-8")
    run = wukong("sim", "run", "scenario.json", f"--start-seconds={text}")
    assert (run.code, run.out) == (2, "")
    assert problem in run.err


def test_every_problem_of_a_scenarios_durations_is_named_with_its_place(wukong: Wukong) -> None:
    fields = {"startSeconds": {"all": -1, "depoy/web": 1}, "stopSeconds": 1e9}
    Path("scenario.json").write_text(json.dumps(a_scenario(**fields)), "utf-8")
    run = wukong("sim", "run", "scenario.json")
    assert run.code == 2
    assert run.err.splitlines() == [
        "error: scenario.json: $.startSeconds.all: expected seconds from 0 to 1,000,000, got -1.",
        "error: scenario.json: $.startSeconds: expected a workload such as deploy/web or deploy/shop/web, got "
        '"depoy/web". Did you mean "deploy"?',
        "error: scenario.json: $.stopSeconds: expected seconds from 0 to 1,000,000, got 1e+09.",
    ]
