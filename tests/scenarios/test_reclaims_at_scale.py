"""Ten of thirty spot nodes are reclaimed at once under twelve workloads, in good order and in trouble."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from wukong.app.embedded import play_with
from wukong.embedded.faults.fault_counts import FaultCounts
from wukong.embedded.scenario import read_scenario
from wukong.embedded.scenario.record.story import Story

NOTICE_AT = 100
REPLICAS = 6  # of each Deployment
RECLAIMED = [f"spot-{number}" for number in range(1, 11)]
DEPLOYMENTS = [f"web-{number}" for number in range(1, 10)] + ["api"]
SPOT = {"matchExpressions": [{"key": "node.kubernetes.io/capacity", "operator": "In", "values": ["spot"]}]}


def a_template(name: str, ready_seconds: int) -> dict[str, Any]:
    preferred = [{"weight": 100, "preference": SPOT}]
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": name}},
    }
    spec = {
        "containers": [{"name": "app", "image": "app:1", "resources": {"requests": {"cpu": "500m"}}}],
        "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}},
        "topologySpreadConstraints": [spread],
        "terminationGracePeriodSeconds": 30,
    }
    annotations = {"sim.novasphere.dev/ready-seconds": str(ready_seconds)}
    return {"metadata": {"labels": {"app": name}, "annotations": annotations}, "spec": spec}


def list_workloads() -> list[dict[str, Any]]:
    """Ten Deployments that are ready after 20 to 60 s, one of them under an autoscaler; a StatefulSet; a Job."""
    manifests: list[dict[str, Any]] = []
    for index, name in enumerate(DEPLOYMENTS):
        selector = {"matchLabels": {"app": name}}
        spec = {"replicas": REPLICAS, "selector": selector, "template": a_template(name, 20 + 40 * index // 9)}
        manifests.append({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec})
        budget = {"minAvailable": REPLICAS - index % 2, "selector": selector}
        kind = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget"}
        manifests.append({**kind, "metadata": {"name": name}, "spec": budget})
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "api"}
    metric = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}}
    bounds = {"minReplicas": REPLICAS, "maxReplicas": 20, "metrics": [{"type": "Resource", "resource": metric}]}
    kind = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler"}
    manifests.append({**kind, "metadata": {"name": "api"}, "spec": {"scaleTargetRef": target, **bounds}})
    stateful: dict[str, Any] = {"serviceName": "db", "selector": {"matchLabels": {"app": "db"}}}
    stateful |= {"replicas": 3, "template": a_template("db", 20)}
    manifests.append({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"}, "spec": stateful})
    batch = a_template("batch", 1)
    batch["spec"]["restartPolicy"] = "Never"
    batch["metadata"]["annotations"]["sim.novasphere.dev/run-seconds"] = "900"
    job = {"completions": 4, "parallelism": 4, "template": batch}
    manifests.append({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "batch"}, "spec": job})
    return manifests


def give_notice(at: int, notice: str | None) -> list[dict[str, Any]]:
    patch = {"metadata": {"annotations": {"placement.novasphere.dev/notice": notice}}}
    return [
        {"at": f"{at}s", "patch": {"kind": "Node", "name": name, "type": "merge", "patch": patch}} for name in RECLAIMED
    ]


def play(seconds: int, *, is_withdrawn: bool = False, components: Sequence[str] = ("spot",)) -> Story:
    return play_with_faults(seconds, is_withdrawn=is_withdrawn, components=components)[0]


def play_with_faults(
    seconds: int, *faults: dict[str, Any], is_withdrawn: bool = False, components: Sequence[str] = ("spot",)
) -> tuple[Story, FaultCounts | None]:
    end = [{"at": f"{NOTICE_AT + seconds}s", "kill": name} for name in RECLAIMED]
    if is_withdrawn:
        end = give_notice(NOTICE_AT + 60, None)
    timeline = [*faults, *give_notice(NOTICE_AT, f"{seconds}s"), *end]
    scenario = {
        "components": list(components),
        "nodes": [
            {"namePrefix": "spot-", "count": 30, "spot": True, "capacity": {"cpu": 4, "memory": "16Gi"}},
            {"namePrefix": "od-", "count": 6, "spot": False, "capacity": {"cpu": 8, "memory": "32Gi"}},
        ],
        "manifests": list_workloads(),
        "timeline": sorted(timeline, key=lambda entry: int(entry["at"][:-1])),
        "until": "30m",
    }
    story, counts = play_with(read_scenario(json.dumps(scenario)), 1, ())
    assert story.findings == []
    return story, counts


def list_short(story: Story) -> dict[str, int]:
    """The Deployments that ever had fewer available than their own size, and how many. A surge asks for more."""
    named = {name.partition("/")[2]: summary for name, summary in story.workloads.items()}
    return {name: named[name].min_available for name in DEPLOYMENTS if named[name].min_available < REPLICAS}


def assert_whole(story: Story) -> None:
    """At rest every Deployment has its own size; the checkers have found no surge left."""
    named = {name.partition("/")[2]: summary for name, summary in story.workloads.items()}
    assert {name: (named[name].replicas, named[name].available) for name in DEPLOYMENTS} == dict.fromkeys(
        DEPLOYMENTS, (REPLICAS, REPLICAS)
    )


@pytest.mark.slow
def test_nobody_with_room_elsewhere_is_short_for_a_second() -> None:
    story = play(120)
    assert list_short(story) == {}
    assert_whole(story)


@pytest.mark.slow
def test_nobody_is_short_where_the_notice_is_withdrawn_half_way() -> None:
    story = play(120, is_withdrawn=True)
    assert list_short(story) == {}
    assert_whole(story)


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [30, 0])
def test_after_a_short_notice_all_come_again_and_no_surge_is_left(seconds: int) -> None:
    assert_whole(play(seconds))


TROUBLE = {
    "an API server that is gone for 20 s": [("failed", NOTICE_AT, 20, 1.0)],
    "the same when the replacements are ready": [("failed", NOTICE_AT + 20, 20, 1.0)],
    "processes that die in the middle": [("crash-midway", NOTICE_AT, 12, 0.2)],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", TROUBLE)
def test_nobody_is_short_in_trouble(name: str) -> None:
    faults: list[dict[str, Any]] = [
        {"at": f"{at}s", "fault": {"type": type_, "for": f"{seconds}s", "rate": rate}}
        for type_, at, seconds, rate in TROUBLE[name]
    ]
    story, counts = play_with_faults(120, *faults)
    ((type_, *_),) = TROUBLE[name]
    assert counts is not None
    assert counts.effective[type_] >= 3
    assert list_short(story) == {}
    assert_whole(story)


@pytest.mark.slow
def test_without_the_mover_all_fall_short() -> None:
    assert list_short(play(120, components=())).keys() == set(DEPLOYMENTS)
