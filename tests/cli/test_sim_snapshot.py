"""`wukong sim run -s SNAPSHOT -f change.yaml`: what it says of a change to a cluster, and of what it cannot know."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.conftest import Wukong

EXAMPLES = Path(__file__).parents[2] / "examples"
CLUSTER, WEB = EXAMPLES / "cluster.yaml", EXAMPLES / "web.yaml"
APART = {
    "requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "topology.kubernetes.io/zone", "labelSelector": {"matchLabels": {"app": "web"}}}
    ]
}


def web(**template: object) -> dict[str, object]:
    """The shop's Deployment as it is in the snapshot, but for this."""
    (deployment,) = [
        document
        for document in yaml.safe_load(CLUSTER.read_text("utf-8"))["items"]
        if document["kind"] == "Deployment" and document["metadata"]["name"] == "web"
    ]
    deployment["spec"]["template"]["spec"] |= template
    return dict(deployment)


def event_texts(story: dict[str, Any]) -> list[str]:
    return [event["text"] for event in story["timeline"]]


def write(path: str, document: object) -> str:
    Path(path).write_text(yaml.safe_dump(document), "utf-8")
    return path


def test_a_change_that_completes_is_told_with_its_price(wukong: Wukong) -> None:
    run = wukong("sim", "run", "-s", CLUSTER, "-f", WEB, "-o", "json")
    assert (run.code, run.err) == (0, "")
    story = run.document
    assert (story["settled"], story["before"]["changes"], story["nodes"]["start"]) == (True, 0, 12)
    summary = story["workloads"]["shop/web"]
    assert (summary["available"], summary["minAvailable"], summary["restarts"]) == (6, 5, 0)
    assert story["workloads"]["kube-system/agent"]["perNode"].keys() >= {"od-a1", "spot-c3"}


def test_people_are_shown_the_workloads_that_something_happened_to(wukong: Wukong) -> None:
    run = wukong("sim", "run", "-s", CLUSTER, "-f", WEB)
    assert run.code == 0
    assert "Nothing happened to 3 other workloads; -o json has them." in run.out
    assert "kube-system/agent" not in run.out


def test_a_change_that_never_completes_ends_with_one_and_the_reason(wukong: Wukong) -> None:
    change = write("change.yaml", web(affinity={"podAntiAffinity": APART}))
    run = wukong("sim", "run", "-s", CLUSTER, "-f", change)
    assert run.code == 1
    assert "shop/web: ProgressDeadlineExceeded" in run.out
    assert "didn't match pod anti-affinity rules" in run.out


def test_what_does_not_change_anything_tells_of_no_events(wukong: Wukong) -> None:
    run = wukong("sim", "run", "-s", CLUSTER, "-f", write("same.yaml", web()), "-o", "json")
    assert (run.code, event_texts(run.document)) == (0, ["applies Deployment shop/web"])


def test_a_scenario_is_played_on_top_of_the_snapshot(wukong: Wukong) -> None:
    scenario = {
        "timeline": [{"at": "60s", "drain": "spot-a1"}],
        "expect": {"workloads": {"shop/web": {"minAvailable": 5, "restarts": 1, "perNode": {"spot-a1": 0}}}},
    }
    run = wukong("sim", "run", write("drain.yaml", scenario), "-s", CLUSTER)
    assert run.code == 0
    assert "1 pod had to move:\n  shop/web: spot-a1 → " in run.out


def test_manifests_alone_are_applied_to_an_empty_cluster(wukong: Wukong) -> None:
    run = wukong("sim", "run", "-f", WEB)
    assert run.code == 1
    assert "no nodes available to schedule pods" in run.out


def test_a_snapshot_in_the_middle_of_something_is_said_to_be_so(wukong: Wukong) -> None:
    items = yaml.safe_load(CLUSTER.read_text("utf-8"))["items"]
    fewer = [document for document in items if document["metadata"]["name"] != "web-6d5f9c-a"]
    run = wukong("sim", "run", "-s", write("cluster.yaml", {"kind": "List", "items": fewer}), "-f", WEB)
    assert run.code == 0
    assert any(
        "cluster.yaml was not at rest: what was under way was played to its end first" in note for note in run.notes
    )


def test_what_a_reduced_snapshot_cannot_know_is_said(wukong: Wukong) -> None:
    items = yaml.safe_load(CLUSTER.read_text("utf-8"))["items"]
    mark = {"version": 1, "takenAt": "2026-03-07T00:00:00Z"}
    Path("cluster.json").write_text(json.dumps({"kind": "List", "wukongSnapshot": mark, "items": items}), "utf-8")
    change = web()
    change["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "A", "value": "1"}]  # type: ignore[index]
    run = wukong("sim", "run", "-s", "cluster.json", "-f", write("change.yaml", change), "-o", "json")
    assert event_texts(run.document) == ["applies Deployment shop/web"]
    assert any(
        "whether environment, arguments, probes or annotations of Deployment web change" in note for note in run.notes
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "error: expected a SCENARIO, or -f with manifests to apply. Try: wukong sim run --help"),
        (("-s", "gone.yaml", "-f", WEB), "error: gone.yaml: no such file."),
        (("-s", CLUSTER, "-f", "gone.yaml"), "error: gone.yaml: no such file."),
        (("-s", "-", "-f", "-"), "--snapshot and --filename: only one of them can be standard input"),
        (("-", "-s", CLUSTER), "error: standard input: expected a scenario, found nothing in it. Begin with nodes:"),
        ((WEB,), "web.yaml: expected a scenario, got a Kubernetes manifest. Give it with -f."),
        (
            ("-f", EXAMPLES / "sim" / "drain.yaml"),
            "drain.yaml: expected manifests, got a scenario. Give it without -f.",
        ),
        (("-s", "empty.yaml", "-f", WEB), "error: empty.yaml: expected Kubernetes objects, found none."),
        (("-s", CLUSTER, "-f", "pot.yaml"), 'pot.yaml: object 1.kind: unknown kind "Pot". Did you mean "Pod"?'),
        (("-s", CLUSTER, "-f", "bad.yaml"), "bad.yaml: Deployment web: the API server refuses it:"),
        (("-f", WEB, "--seed", "x"), "Error: Invalid value for '--seed': 'x' is not a valid integer."),
        (("-f", WEB, "--speed", "fast"), "error: --speed: expected how many times faster than real time"),
    ],
    ids=[
        "nothing",
        "no-snapshot",
        "no-change",
        "stdin-twice",
        "empty-scenario",
        "no-scenario",
        "no-manifest",
        "empty",
        "kind",
        "bad",
        "seed",
        "speed",
    ],
)
def test_wrong_input_ends_with_two_and_the_fix(wukong: Wukong, arguments: tuple[object, ...], message: str) -> None:
    Path("empty.yaml").write_text("", "utf-8")
    write("pot.yaml", {"apiVersion": "v1", "kind": "Pot", "metadata": {"name": "a"}})
    bad = web()
    bad["spec"]["selector"] = {"matchLabels": {"app": "other"}}  # type: ignore[index]
    write("bad.yaml", bad)
    run = wukong("sim", "run", *arguments)
    assert run.code == 2
    assert message in run.err
    assert run.out == ""
