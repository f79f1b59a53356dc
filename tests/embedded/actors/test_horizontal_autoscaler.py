"""HorizontalPodAutoscalers on virtual time: usage, bounds, windows, and that a cluster with them comes to rest.

What one look decides is compared with kube-controller-manager in tests/live/test_autoscaler_comparison.py.
"""

from __future__ import annotations

from typing import Any

import pytest

from embedded.actors.actor_world import NAMESPACE, a_template, a_workload, a_world, get_object, merge, scale, status_of
from wukong.api.apps import Deployment
from wukong.api.kinds import DEPLOYMENTS, HORIZONTAL_POD_AUTOSCALERS, WORKLOAD_USAGES
from wukong.api.resources import Key
from wukong.app.snapshots import load, make_baseline
from wukong.embedded.actors.horizontal_autoscaler.replica_calculator import (
    PodSample,
    Tolerances,
    propose_by_average,
    propose_by_utilization,
)
from wukong.embedded.scenario import Scenario
from wukong.embedded.world.world import World
from wukong.ports import Document, PatchBody

NOW = 10_000.0


def an_autoscaler(world: World, target: Document | None = None, **spec: Any) -> None:
    target = target or {"type": "Utilization", "averageUtilization": 50}
    body = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "minReplicas": 2,
        "maxReplicas": 8,
        "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}],
        **spec,
    }
    world.server.create(HORIZONTAL_POD_AUTOSCALERS, {"metadata": {"name": "web"}, "spec": body}, NAMESPACE)


def use(world: World, **usage: Any) -> None:
    head = {"apiVersion": WORKLOAD_USAGES.api_version, "kind": WORKLOAD_USAGES.kind, "metadata": {"name": "web"}}
    patch = PatchBody("apply", {**head, **usage}, force=True)
    world.server.patch(WORKLOAD_USAGES, Key(NAMESPACE, "web"), patch)


def a_busy_world(replicas: int = 2) -> World:
    world, template = a_world(), a_template()
    template["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
    world.server.create(DEPLOYMENTS, a_workload(replicas=replicas, template=template), NAMESPACE)
    world.run(seconds=60)
    return world


def replicas_of(world: World) -> int:
    return int(get_object(world, DEPLOYMENTS)["spec"]["replicas"])


def reason_of(world: World, type_: str) -> str:
    conditions = status_of(world, HORIZONTAL_POD_AUTOSCALERS)["conditions"]
    return str(next(entry["reason"] for entry in conditions if entry["type"] == type_))


def test_it_grows_at_once_and_shrinks_when_five_minutes_have_shown_less() -> None:
    world = a_busy_world()
    an_autoscaler(world)
    use(world, totals={"cpu": "3"})  # 150 % of two: six would have 50 %
    world.run(seconds=90)
    assert replicas_of(world) == 6
    use(world, totals={"cpu": "1500m"})
    world.run(seconds=240)
    assert (replicas_of(world), reason_of(world, "AbleToScale")) == (6, "ScaleDownStabilized")
    world.run(seconds=120)
    assert replicas_of(world) == 3


def test_without_usage_its_bounds_hold_and_nothing_else_changes() -> None:
    world = a_busy_world(replicas=9)
    an_autoscaler(world)
    world.run(seconds=60)
    assert replicas_of(world) == 8
    assert reason_of(world, "ScalingActive") == "FailedGetResourceMetric"
    scale(world, DEPLOYMENTS, 1)
    world.run(seconds=60)
    assert replicas_of(world) == 2


def test_what_is_scaled_to_nothing_stays_so() -> None:
    world = a_busy_world(replicas=0)
    an_autoscaler(world)
    world.run(seconds=60)
    assert (replicas_of(world), reason_of(world, "ScalingActive")) == (0, "ScalingDisabled")


def test_a_cluster_with_an_autoscaler_comes_to_rest_and_it_looks_when_it_would_have() -> None:
    world = a_busy_world()
    an_autoscaler(world)
    use(world, percents={"cpu": 50})
    assert world.run(seconds=3600) == "quiet"
    use(world, percents={"cpu": 100})
    world.run(seconds=16)
    assert replicas_of(world) > 2, "it did not look within a period"


def test_a_policy_bounds_how_many_come_in_a_period() -> None:
    world = a_busy_world()
    policy = {"type": "Pods", "value": 1, "periodSeconds": 120}
    an_autoscaler(world, behavior={"scaleUp": {"policies": [policy]}})
    use(world, totals={"cpu": "4"})
    world.run(seconds=100)
    assert (replicas_of(world), reason_of(world, "ScalingLimited")) == (3, "ScaleUpLimit")
    world.run(seconds=100)
    assert replicas_of(world) == 4


def test_a_missing_target_is_said() -> None:
    world = a_busy_world()
    an_autoscaler(world, scaleTargetRef={"apiVersion": "apps/v1", "kind": "Deployment", "name": "gone"})
    world.run(seconds=60)
    (condition,) = status_of(world, HORIZONTAL_POD_AUTOSCALERS)["conditions"]
    assert condition["message"].endswith('deployments.apps "gone" not found')


def test_an_autoscaler_is_defaulted_as_kubernetes_does() -> None:
    world = a_world()
    reference = {"kind": "Deployment", "name": "web"}
    spec = {"scaleTargetRef": reference, "maxReplicas": 3, "behavior": {"scaleDown": {"selectPolicy": "Min"}}}
    world.server.create(HORIZONTAL_POD_AUTOSCALERS, {"metadata": {"name": "web"}, "spec": spec}, NAMESPACE)
    merge(world, HORIZONTAL_POD_AUTOSCALERS, "web", {"metadata": {"labels": {"a": "b"}}})
    stored = get_object(world, HORIZONTAL_POD_AUTOSCALERS)["spec"]
    assert stored["minReplicas"] == 1
    assert stored["metrics"][0]["resource"]["target"]["averageUtilization"] == 80
    assert stored["behavior"]["scaleUp"]["stabilizationWindowSeconds"] == 0
    assert [policy["value"] for policy in stored["behavior"]["scaleUp"]["policies"]] == [4, 100]
    assert stored["behavior"]["scaleDown"]["selectPolicy"] == "Min"


def sample(name: str, usage: int | None, **fields: Any) -> PodSample:
    return PodSample(name, request=1000, usage=usage, is_measured=usage is not None, **fields)


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        ([sample("a", 1000), sample("b", 1000)], 4),  # twice the target
        ([sample("a", 520), sample("b", 530)], 2),  # within a tenth of it
        ([sample("a", 1000), sample("b", None)], 2),  # who is missing uses nothing: 50 % of two
        ([sample("a", 100), sample("b", None)], 2),  # who is missing uses all
        ([sample("a", 1500), sample("b", 1500), sample("c", None, phase="Pending")], 6),  # 100 % of three
        ([sample("a", 1000), sample("b", 1000, is_terminating=True)], 2),
        ([sample("a", 1000), sample("b", 1000, is_ready=False, ready_since=NOW, started_at=NOW - 10)], 2),
    ],
)
def test_pods_that_are_missing_or_not_ready_dampen_the_change(pods: list[PodSample], expected: int) -> None:
    proposal = propose_by_utilization(pods, len(pods) if len(pods) < 3 else 3, 50, "cpu", Tolerances(), NOW)
    assert proposal.replicas == expected


def test_an_average_value_needs_no_requests() -> None:
    pods = [PodSample("a", request="missing", usage=300, is_measured=True)]
    assert propose_by_average(pods, 1, 100, "memory", Tolerances(), NOW).replicas == 3
    assert propose_by_utilization(pods, 1, 50, "memory", Tolerances(), NOW).problem == "missing"


def test_one_that_a_snapshot_shows_without_metrics_goes_by_the_usual_one() -> None:
    """As another version of the API shows it: the server would have filled them in."""
    deployment = a_workload(replicas=2, template=a_template())
    deployment |= {"apiVersion": "apps/v1", "kind": "Deployment"}
    deployment["metadata"]["namespace"] = NAMESPACE
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    autoscaler: Document = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": NAMESPACE},
        "spec": {"scaleTargetRef": target, "minReplicas": 3, "maxReplicas": 8},
    }
    baseline = make_baseline(load([deployment, autoscaler]), Scenario())
    scaled = baseline.state.get(Deployment, Key(NAMESPACE, "web"))
    assert scaled is not None
    assert scaled.spec.replicas == 3
