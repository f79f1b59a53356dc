"""`wukong plan`: what it prints for people and programs, how it ends, and what it refuses."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.conftest import Wukong
from wukong.cli.views.plan_markdown import render_markdown
from wukong.forecast.fields import Plan, Play, Problem, Verdict, WorkloadForecast

EXAMPLES = Path(__file__).parents[2] / "examples"
FOLDER = EXAMPLES / "plan"
CLUSTER, WEB, FIXED = FOLDER / "cluster.yaml", FOLDER / "web.yaml", FOLDER / "web-fixed.yaml"
LARGER = EXAMPLES / "cluster.yaml"
ONE_SEED = ("--seeds", "1", "--no-advice")


def plan(wukong: Wukong, *arguments: object) -> dict[str, Any]:
    document: dict[str, Any] = wukong("plan", *arguments, *ONE_SEED, "-o", "json").document
    return document


def actions_of(document: dict[str, Any]) -> list[tuple[str, str]]:
    return [(change["action"], f"{change['kind']} {change['name']}") for change in document["changes"]]


def test_a_rollout_that_never_ends_is_told_in_the_order_in_which_one_asks(wukong: Wukong) -> None:
    run = wukong("plan", "-s", CLUSTER, "-f", WEB, "--seeds", "2")
    assert (run.code, run.err) == (1, "")
    lines = run.out.splitlines()
    assert lines[0] == "Never ends, in 2 of 2."
    titles = [line for line in lines[1:] if line and not line.startswith(" ")]
    assert titles == [
        "What changes",
        "shop/web over time: 3 wanted, 3 available at least",
        "Nodes",
        "What blocks",
        "How long pods take",
        "Warnings",
        "What would make it safe",
        "Plays",
    ]
    assert "    spec.template.spec.containers[web].image: shop/web:1 → shop/web:2" in lines
    place = lines.index("    node-1, node-2, node-3: InterPodAffinity:")
    bar = "its podAntiAffinity[0] (app=web per kubernetes.io/hostname): shop/web-5f7d9c-k4m and 2 more"
    assert lines[place + 1].strip() == bar
    assert "  pending   ▂▂▂" in run.out
    assert all(len(line) <= 120 for line in lines if str(CLUSTER) not in line)  # paths are as long as they are


def test_a_change_that_is_safe_ends_with_0_and_about_how_long_it_takes(wukong: Wukong) -> None:
    run = wukong("plan", "-s", CLUSTER, "-f", FIXED, "--seeds", "2")
    assert (run.code, run.out.splitlines()[0]) == (0, "Completes in about 1 min 4 s, in 2 of 2.")
    assert "shop/web: 21 s from its node to ready; as 3 pods took, the slowest 26 s." in run.out


def test_the_command_that_a_plan_names_shows_the_story_of_its_seed(wukong: Wukong) -> None:
    run = wukong(
        "plan", "-s", CLUSTER, "-f", WEB, "--seeds", "3-4", "--start-seconds", "5", "-n", "shop", "--no-advice"
    )
    replay = run.out.splitlines()[-1].strip()
    assert replay == f"wukong plan -s {CLUSTER} -f {WEB} -n shop --start-seconds 5 --story 3"
    story = wukong(*shlex.split(replay)[1:])
    assert story.code == 1
    assert "shop/web: ProgressDeadlineExceeded" in story.out


def test_the_document_for_programs_has_a_version_and_every_part(wukong: Wukong) -> None:
    document = plan(wukong, "-s", CLUSTER, "-f", WEB)
    assert (document["version"], document["verdict"]["kind"], document["verdict"]["isSafe"]) == (1, "never-ends", False)
    assert list(document) == [
        *("version", "verdict", "changes", "outcomes", "shown", "cost", "startTimes", "stopTimes"),
        *("warnings", "advice", "replay"),
    ]
    workload = document["shown"]["workloads"]["shop/web"]
    assert workload["course"][-1] == {
        "at": workload["course"][-1]["at"],
        "old": 3,
        "new": 1,
        "available": 3,
        "pending": 1,
    }
    as_yaml = yaml.safe_load(wukong("plan", "-s", CLUSTER, "-f", WEB, *ONE_SEED, "-o", "yaml").out)
    assert as_yaml == document


def test_markdown_is_for_a_pull_request_and_nobody_writes_his_own_into_it(wukong: Wukong) -> None:
    change = yaml.safe_load(WEB.read_text("utf-8"))
    change["spec"]["template"]["metadata"]["annotations"] = {"note": "``` @team <b>"}
    Path("web.yaml").write_text(yaml.safe_dump(change), "utf-8")
    run = wukong("plan", "-s", CLUSTER, "-f", "web.yaml", *ONE_SEED, "-o", "markdown")
    assert run.code == 1
    assert run.out.splitlines()[0] == "### ❌ Never ends, in 1 of 1"
    assert run.out.count("```") == 2 * run.out.count("<details>") > 0
    assert run.out.count("</details>") == run.out.count("<details>")


def test_names_are_text_in_markdown_outside_of_code_too() -> None:
    problem = Problem(kind="never-ends", subject="@team/<b>", text="`x` [y](z)")
    forecast = WorkloadForecast(
        kind="Deployment",
        key="a/b",
        replicas=1,
        replicas_before=1,
        available=1,
        available_before=1,
        up_to_date=1,
        min_available=0,
        availability=[(0.0, 1, 1), (1.0, 0, 1)],
    )
    play = Play(seed=1, kind="never-ends", seconds=1.0, workloads={"<script>": forecast})
    verdict = Verdict(kind="never-ends", is_safe=False, text="Never ends", problems=[problem])
    text = "\n".join(render_markdown(Plan(verdict=verdict, shown=play)))
    assert "- **&#64;team/\\<b\\>**: \\`x\\` \\[y\\](z)" in text
    assert "<summary>&lt;script&gt; over time: 1 wanted, 0 available at least</summary>" in text


CHANGES: dict[str, tuple[list[str], list[tuple[str, str]]]] = {
    "an image": (["--image", "deploy/web=web:9", "-n", "shop"], [("change", "Deployment shop/web")]),
    "of a container": (["--image", "deploy/shop/web:web=web:9"], [("change", "Deployment shop/web")]),
    "replicas": (["--scale", "deploy/shop/web=2"], [("change", "Deployment shop/web")]),
    "a drain": (["--drain", "node-2"], [("drain", "Node node-2")]),
    "a node less": (["--remove-node", "node-2"], [("remove", "Node node-2")]),
    "nodes like one": (["--add-nodes", "node-1=2"], [("add", "Node node-1-new-1"), ("add", "Node node-1-new-2")]),
    "nodes of a type": (["--add-nodes", "m6i.xlarge=1"], [("add", "Node node-1-new-1")]),
    "a zone lost": (["--lose", "zone=eu-1b"], [("lose", "Node node-2")]),
    "a node lost": (["--lose", "node=node-3"], [("lose", "Node node-3")]),
}


@pytest.mark.parametrize("title", CHANGES)
def test_changes_need_no_file(title: str, wukong: Wukong) -> None:
    arguments, actions = CHANGES[title]
    assert actions_of(plan(wukong, "-s", CLUSTER, *arguments)) == actions


def test_more_nodes_make_room(wukong: Wukong) -> None:
    document = plan(wukong, "-s", CLUSTER, "-f", WEB, "--add-nodes", "node-1=1")
    assert document["verdict"]["kind"] == "completes"
    assert (document["shown"]["nodes"]["before"], document["shown"]["nodes"]["after"]) == (3, 4)
    assert document["cost"]["after"] > document["cost"]["before"]


def test_nodes_of_groups_come_when_pods_wait_and_go_when_nobody_needs_them(wukong: Wukong) -> None:
    labels = {"node.kubernetes.io/instance-type": "m6i.xlarge"}
    template = {"labels": labels, "capacity": {"cpu": "3920m", "memory": "14Gi", "pods": "58"}}
    group = {"name": "workers", "min": 3, "max": 6, "matchLabels": labels, "template": template}
    Path("groups.yaml").write_text(yaml.safe_dump({"nodeGroups": [group]}), "utf-8")
    document = plan(wukong, "-s", CLUSTER, "-f", WEB, "--node-groups", "groups.yaml")
    text = document["verdict"]["text"]
    assert (text[:24], text[-28:]) == ("Completes in about 2 min", " with 1 more node, in 1 of 1")
    nodes = document["shown"]["nodes"]
    assert (nodes["before"], nodes["most"], nodes["after"], nodes["needed"]) == (3, 4, 3, [])
    assert document["shown"]["workloads"]["shop/web"]["minAvailable"] == 3
    assert document["replay"].endswith("--node-groups groups.yaml --story")


def test_prune_deletes_what_has_the_labels_and_is_in_no_file(wukong: Wukong) -> None:
    cluster = yaml.safe_load(CLUSTER.read_text("utf-8"))
    for item in cluster["items"]:
        if item["kind"] in ("Deployment", "PodDisruptionBudget"):
            item["metadata"]["labels"] = {"part-of": "shop"}
    Path("cluster.yaml").write_text(yaml.safe_dump(cluster), "utf-8")
    document = plan(wukong, "-s", "cluster.yaml", "-f", FIXED, "--prune", "-l", "part-of=shop")
    assert actions_of(document) == [("change", "Deployment shop/web"), ("delete", "PodDisruptionBudget shop/web")]


def test_a_folder_is_all_manifests_in_it(wukong: Wukong) -> None:
    Path("all").mkdir()
    Path("all/b.yml").write_bytes(FIXED.read_bytes())
    Path("all/a.json").write_text(json.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "new"}}))
    Path("all/notes.txt").write_text("not a manifest")
    assert actions_of(plan(wukong, "-s", CLUSTER, "-f", "all")) == [
        ("create", "Namespace new"),
        ("change", "Deployment shop/web"),
    ]


WRONG: dict[str, tuple[list[str], str]] = {
    "nothing to do": ([], "expected a change: -f FILE, --image, --scale, --drain"),
    "no such workload": (["--image", "deploy/shop/wbe=x"], 'no Deployment shop/wbe. Did you mean "shop/web"?'),
    "no such kind": (["--scale", "deplo/web=2"], "--scale: expected a workload such as deploy/web"),
    "no such container": (["--image", "deploy/shop/web:app=x"], "expected one of its containers, web, after a colon"),
    "no image": (["--image", "deploy/web"], "--image: expected NAME=VALUE such as deploy/web=web:2"),
    "no number": (["--scale", "deploy/shop/web=many"], "expected replicas from 0 to 100,000"),
    "no replicas": (["--scale", "ds/shop/web=2"], "a DaemonSet has no replicas"),
    "no such node": (["--drain", "node-9"], '--drain: expected a node of the cluster, got "node-9". Did you mean'),
    "no such zone": (["--lose", "zone=eu"], "there are eu-1a, eu-1b, eu-1c"),
    "no such group": (["--add-nodes", "gpu=2"], "expected a node of the cluster, or a group or instance type of one"),
    "no nodes": (["--add-nodes", "node-1=0"], "expected a number of nodes from 1 to 1,000"),
    "prune what": (["--drain", "node-1", "--prune"], "--prune -l SELECTOR: both are needed"),
    "prune without files": (["--prune", "-l", "a=b"], "--prune: expected -f with what is to stay"),
    "seeds": (["--drain", "node-1", "--seeds", "0"], "--seeds: expected 1 to 10,000 of them"),
    "until": (["--drain", "node-1", "--until", "soon"], "--until: expected a duration such as 90s"),
    "a share": (["--drain", "node-1", "--min-available", "120%"], "--min-available: expected a number of pods"),
}


@pytest.mark.parametrize("title", WRONG)
def test_wrong_input_is_named_with_its_option_and_what_was_expected(title: str, wukong: Wukong) -> None:
    arguments, text = WRONG[title]
    run = wukong("plan", "-s", CLUSTER, *arguments)
    assert (run.code, run.out) == (2, "")
    assert text in run.err


def test_every_problem_of_every_option_is_said_at_once(wukong: Wukong) -> None:
    run = wukong("plan", "-s", CLUSTER, "--drain", "x", "--scale", "deploy/y=1", "--image", "z")
    assert (run.code, len(run.err.splitlines())) == (2, 3)


def test_what_the_api_server_would_refuse_is_wrong_input(wukong: Wukong) -> None:
    change = yaml.safe_load(WEB.read_text("utf-8"))
    change["spec"]["selector"] = {"matchLabels": {"app": "other"}}
    Path("web.yaml").write_text(yaml.safe_dump(change), "utf-8")
    run = wukong("plan", "-s", CLUSTER, "-f", "web.yaml")
    assert (run.code, run.out) == (2, "")
    assert "Deployment shop/web: the API server refuses it: " in run.err


def test_a_manifest_without_a_namespace_is_taken_into_that_of_the_option(wukong: Wukong) -> None:
    change = yaml.safe_load(WEB.read_text("utf-8"))
    del change["metadata"]["namespace"]
    Path("web.yaml").write_text(yaml.safe_dump(change), "utf-8")
    assert actions_of(plan(wukong, "-s", CLUSTER, "-f", "web.yaml", "-n", "shop")) == [
        ("change", "Deployment shop/web")
    ]
    assert actions_of(plan(wukong, "-s", CLUSTER, "-f", "web.yaml")) == [("create", "Deployment default/web")]


@pytest.mark.slow
def test_all_cores_say_what_one_does(wukong: Wukong, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ("plan", "-s", LARGER, "--drain", "od-a1", "--seeds", "6", "-o", "json")
    texts = []
    for cores in (1, 2):
        monkeypatch.setattr("os.cpu_count", lambda cores=cores: cores)
        texts.append(wukong(*arguments).out)
    assert texts[0] == texts[1] != ""
