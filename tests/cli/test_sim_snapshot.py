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


def list_items() -> list[dict[str, Any]]:
    """The objects of the snapshot."""
    items: list[dict[str, Any]] = yaml.load(CLUSTER.read_text("utf-8"), Loader=yaml.CSafeLoader)["items"]
    return items


def web(**template: object) -> dict[str, object]:
    """The shop's Deployment as it is in the snapshot, but for this."""
    (deployment,) = [
        document
        for document in list_items()
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
    assert (summary["available"], summary["minAvailable"], summary["evicted"]) == (6, 5, 0)
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
    assert (run.code, event_texts(run.document)) == (0, ["applies Deployment shop/web: unchanged"])


def test_unknown_fields_are_named_with_the_nearest_and_change_nothing(wukong: Wukong) -> None:
    change = web(nodeSelectr={"disk": "ssd"})
    change["spec"]["replica"] = 9  # type: ignore[index]
    run = wukong("sim", "run", "-s", CLUSTER, "-f", write("slip.yaml", change), "-o", "json")
    assert (run.code, event_texts(run.document)) == (0, ["applies Deployment shop/web: unchanged"])
    assert run.err.splitlines()[:3] == [
        'warning: slip.yaml: Deployment web: $.spec.replica: unknown field. Did you mean "replicas"?',
        "warning: slip.yaml: Deployment web: $.spec.template.spec.nodeSelectr: unknown field. Did you mean "
        '"nodeSelector"?',
        "warning: an API server drops unknown fields, so they change nothing; kubectl apply refuses them.",
    ]


def test_a_scenario_is_played_on_top_of_the_snapshot(wukong: Wukong) -> None:
    scenario = {
        "timeline": [{"at": "60s", "drain": "spot-a1"}],
        "expect": {"workloads": {"shop/web": {"minAvailable": 5, "evicted": 1, "perNode": {"spot-a1": 0}}}},
    }
    run = wukong("sim", "run", write("drain.yaml", scenario), "-s", CLUSTER)
    assert run.code == 0
    assert "1 pod had to move:\n  shop/web: spot-a1 → " in run.out


def test_manifests_alone_are_played_on_the_cluster_of_the_context_never_on_none(
    wukong: Wukong, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", "none")
    run = wukong("sim", "run", "-f", WEB)
    assert run.code == 2
    assert "none: there is no kubeconfig, and this is no pod. Name one with --kubeconfig." in run.err


def test_a_snapshot_in_the_middle_of_something_is_said_to_be_so(wukong: Wukong) -> None:
    items = list_items()
    fewer = [document for document in items if document["metadata"]["name"] != "web-6d5f9c-a"]
    run = wukong("sim", "run", "-s", write("cluster.yaml", {"kind": "List", "items": fewer}), "-f", WEB)
    assert run.code == 0
    assert any(
        "cluster.yaml was not at rest: what was under way was played to its end first" in note for note in run.notes
    )


def test_what_a_reduced_snapshot_cannot_know_is_said(wukong: Wukong) -> None:
    items = list_items()
    mark = {"version": 1, "takenAt": "2026-03-07T00:00:00Z"}
    Path("cluster.json").write_text(json.dumps({"kind": "List", "wukongSnapshot": mark, "items": items}), "utf-8")
    change = web()
    change["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "A", "value": "1"}]  # type: ignore[index]
    run = wukong("sim", "run", "-s", "cluster.json", "-f", write("change.yaml", change), "-o", "json")
    assert event_texts(run.document) == ["applies Deployment shop/web: unchanged"]
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
        (
            ("-s", CLUSTER, "-f", WEB, "--live"),
            "--snapshot and --live: a scenario begins with one cluster or the other.",
        ),
        (("-s", CLUSTER, "-f", WEB, "--context", "c"), "--snapshot and --kubeconfig or --context name two clusters."),
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
        "live",
        "two-clusters",
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


# What was wrong before ----------------------------------------------------------------------------------------------


def sick_cluster() -> list[dict[str, Any]]:
    """The example's cluster with a node that is not ready and a pod that no node takes, both for a long time."""
    items = list_items()
    for document in items:
        if document["kind"] == "Node" and document["metadata"]["name"] == "od-c1":
            conditions = document.setdefault("status", {}).setdefault("conditions", [])
            conditions[:] = [entry for entry in conditions if entry["type"] != "Ready"]
            conditions.append({"type": "Ready", "status": "Unknown", "lastTransitionTime": "2026-03-01T00:00:00Z"})
            document.setdefault("spec", {})["taints"] = [
                {"key": "node.kubernetes.io/unreachable", "effect": effect} for effect in ("NoSchedule", "NoExecute")
            ]
    waiting = {"requests": {"cpu": "900"}}
    items.append(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "huge", "namespace": "batch"},
            "spec": {"containers": [{"name": "main", "image": "huge:1", "resources": waiting}]},
        }
    )
    return items


def play_on_sick_cluster(wukong: Wukong, change: object, *more: object) -> Any:
    cluster = write("cluster.yaml", {"kind": "List", "items": sick_cluster()})
    return wukong("sim", "run", "-s", cluster, "-f", write("change.yaml", change), *more)


def test_what_was_wrong_before_and_is_no_worse_is_listed_apart_and_does_not_count(wukong: Wukong) -> None:
    changed = web()
    changed["spec"]["template"]["spec"]["containers"][0]["image"] = "web:2"  # type: ignore[index]
    run = play_on_sick_cluster(wukong, changed, "-o", "json")
    story = run.document
    assert (run.code, story["settled"], story["stuck"]) == (0, True, [])
    assert "pod batch/huge" in [reason.partition(": ")[0] for reason in story["stuckBefore"]]
    assert story["before"]["stuck"]
    shown = play_on_sick_cluster(wukong, changed)
    assert "Settled: the change makes nothing worse." in shown.out
    assert "  pod batch/huge: pending:" in shown.out.partition("Wrong before, and no worse now:\n")[2]


def test_what_the_change_itself_leaves_undone_counts_however_sick_the_cluster_was(wukong: Wukong) -> None:
    run = play_on_sick_cluster(wukong, web(affinity={"podAntiAffinity": APART}))
    assert run.code == 1
    assert "Not settled:\n  shop/web: ProgressDeadlineExceeded" in run.out
    assert "  pod batch/huge: pending:" in run.out.partition("Wrong before, and no worse now:\n")[2]
    assert "expectation" not in run.out  # nobody wrote one


def test_daemons_that_one_node_lacks_from_the_beginning_are_not_at_a_minimum_of_none(wukong: Wukong) -> None:
    story = play_on_sick_cluster(wukong, web(), "-o", "json").document
    daemons = story["workloads"]["kube-system/agent"]
    assert 0 < daemons["minAvailable"] == daemons["available"] == daemons["before"]["available"]
    assert daemons["unavailableSeconds"] == 0


def test_a_manifest_without_replicas_that_shrinks_a_workload_shows_what_was_before(wukong: Wukong) -> None:
    items = list_items()
    (deployment,) = [item for item in items if (item["kind"], item["metadata"]["name"]) == ("Deployment", "web")]
    applied = json.dumps(web())
    annotations = deployment["metadata"].setdefault("annotations", {})
    annotations["kubectl.kubernetes.io/last-applied-configuration"] = applied
    shrinking = web()
    del shrinking["spec"]["replicas"]  # type: ignore[attr-defined]
    cluster = write("cluster.yaml", {"kind": "List", "items": items})
    run = wukong("sim", "run", "-s", cluster, "-f", write("change.yaml", shrinking))
    text = " ".join(run.out.split())
    assert "applies Deployment shop/web: replicas 6 → 1 (the manifest does not say how many)" in text
    assert "6/6 → 1/1" in run.out


def test_a_manifest_that_changes_nothing_is_said_to_be_unchanged(wukong: Wukong) -> None:
    run = wukong("sim", "run", "-s", CLUSTER, "-f", write("same.yaml", web()))
    assert "applies Deployment shop/web: unchanged" in run.out


def test_a_deadlocked_rollout_shows_how_many_pods_are_up_to_date(wukong: Wukong) -> None:
    run = wukong("sim", "run", EXAMPLES / "sim" / "deadlock.yaml", "-o", "json")
    summary = run.document["workloads"]["default/web"]
    assert (summary["available"], summary["upToDate"], summary["replicas"]) == (3, 1, 3)
    shown = wukong("sim", "run", EXAMPLES / "sim" / "deadlock.yaml").out
    assert "UP TO DATE" in shown
    assert "1/3" in shown


def test_nobody_is_short_for_longer_than_the_story_lasts(wukong: Wukong) -> None:
    """A lost pod that no other node takes: the story ends with the last change, and so does the shortage."""
    nodes = [{"namePrefix": "node-", "count": 2, "capacity": {"cpu": 1, "memory": "4Gi"}}]
    scenario = {"nodes": nodes, "manifests": [tight(2)], "timeline": [{"at": "60s", "kill": "node-1"}], "until": "30m"}
    story = wukong("sim", "run", write("lost.yaml", scenario), "-o", "json").document
    assert story["settled"] is False
    assert 0 < story["workloads"]["default/tight"]["unavailableSeconds"] <= story["virtualSeconds"]


def tight(replicas: int) -> dict[str, Any]:
    """A Deployment of which a node takes one pod."""
    container = {"name": "main", "image": "tight:1", "resources": {"requests": {"cpu": "800m"}}}
    labels = {"app": "tight"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "tight"}, "spec": spec}


def test_causes_are_told_before_their_effects(wukong: Wukong) -> None:
    run = wukong("sim", "run", "-s", CLUSTER, "-f", WEB, "-o", "json")
    assert event_texts(run.document)[0].startswith("applies Deployment shop/web")
