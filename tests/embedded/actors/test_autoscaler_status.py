"""What an autoscaler measures and writes in its status: metrics of pods and containers, conditions, Events."""

from __future__ import annotations

from typing import Any

import pytest

from embedded.actors.actor_world import NAMESPACE, a_template, a_workload, a_world, get_object, status_of
from wukong.actions import Note
from wukong.api.kinds import DEPLOYMENTS, HORIZONTAL_POD_AUTOSCALERS, POD_METRICS, PODS, WORKLOAD_USAGES
from wukong.api.resources import Key
from wukong.embedded.world.world import World
from wukong.ports import Document, PatchBody

NAME = "web"
HALF: Document = {"type": "Utilization", "averageUtilization": 50}


def a_metric(name: str = "cpu", target: Document | None = None, container: str = "") -> Document:
    source = {"name": name, "target": target or HALF}
    if container:
        return {"type": "ContainerResource", "containerResource": {**source, "container": container}}
    return {"type": "Resource", "resource": source}


def a_scaled_world(*metrics: Document, usage: Document | None = None, replicas: int = 2, **spec: Any) -> World:
    """A world with a Deployment of two containers, of which main requests cpu and memory and side cpu alone."""
    world, template = a_world(), a_template()
    main = template["spec"]["containers"][0]
    main["resources"] = {"requests": {"cpu": "1", "memory": "1Gi"}}
    side = {**main, "name": "side", "resources": {"requests": {"cpu": "1"}}}
    template["spec"]["containers"] = [{**main, "name": "main"}, side]
    world.server.create(DEPLOYMENTS, a_workload(replicas=replicas, template=template), NAMESPACE)
    world.run(seconds=400)
    if usage is not None:
        head = {"apiVersion": WORKLOAD_USAGES.api_version, "kind": WORKLOAD_USAGES.kind, "metadata": {"name": NAME}}
        world.server.patch(WORKLOAD_USAGES, Key(NAMESPACE, NAME), PatchBody("apply", {**head, **usage}, force=True))
    body = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": NAME},
        "minReplicas": 1,
        "maxReplicas": 9,
        "metrics": list(metrics) or [a_metric()],
        **spec,
    }
    world.server.create(HORIZONTAL_POD_AUTOSCALERS, {"metadata": {"name": NAME}, "spec": body}, NAMESPACE)
    world.run(seconds=16)  # it looks once, 15 s after it came
    return world


def conditions_of(world: World) -> dict[str, tuple[str, str, str]]:
    entries = status_of(world, HORIZONTAL_POD_AUTOSCALERS)["conditions"]
    return {entry["type"]: (entry["status"], entry["reason"], entry["message"]) for entry in entries}


def numbers_of(world: World) -> tuple[int | None, int]:
    status = status_of(world, HORIZONTAL_POD_AUTOSCALERS)
    return status.get("currentReplicas"), status["desiredReplicas"]


def metrics_of(world: World) -> list[Document]:
    entries: list[Document] = status_of(world, HORIZONTAL_POD_AUTOSCALERS).get("currentMetrics") or []
    return entries


def events_of(world: World, reason: str) -> list[str]:
    notes = [step.action for step in world.trace if isinstance(step.action, Note)]
    return [note.text for note in notes if note.reason == reason]


def test_usage_at_the_target_is_shown_and_changes_nothing() -> None:
    world = a_scaled_world(usage={"percents": {"cpu": 50}})
    assert numbers_of(world) == (2, 2)
    current = {"averageValue": "1", "averageUtilization": 50}
    assert metrics_of(world) == [{"type": "Resource", "resource": {"name": "cpu", "current": current}}]
    metric = "cpu resource utilization (percentage of request)"
    text = f"the HPA was able to successfully calculate a replica count from {metric}"
    assert conditions_of(world) == {
        "AbleToScale": ("True", "ReadyForNewScale", "recommended size matches current size"),
        "ScalingActive": ("True", "ValidMetricFound", text),
        "ScalingLimited": ("False", "DesiredWithinRange", "the desired count is within the acceptable range"),
    }
    assert "lastScaleTime" not in status_of(world, HORIZONTAL_POD_AUTOSCALERS)


def test_a_change_of_scale_is_written_and_told() -> None:
    world = a_scaled_world(usage={"percents": {"cpu": 100}})
    assert get_object(world, DEPLOYMENTS)["spec"]["replicas"] == 4
    reason = "cpu resource utilization (percentage of request) above target"
    assert events_of(world, "SuccessfulRescale") == [f"New size: 4; reason: {reason}"]
    assert "lastScaleTime" in status_of(world, HORIZONTAL_POD_AUTOSCALERS)


def test_fewer_than_the_least_are_brought_to_it() -> None:
    world = a_scaled_world(usage={"percents": {"cpu": 50}}, minReplicas=3)
    assert get_object(world, DEPLOYMENTS)["spec"]["replicas"] == 3
    assert events_of(world, "SuccessfulRescale") == [
        "New size: 3; reason: Current number of replicas below Spec.MinReplicas"
    ]


def test_more_than_the_most_are_brought_to_it() -> None:
    world = a_scaled_world(maxReplicas=1)
    assert get_object(world, DEPLOYMENTS)["spec"]["replicas"] == 1
    assert events_of(world, "SuccessfulRescale") == [
        "New size: 1; reason: Current number of replicas above Spec.MaxReplicas"
    ]


def test_the_metric_that_asks_for_the_most_counts() -> None:
    metrics = [a_metric("cpu"), a_metric("memory", container="main")]
    world = a_scaled_world(*metrics, usage={"percents": {"cpu": 60, "memory": 90}})
    assert events_of(world, "SuccessfulRescale") == [
        "New size: 4; reason: memory container resource utilization (percentage of request) above target"
    ]


def test_a_metric_of_a_container_is_of_that_alone() -> None:
    world = a_scaled_world(a_metric("memory", container="main"), usage={"percents": {"memory": 50}})
    source = {"name": "memory", "container": "main", "current": {"averageValue": "512Mi", "averageUtilization": 50}}
    assert metrics_of(world) == [{"type": "ContainerResource", "containerResource": source}]


def test_an_average_value_has_no_utilization() -> None:
    target = {"type": "AverageValue", "averageValue": "500m"}
    world = a_scaled_world(a_metric("cpu", target), usage={"totals": {"cpu": "1"}})
    resource = {"name": "cpu", "current": {"averageValue": "500m"}}
    assert metrics_of(world) == [{"type": "Resource", "resource": resource}]
    assert conditions_of(world)["ScalingActive"][2].endswith("a replica count from cpu resource")


@pytest.mark.parametrize(
    ("metric", "reason", "problem"),
    [
        (a_metric("memory"), "FailedGetResourceMetric",
         "failed to get memory utilization: missing request for memory in container side of Pod "),
        (a_metric("cpu", container="gone"), "FailedGetContainerResourceMetric",
         "failed to get cpu utilization: unable to get metrics for resource cpu: no metrics returned"),
        ({"type": "Pods", "pods": {"metric": {"name": "x"}, "target": {"type": "AverageValue", "averageValue": "1"}}},
         "FailedGetPodsMetric", "no custom metrics are known"),
        ({"type": "External", "external": {"metric": {"name": "x"}, "target": {"type": "Value", "value": "1"}}},
         "FailedGetExternalMetric", "no external metrics are known"),
    ],
)  # fmt: skip
def test_a_metric_that_cannot_be_read_says_why(metric: Document, reason: str, problem: str) -> None:
    world = a_scaled_world(metric, usage={"totals": {"memory": "1Gi"}, "percents": {"cpu": 50}})
    status, said, text = conditions_of(world)["ScalingActive"]
    assert (status, said) == ("False", reason)
    assert text.startswith(f"the HPA was unable to compute the replica count: {problem}")
    (event,) = events_of(world, "FailedComputeMetricsReplicas")
    assert event.startswith("invalid metrics (1 invalid out of 1), first error is: failed to get ")
    assert numbers_of(world) == (2, 0)


def test_one_metric_that_fails_lets_the_others_grow_it_but_not_shrink_it() -> None:
    metrics = [a_metric("memory"), a_metric("cpu")]
    world = a_scaled_world(*metrics, usage={"percents": {"cpu": 100}})
    assert get_object(world, DEPLOYMENTS)["spec"]["replicas"] == 4
    world = a_scaled_world(*metrics, usage={"percents": {"cpu": 10}})
    assert conditions_of(world)["ScalingActive"][:2] == ("False", "FailedGetResourceMetric")
    assert get_object(world, DEPLOYMENTS)["spec"]["replicas"] == 2


def test_a_kind_without_a_scale_is_said() -> None:
    world = a_scaled_world(scaleTargetRef={"apiVersion": "apps/v1", "kind": "DaemonSet", "name": NAME})
    status, reason, text = conditions_of(world)["AbleToScale"]
    assert (status, reason) == ("False", "FailedGetScale")
    assert text.endswith('no matches for kind "DaemonSet" in group "apps"')
    assert numbers_of(world) == (None, 0)


def test_metrics_that_somebody_writes_of_pods_go_before_what_is_said_of_the_workload() -> None:
    world = a_scaled_world(a_metric("cpu"), usage={"percents": {"cpu": 200}}, maxReplicas=2)
    pods = world.server.list(PODS).items
    names = [pod["metadata"]["name"] for pod in pods]
    for name in names:
        containers = [{"name": "main", "usage": {"cpu": "250m"}}, {"name": "side", "usage": {"cpu": "750m"}}]
        document = {
            "metadata": {"name": name},
            "timestamp": "2035-01-01T00:00:00Z",
            "window": "15s",
            "containers": containers,
        }
        world.server.create(POD_METRICS, document, NAMESPACE)
    world.run(seconds=31)
    assert metrics_of(world)[0]["resource"]["current"] == {"averageValue": "1", "averageUtilization": 50}
