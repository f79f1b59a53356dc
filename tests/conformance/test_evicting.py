"""Eviction through disruption budgets."""

from __future__ import annotations

import pytest

from conformance_helpers import (
    BUDGETS,
    HELD,
    a_budget,
    a_node_name,
    a_pod,
    exists,
    is_ready,
    merging,
    until,
    until_gone,
)
from wukong.api.kinds import PODS
from wukong.api.resources import Key
from wukong.errors import Conflict, NotFound, ServerFailed, TooManyRequests
from wukong.ports import Cluster, Document


async def a_running_pod(cluster: Cluster, namespace: str, name: str) -> Document:
    await cluster.create(PODS, a_pod(name, nodeName=await a_node_name(cluster)), namespace)
    return await until(cluster, PODS, Key(namespace, name), is_ready)


async def a_known_budget(cluster: Cluster, namespace: str, name: str, app: str, min_available: int) -> Document:
    """A budget whose pods have been counted: until then it allows nothing."""
    await cluster.create(BUDGETS, a_budget(name, app, min_available), namespace)
    return await until(
        cluster, BUDGETS, Key(namespace, name), lambda found: found.get("status", {}).get("currentHealthy") == 1
    )


async def test_without_a_budget_a_pod_leaves_and_says_why(cluster: Cluster, namespace: str) -> None:
    await a_running_pod(cluster, namespace, "web")
    key = Key(namespace, "web")
    await cluster.patch(PODS, key, merging(metadata={"finalizers": [HELD]}))
    await cluster.evict(key)
    leaving = await cluster.get(PODS, key, dict)
    assert leaving["metadata"]["deletionTimestamp"]
    assert "DisruptionTarget" in [each["type"] for each in leaving["status"]["conditions"]]
    await cluster.patch(PODS, key, merging(metadata={"finalizers": None}))
    await until_gone(cluster, PODS, key)


async def test_a_budget_that_allows_it_is_charged(cluster: Cluster, namespace: str) -> None:
    await a_running_pod(cluster, namespace, "web")
    budget = await a_known_budget(cluster, namespace, "budget", "web", min_available=0)
    assert budget["status"]["disruptionsAllowed"] == 1
    await cluster.evict(Key(namespace, "web"))
    charged = await cluster.get(BUDGETS, Key(namespace, "budget"), dict)
    assert charged["status"]["disruptionsAllowed"] == 0
    await until_gone(cluster, PODS, Key(namespace, "web"))


async def test_a_budget_that_does_not_allow_it_says_not_now(cluster: Cluster, namespace: str) -> None:
    await a_running_pod(cluster, namespace, "web")
    await a_known_budget(cluster, namespace, "budget", "web", min_available=1)
    with pytest.raises(TooManyRequests) as caught:
        await cluster.evict(Key(namespace, "web"))
    assert caught.value.cause == "DisruptionBudget"
    assert "deletionTimestamp" not in (await cluster.get(PODS, Key(namespace, "web"), dict))["metadata"]


async def test_two_budgets_on_one_pod_are_an_error_of_the_server(cluster: Cluster, namespace: str) -> None:
    await a_running_pod(cluster, namespace, "web")
    for name in ("one", "two"):
        await a_known_budget(cluster, namespace, name, "web", min_available=0)
    with pytest.raises(ServerFailed, match="more than one PodDisruptionBudget"):
        await cluster.evict(Key(namespace, "web"))
    assert await exists(cluster, PODS, Key(namespace, "web"))


async def test_a_pending_pod_may_always_go(cluster: Cluster, namespace: str) -> None:
    await cluster.create(PODS, a_pod("web"), namespace)
    await cluster.create(BUDGETS, a_budget("budget", "web", min_available=1), namespace)
    await cluster.evict(Key(namespace, "web"))
    assert not await exists(cluster, PODS, Key(namespace, "web"))


async def test_only_the_pod_meant_is_evicted(cluster: Cluster, namespace: str) -> None:
    """A real server repeats the conflict to itself for 10 s before it answers."""
    await cluster.create(PODS, a_pod("web"), namespace)
    with pytest.raises(Conflict):
        await cluster.evict(Key(namespace, "web"), uid="00000000-0000-0000-0000-000000000000")
    assert await exists(cluster, PODS, Key(namespace, "web"))
    with pytest.raises(NotFound):
        await cluster.evict(Key(namespace, "other"))
