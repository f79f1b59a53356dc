"""Bad input: one clear message with the place and the fix, exit code 2, never a traceback."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.conftest import Run, Wukong
from cli.manifests import Manifest, deployment, kubectl_list, node, pod, write_json, write_yaml


def changed(manifest: Manifest, path: str, value: object) -> Manifest:
    """The manifest with one value replaced: changed(pod(), "spec.priority", 3)."""
    copy: Any = json.loads(json.dumps(manifest))
    *way, last = path.split(".")
    inner = copy
    for step in way:
        inner = inner[int(step)] if step.isdigit() else inner.setdefault(step, {})
    inner[int(last) if last.isdigit() else last] = value
    return copy  # type: ignore[no-any-return]


def node_affinity(side: str, content: object) -> dict[str, object]:
    return {"nodeAffinity": {f"{side}DuringSchedulingIgnoredDuringExecution": content}}


def gt(value: str) -> dict[str, object]:
    return {"nodeSelectorTerms": [{"matchExpressions": [{"key": "cores", "operator": "Gt", "values": [value]}]}]}


WEIGHT_ZERO = [{"weight": 0, "preference": {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}}]
REQUESTS = "spec.containers.0.resources.requests"

# What is in web.yaml, and what the message must contain.
MANIFESTS: dict[str, tuple[str | Manifest | list[Manifest], list[str]]] = {
    "broken YAML": ("kind: Pod\nspec: a: b\n", ["web.yaml: broken YAML: line 2, column 8"]),
    "broken JSON": ('{"kind": "Pod", "spec": {', ["web.yaml: broken JSON"]),
    "no mapping": ("- just\n- words\n", ["web.yaml: expected a Kubernetes object"]),
    "nothing at all": ("", ["web.yaml: expected a Pod or a workload", "got nothing"]),
    "no kind": ({"metadata": {"name": "web"}}, ["web.yaml", '"kind"', "Add apiVersion and kind"]),
    "a kind nobody knows": (
        {**pod(), "kind": "Pdo"},
        ["web.yaml: $.kind", 'unknown kind "Pdo"', 'Did you mean "Pod"?'],
    ),
    "a kind of another group": (
        {**deployment(), "apiVersion": "example.com/v1"},
        ["web.yaml: expected a Pod or a workload", "got Deployment"],
    ),
    "a job": (
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}},
        ["web.yaml: a Job is not modelled", "kind: Pod"],
    ),
    "a cron job": (
        {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "j"}},
        ["web.yaml: a CronJob is not modelled"],
    ),
    "two pods": ([pod("one"), pod("two")], ["web.yaml: expected one pod or workload, got 2", "default/one"]),
    "no template": (changed(deployment(), "spec.template", None), ["web.yaml: Deployment default/web", "template"]),
    "a wrong quantity": (
        pod(cpu="two"),
        ["web.yaml: Pod default/web: $.spec.containers[0].resources.requests.cpu", "expected a quantity", "'two'"],
    ),
    "a wrong quantity in a template": (
        deployment(cpu="1x"),
        ["web.yaml: Deployment default/web: $.spec.template.spec.containers[0].resources.requests.cpu", "'1x'"],
    ),
    "a negative quantity": (pod(cpu="-1"), ["requests.cpu: expected 0 or more"]),
    "a request above its limit": (
        changed(pod(cpu="2"), "spec.containers.0.resources.limits", {"cpu": "1"}),
        ["web.yaml: Pod default/web: $.spec.containers[0].resources.requests.cpu: expected at most the limit"],
    ),
    "a misspelt resource": (
        changed(pod(), REQUESTS, {"memroy": "1Gi"}),
        ["$.spec.containers[0].resources.requests.memroy", 'Did you mean "memory"?'],
    ),
    "weight zero": (
        pod(affinity=node_affinity("preferred", WEIGHT_ZERO)),
        ["web.yaml: Pod default/web", "preferredDuringSchedulingIgnoredDuringExecution[0].weight", "1 to 100, got 0"],
    ),
    "Gt with letters": (
        pod(affinity=node_affinity("required", gt("abc"))),
        ["web.yaml", "nodeSelectorTerms[0].matchExpressions[0].values", "integer for Gt"],
    ),
    "an unknown operator": (
        pod(affinity=node_affinity("required", json.loads(json.dumps(gt("1")).replace("Gt", "Int")))),
        ["web.yaml: Pod default/web: $.spec.affinity", ".operator: expected one of In, NotIn", 'Did you mean "In"?'],
    ),
    "a number as label": (
        changed(pod(), "metadata.labels.version", 3),
        ["web.yaml: Pod default/web: $.metadata.labels", "expected str, got int", "Put the value in quotes"],
    ),
    "a list where a map belongs": (changed(pod(), "spec.nodeSelector", ["disk"]), ["$.spec.nodeSelector"]),
    "an unknown priority class": (
        pod(priorityClassName="hihg"),
        ["web.yaml: Pod default/web: $.spec.priorityClassName", 'Did you mean "high"?'],
    ),
    "a priority class of a template": (
        deployment(priorityClassName="hihg"),
        ["web.yaml: Deployment default/web: $.spec.template.spec.priorityClassName"],
    ),
    "a spread of nothing": (
        pod(topologySpreadConstraints=[{"maxSkew": 0, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}]),
        ["web.yaml: Pod default/web: $.spec.topologySpreadConstraints[0].maxSkew: expected 1 or more, got 0"],
    ),
    "a number beyond reason": (
        changed(pod(), "spec.priority", 10**30),
        ["Pod default/web: $.spec.priority", "64 bits"],
    ),
    "a number beyond reason in a template": (
        deployment(terminationGracePeriodSeconds=10**30),
        ["web.yaml: Deployment default/web: $.spec.template.spec.terminationGracePeriodSeconds", "64 bits"],
    ),
    "a quantity beyond reason": (
        pod(cpu="9E"),
        ["web.yaml: Pod default/web: $.spec.containers[0].resources.requests.cpu: expected what a machine can have"],
    ),
    "no containers": (changed(pod(), "spec.containers", []), ["web.yaml: Pod default/web: $.spec.containers"]),
    "the second document": ("kind: Service\n---\nkind: Pod\nspec: 3\n", ["web.yaml: document 2: Pod: $.spec"]),
    "twice the same": ([pod(), pod()], ["web.yaml: Pod default/web is twice in this file"]),
}

# What is in cluster.json, and what the message must contain.
SNAPSHOTS: dict[str, tuple[str | Manifest | list[Manifest], list[str]]] = {
    "an empty file": ("", ["cluster.json: expected Kubernetes objects, found none", "kubectl get"]),
    "an empty list": (kubectl_list(), ["cluster.json: expected Kubernetes objects, found none"]),
    "cut off": (json.dumps(kubectl_list(node("a")))[:-20], ["cluster.json: broken JSON", "cut off"]),
    "an unknown kind": (
        [node("a"), {**node("b"), "kind": "Noed"}],
        ["cluster.json: items[1]: $.kind", 'Did you mean "Node"?'],
    ),
    "a wrong quantity of a node": (
        changed(node("a"), "status.allocatable.memory", "8GB"),
        ["cluster.json: Node a: $.status.allocatable.memory: expected a quantity", "'8GB'"],
    ),
    "a wrong quantity of a pod": (
        [node("a"), pod("old", cpu="1,5", on="a")],
        ["cluster.json: Pod default/old: $.spec.containers[0].resources.requests.cpu: expected a quantity"],
    ),
    "a wrong quantity in a status": (
        {**pod("old", on="a"), "status": {"containerStatuses": [{"allocatedResources": {"cpu": "?"}}]}},
        ["cluster.json: Pod default/old: $.status.containerStatuses[0].allocatedResources.cpu"],
    ),
    "a quantity beyond reason": (
        changed(node("a"), "status.allocatable.cpu", "9E"),
        ["cluster.json: Node a: $.status.allocatable.cpu: expected what a machine can have, got '9E'"],
    ),
    "a node without a name": (changed(node("a"), "metadata.name", ""), ["cluster.json: Node", "$.metadata.name"]),
    "a taint without a key": (
        changed(node("a"), "spec.taints", [{"effect": "NoSchedule"}]),
        ["cluster.json: Node a: $.spec.taints[0]", "key"],
    ),
    "a pod without its priority class": (
        [node("a"), pod("old", on="a", priorityClassName="gone")],
        ["cluster.json: Pod default/old: $.spec.priorityClassName"],
    ),
}


@pytest.fixture(autouse=True)
def files(tmp_path: Path) -> None:
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 9}
    write_json(tmp_path / "cluster.json", node("a"), high)
    write_yaml(tmp_path / "web.yaml", pod("web"))


def write(path: Path, content: str | Manifest | list[Manifest]) -> None:
    if isinstance(content, str):
        path.write_text(content, "utf-8")
    elif path.suffix == ".json":
        write_json(path, *(content if isinstance(content, list) else [content]))
    else:
        write_yaml(path, *(content if isinstance(content, list) else [content]))


def complains(run: Run, *parts: str) -> None:
    assert run.code == 2, run.out + run.err
    assert run.out == ""
    assert "Traceback" not in run.err
    for part in parts:
        assert part in run.err


@pytest.mark.parametrize("verb", ["capacity", "explain"])
@pytest.mark.parametrize("row", MANIFESTS)
def test_a_bad_manifest_is_refused_with_place_and_fix(row: str, verb: str, wukong: Wukong, tmp_path: Path) -> None:
    content, parts = MANIFESTS[row]
    write(tmp_path / "web.yaml", content)
    complains(wukong(verb, "-s", "cluster.json", "-f", "web.yaml", "-o", "json"), "error: ", *parts)


@pytest.mark.parametrize("row", SNAPSHOTS)
def test_a_bad_snapshot_is_refused_with_place_and_fix(row: str, wukong: Wukong, tmp_path: Path) -> None:
    content, parts = SNAPSHOTS[row]
    write(tmp_path / "cluster.json", content)
    complains(wukong("capacity", "-s", "cluster.json", "-f", "web.yaml"), "error: ", *parts)


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (("capacity", "-s", "clutser.json", "-f", "web.yaml"), ["clutser.json: no such file", "cluster.json"]),
        (("capacity", "-s", "no/where.json", "-f", "web.yaml"), ["no/where.json: no such file"]),
        (("capacity", "-s", "cluster.json", "-f", "wed.yaml"), ["wed.yaml: no such file", "web.yaml"]),
        (("capacity", "-s", "empty", "-f", "web.yaml"), ["empty: expected Kubernetes objects, found none"]),
        (("capacity", "-s", "cluster.json"), ["Missing option '-f'"]),
        (("capacity", "-s", "cluster.json", "-f", "web.yaml", "--max", "0"), ["--max"]),
        (("capacity", "-s", "cluster.json", "-f", "web.yaml", "--max", "many"), ["--max"]),
        (("capacity", "-s", "cluster.json", "-f", "web.yaml", "--kubernets", "1.35"), ["--kubernetes"]),
        (("capacity", "-s", "cluster.json", "-f", "web.yaml", "--kubernetes", "new"), ["--kubernetes: expected"]),
        (("capacity", "-s", "cluster.json", "-f", "web.yaml", "-o", "xml"), ["json", "yaml", "wide"]),
        (("capacity", "-s", "-", "-f", "-"), ["--snapshot and --filename: only one of them can be standard input"]),
        (("explain", "-s", "cluster.json"), ["Name one pod"]),
        (("explain", "-s", "cluster.json", "pod/a", "-f", "web.yaml"), ["Name one pod"]),
        (("explain", "-s", "cluster.json", "node/a"), ["node/a: expected pod/NAMESPACE/NAME"]),
        (("explain", "-s", "cluster.json", "pod/a/b/c"), ["pod/a/b/c: expected pod/NAMESPACE/NAME"]),
        (("explain", "-s", "cluster.json", "pod/shop/web"), ["cluster.json: no pod shop/web", "shop has no pods"]),
        (("replay", "none.jsonl"), ["none.jsonl: no such file"]),
        (("replay",), ["Missing argument"]),
    ],
)
def test_a_bad_argument_is_refused_with_its_name(
    arguments: tuple[str, ...], parts: list[str], wukong: Wukong, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    complains(wukong(*arguments), *parts)


def test_every_problem_of_a_file_is_told_at_once(wukong: Wukong, tmp_path: Path) -> None:
    bad = [changed(node(name), "status.allocatable.cpu", "x") for name in "ab"]
    write_json(tmp_path / "cluster.json", *bad, {**pod("p"), "kind": "Pdo"}, changed(pod("q"), "spec.priority", "high"))
    run = wukong("capacity", "-s", "cluster.json", "-f", "web.yaml")
    complains(run, "Node a: ", "Node b: ", "items[2]: $.kind", "items[3]: Pod default/q: $.spec.priority")
    assert run.err.count("error: cluster.json: ") == 4


def test_every_problem_of_a_pod_is_told_at_once(wukong: Wukong, tmp_path: Path) -> None:
    bad = changed(pod(cpu="x", affinity=node_affinity("required", gt("abc"))), "spec.tolerations", [{"key": "a b"}])
    write_yaml(tmp_path / "web.yaml", bad)
    run = wukong("capacity", "-s", "cluster.json", "-f", "web.yaml")
    assert run.err.count("error: web.yaml: Pod default/web: $.spec.") == 3


def test_of_very_many_problems_the_first_are_told_and_the_rest_counted(wukong: Wukong, tmp_path: Path) -> None:
    write_json(tmp_path / "cluster.json", *(node(f"n{number}", cpu="x") for number in range(100)))
    lines = wukong("capacity", "-s", "cluster.json", "-f", "web.yaml").err.splitlines()
    assert len(lines) == 21
    assert lines[-1] == "error: … and 180 more problems"


def test_the_same_object_in_two_files_is_refused_with_both_names(wukong: Wukong, tmp_path: Path) -> None:
    (tmp_path / "snapshot").mkdir()
    for name in ("one.json", "two.json"):
        write_json(tmp_path / "snapshot" / name, node("a"), pod("old", on="a"))
    run = wukong("capacity", "-s", "snapshot", "-f", "web.yaml")
    complains(run, "snapshot/two.json: Node a is in snapshot/one.json, too. Remove one of the two.", "Pod default/old")


def test_a_damaged_gzip_is_told(wukong: Wukong, tmp_path: Path) -> None:
    whole = gzip.compress((tmp_path / "cluster.json").read_bytes())
    (tmp_path / "cut.gz").write_bytes(whole[:-30])
    complains(wukong("capacity", "-s", "cut.gz", "-f", "web.yaml"), "cut.gz: damaged gzip")
    (tmp_path / "recording.gz").write_bytes(gzip.compress(f"{scenario()}\n".encode())[:-4])
    complains(wukong("replay", "recording.gz"), "recording.gz: after line 1: damaged gzip")


BOUND = {"outcome": "bound", "node": "a", "feasible": ["a"], "scored": False}


def scenario(**changes: object) -> str:
    plain = {"version": "v1.35.8", "nodes": [node("a")], "steps": [{"pod": pod("web"), "attempts": [BOUND]}]}
    return json.dumps({**plain, **changes})


def step(**attempt: object) -> list[object]:
    return [{"pod": pod("web"), "attempts": [{"outcome": "bound", "node": "a", "feasible": ["a"], **attempt}]}]


RECORDINGS: dict[str, tuple[str, list[str]]] = {
    "no scenario": ("\n\n", ["expected scenarios, one JSON object per line, found none"]),
    "no JSON": ("recorded yesterday", ["line 2: broken JSON"]),
    "no object": ("[1]", ["line 2: $: expected object, got array"]),
    "no version": ("{}", ["line 2: $: object missing required field version"]),
    "a version that is none": (scenario(version="latest"), ["line 2: $.version: expected a version", "'latest'"]),
    "no attempts": (scenario(steps=[{"pod": pod("web"), "attempts": []}]), ["line 2: $.steps[0].attempts"]),
    "an unknown outcome": (
        scenario(steps=step(outcome="maybe")),
        ["line 2: $.steps[0].attempts[0].outcome", "'maybe'"],
    ),
    "bound to nothing": (scenario(steps=step(node="")), ["line 2: $.steps[0].attempts[0].node"]),
    "a score short": (
        scenario(steps=step(scored=True, scores={"ImageLocality": []}, final=[1])),
        ["line 2: $.steps[0].attempts[0].scores.ImageLocality: expected 1 numbers", "got 0"],
    ),
    "a text as score": (
        scenario(steps=step(scored=True, scores={"ImageLocality": ["much"]})),
        ["line 2: $.steps[0].attempts[0].scores[...][0]: expected int, got str"],
    ),
    "a wrong quantity": (
        scenario(nodes=[changed(node("a"), "status.allocatable.cpu", "x")]),
        ["line 2: $.nodes[0]: $.status.allocatable.cpu: expected a quantity"],
    ),
    "a wrong quantity of a pod": (
        scenario(existing=[pod("old", cpu="1,5", on="a")]),
        ["line 2: $.existing[0]: $.spec.containers[0].resources.requests.cpu: expected a quantity"],
    ),
    "a wrong quantity of a pod to place": (
        scenario(steps=[{"pod": pod("web", cpu="two"), "attempts": [BOUND]}]),
        ["line 2: $.steps[0].pod: $.spec.containers[0].resources.requests.cpu: expected a quantity", "'two'"],
    ),
    "a pod without a name": (
        scenario(steps=[{"pod": pod(""), "attempts": [BOUND]}]),
        ["line 2: $.steps[0].pod: $.metadata.name: expected a name"],
    ),
    "a number beyond reason": (
        scenario(existing=[pod("old", on="a", priority=10**30)]),
        ["line 2: $.existing[0].spec.priority: expected a number of at most 64 bits"],
    ),
    "an unknown workload": (scenario(workloads=[{"kind": "Servce"}]), ["line 2: $.workloads[0]", '"Service"']),
    "a pod twice": (scenario(existing=[pod("web", on="a")]), ["line 2: $.existing and $.steps: default/web"]),
}


@pytest.mark.parametrize("row", RECORDINGS)
def test_a_bad_line_of_a_recording_is_refused_with_its_number(row: str, wukong: Wukong, tmp_path: Path) -> None:
    content, parts = RECORDINGS[row]
    first = scenario() if content.strip() else ""
    (tmp_path / "r.jsonl").write_text(f"{first}\n{content}\n", "utf-8")
    complains(wukong("replay", "r.jsonl"), "error: r.jsonl: ", *parts)


def test_all_bad_lines_of_a_recording_are_told(wukong: Wukong, tmp_path: Path) -> None:
    (tmp_path / "r.jsonl").write_text("\n".join(["x", scenario(), "{}", "3"]), "utf-8")
    complains(wukong("replay", "r.jsonl"), "line 1: ", "line 3: ", "line 4: ")


CONFIG = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


@pytest.mark.parametrize(
    ("config", "parts"),
    [
        ("kind: [", ["config.yaml: broken YAML"]),
        ("kind: Pod", ["config.yaml: expected kind: KubeSchedulerConfiguration, got 'Pod'"]),
        (
            {**CONFIG, "profiles": [{"plugins": {"score": {"enabled": [{"name": "ImageLocalty"}]}}}]},
            ["config.yaml: $.profiles[].plugins", 'Did you mean "ImageLocality"?'],
        ),
        (
            {**CONFIG, "profiles": [{"pluginConfig": [{"name": "NodeResourcesFit", "args": {"gravity": 3}}]}]},
            ["config.yaml: $.profiles[].pluginConfig[NodeResourcesFit].args", "gravity", "not modelled"],
        ),
    ],
)
def test_a_scheduler_configuration_that_is_not_modelled_is_refused(
    config: str | Manifest, parts: list[str], wukong: Wukong, tmp_path: Path
) -> None:
    (tmp_path / "config.yaml").write_text(config if isinstance(config, str) else yaml.safe_dump(config), "utf-8")
    complains(wukong("capacity", "-s", "cluster.json", "-f", "web.yaml", "--scheduler-config", "config.yaml"), *parts)


def test_a_recording_is_decided_without_extenders(wukong: Wukong, tmp_path: Path) -> None:
    config = {**CONFIG, "extenders": [{"urlPrefix": "http://x"}]}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config), "utf-8")
    (tmp_path / "r.jsonl").write_text(scenario(), "utf-8")
    answer = wukong("replay", "r.jsonl", "--scheduler-config", "config.yaml")
    complains(answer, "config.yaml: $.extenders: ", "not modelled")
