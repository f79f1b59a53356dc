"""ResourceQuotas in an embedded cluster: refusals word for word, charges, counts, and who comes back when."""

from __future__ import annotations

from typing import Any

import pytest

from embedded.actors.actor_world import NAMESPACE, a_workload, a_world, list_pods, merge, status_of
from wukong.api.kinds import DEPLOYMENTS, JOBS, PODS, REPLICA_SETS, RESOURCE_QUOTAS, SERVICES, STATEFUL_SETS
from wukong.api.resources import Key
from wukong.embedded.store.limits.pod_scopes import read_scopes
from wukong.embedded.store.limits.usage import evaluator_of, measure_pod
from wukong.embedded.world.world import World
from wukong.errors import ClusterError
from wukong.ports import Document


def a_quota(world: World, hard: dict[str, str], **spec: Any) -> None:
    world.server.create(RESOURCE_QUOTAS, {"metadata": {"name": "team"}, "spec": {"hard": hard, **spec}}, NAMESPACE)
    world.run(seconds=1)


def a_pod(name: str, requests: Document | None = None, **spec: Any) -> Document:
    container = {"name": "main", "image": "app:1", "resources": {"requests": requests or {}}}
    return {"metadata": {"name": name}, "spec": {"containers": [container], "schedulerName": "nobody", **spec}}


def create_pod(world: World, name: str, requests: Document | None = None, **spec: Any) -> str:
    """The refusal, or ""."""
    try:
        world.server.create(PODS, a_pod(name, requests, **spec), NAMESPACE)
    except ClusterError as error:
        return str(error)
    return ""


def used(world: World) -> Document:
    return dict(status_of(world, RESOURCE_QUOTAS, "team")["used"])


def test_a_new_quota_counts_nothing_until_its_controller_has_counted() -> None:
    world = a_world()
    quota = {"metadata": {"name": "team"}, "spec": {"hard": {"pods": "0"}}}
    world.server.create(RESOURCE_QUOTAS, quota, NAMESPACE)
    assert create_pod(world, "early") == ""
    world.run(seconds=1)
    assert used(world) == {"pods": "1"}
    refusal = 'pods "late" is forbidden: exceeded quota: team, requested: pods=1, used: pods=1, limited: pods=0'
    assert create_pod(world, "late") == refusal


def test_what_a_pod_takes_is_charged_at_once_and_given_back_when_it_is_gone() -> None:
    world = a_world()
    a_quota(world, {"requests.memory": "1Gi", "pods": "5"})
    assert create_pod(world, "one", {"memory": "600Mi"}) == ""
    assert used(world) == {"pods": "1", "requests.memory": "600Mi"}
    assert "used: requests.memory=600Mi, limited: requests.memory=1Gi" in create_pod(world, "two", {"memory": "500Mi"})
    world.server.delete(PODS, Key(NAMESPACE, "one"))
    assert used(world)["requests.memory"] == "600Mi"
    world.run(seconds=1)
    assert used(world) == {"pods": "0", "requests.memory": "0"}
    assert create_pod(world, "two", {"memory": "500Mi"}) == ""


def test_a_charge_that_no_pod_is_behind_is_taken_back_within_five_minutes() -> None:
    world = a_world()
    a_quota(world, {"pods": "5"})
    merge(world, RESOURCE_QUOTAS, "team", {"status": {"used": {"pods": "5"}}}, "status")
    world.run(seconds=200)
    assert used(world) == {"pods": "5"}
    world.run(seconds=101)
    assert used(world) == {"pods": "0"}


def test_a_quota_on_cpu_has_every_container_say_how_much() -> None:
    world = a_world()
    a_quota(world, {"requests.cpu": "4", "limits.cpu": "4"})
    refusal = "failed quota: team: must specify limits.cpu for: main; requests.cpu for: main"
    assert create_pod(world, "one").endswith(refusal)


@pytest.mark.parametrize(
    ("scopes", "counted", "others"),
    [
        ({"scopes": ["Terminating"]}, {"activeDeadlineSeconds": 9}, {}),
        ({"scopes": ["NotTerminating"]}, {}, {"activeDeadlineSeconds": 9}),
        ({"scopes": ["PriorityClass"]}, {"priorityClassName": "system-node-critical"}, {}),
        (
            {"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "DoesNotExist"}]}},
            {},
            {"priorityClassName": "system-node-critical"},
        ),
    ],
)
def test_a_quota_with_a_scope_counts_pods_in_it_alone(scopes: Document, counted: Document, others: Document) -> None:
    world = a_world()
    a_quota(world, {"pods": "0"}, **scopes)
    assert create_pod(world, "other", **others) == ""
    assert "exceeded quota" in create_pod(world, "counted", **counted)


def test_best_effort_is_a_pod_that_asks_for_neither_cpu_nor_memory() -> None:
    assert read_scopes(a_pod("x")).is_best_effort
    assert not read_scopes(a_pod("x", {"cpu": "1"})).is_best_effort


def test_a_finished_pod_counts_only_as_an_object() -> None:
    pod = {**a_pod("x", {"cpu": "1"}), "status": {"phase": "Succeeded"}}
    assert {name: str(amount) for name, amount in measure_pod(pod).items()} == {"count/pods": "1"}


def test_other_kinds_are_counted_by_number() -> None:
    evaluator = evaluator_of("deployments.apps")
    names = ["pods", "count/deployments.apps", "services"]
    assert evaluator.select_counted(names) == ["count/deployments.apps"]
    world = a_world()
    a_quota(world, {"services": "1", "services.nodeports": "1"})
    ports = [{"name": "a", "port": 80}, {"name": "b", "port": 81}]
    service = {"metadata": {"name": "web"}, "spec": {"type": "NodePort", "ports": ports}}
    with pytest.raises(ClusterError, match=r"requested: services.nodeports=2, used: services.nodeports=0"):
        world.server.create(SERVICES, service, NAMESPACE)


def test_a_replica_set_says_why_and_goes_on_when_the_quota_is_raised() -> None:
    world = a_world()
    a_quota(world, {"pods": "2"})
    world.server.create(DEPLOYMENTS, a_workload(replicas=4), NAMESPACE)
    world.run(seconds=30)
    assert len(list_pods(world)) == 2
    (replica_set,) = world.server.list(REPLICA_SETS).items
    (failure,) = replica_set["status"]["conditions"]
    assert (failure["type"], failure["reason"]) == ("ReplicaFailure", "FailedCreate")
    assert failure["message"].endswith("exceeded quota: team, requested: pods=1, used: pods=2, limited: pods=2")
    reasons = [entry["reason"] for entry in status_of(world, DEPLOYMENTS)["conditions"]]
    assert "FailedCreate" in reasons
    merge(world, RESOURCE_QUOTAS, "team", {"spec": {"hard": {"pods": "9"}}})
    world.run(seconds=1100)  # the longest that client-go waits before it tries again
    assert status_of(world, DEPLOYMENTS)["availableReplicas"] == 4
    (replica_set,) = world.server.list(REPLICA_SETS).items
    assert "conditions" not in replica_set["status"]


@pytest.mark.parametrize("kind", ["StatefulSet", "Job"])
def test_workloads_without_a_condition_try_again_too(kind: str) -> None:
    world = a_world()
    a_quota(world, {"pods": "1"})
    body = a_workload(serviceName="web", podManagementPolicy="Parallel")
    resource = STATEFUL_SETS
    if kind == "Job":
        template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "app:1"}]}}
        body = {"metadata": {"name": "web"}, "spec": {"parallelism": 3, "completions": 3, "template": template}}
        resource = JOBS
    world.server.create(resource, body, NAMESPACE)
    world.run(seconds=60)
    assert len(list_pods(world)) == 1
    merge(world, RESOURCE_QUOTAS, "team", {"spec": {"hard": {"pods": "9"}}})
    world.run(seconds=1100)
    assert len(list_pods(world)) == 3


def test_scopes_of_a_quota_cannot_change() -> None:
    world = a_world()
    a_quota(world, {"pods": "1"}, scopes=["BestEffort"])
    with pytest.raises(ClusterError, match="field is immutable"):
        merge(world, RESOURCE_QUOTAS, "team", {"spec": {"scopes": ["NotBestEffort"]}})
