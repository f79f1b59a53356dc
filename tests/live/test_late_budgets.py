"""Where Kubernetes itself lets a budget be broken, or counts a pod again: why the checkers let it pass."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from live.second_leader import HoldingProxy, second_controller_manager
from testbed.client import ApiError, Client
from testbed.control_plane import ControlPlane

PODS = "/api/v1/namespaces/default/pods"
BUDGET = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
LABELS = {"app": "web"}


async def test_a_leader_whose_pods_are_behind_lets_a_budget_be_broken(
    few_controllers: ControlPlane, tmp_path: Path
) -> None:
    """The new leader counts an evicted pod out and forgets that it was evicted; the old one still sees it healthy.

    The old leader's status is written at the budget's newest version, so the API server takes it for the truth.
    """
    few_controllers.end("controller-manager")
    proxy = HoldingProxy(few_controllers.kubeconfig)
    async with (
        Client.of(few_controllers.kubeconfig) as client,
        proxy.kubeconfig(tmp_path) as kubeconfig,
    ):
        with second_controller_manager(few_controllers, kubeconfig, "disruption-controller"):
            await create_budget(client)
            proxy.hold("pods")
            proxy.hold("poddisruptionbudgets")
            few_controllers.launch("controller-manager")
            await evict(client, "web-0")
            await wait_for_count(client, healthy=2)
            with pytest.raises(ApiError, match="disruption budget"):
                await evict(client, "web-1")
            few_controllers.end("controller-manager")  # or both would write in turns
            await proxy.release("poddisruptionbudgets")
            await wait_for_count(client, healthy=3)
            await evict(client, "web-1")
            assert await list_staying(client) == ["web-2"]


async def test_a_pod_that_turned_unready_unseen_leaves_free_of_charge_and_the_next_breaks_the_budget(
    few_controllers: ControlPlane,
) -> None:
    """The budget was counted before the pod turned unready, and goes on allowing one more."""
    async with Client.of(few_controllers.kubeconfig) as client:
        await create_budget(client)
        few_controllers.end("controller-manager")  # it hears of nothing that happens from now on
        await set_ready(client, "web-0", is_ready=False)
        await evict(client, "web-0")
        assert (await client.get(f"{BUDGET}/web"))["status"]["disruptionsAllowed"] == 1
        await evict(client, "web-1")
        assert await list_staying(client) == ["web-2"]


async def test_a_pod_that_was_deleted_unseen_is_evicted_free_of_charge_and_the_next_breaks_the_budget(
    few_controllers: ControlPlane,
) -> None:
    """The budget was counted before. The pod is still ready, and stays until a kubelet has stopped it."""
    async with Client.of(few_controllers.kubeconfig) as client:
        await create_budget(client)
        few_controllers.end("controller-manager")  # it hears of nothing that happens from now on
        await client.delete(f"{PODS}/web-0")
        await evict(client, "web-0")
        assert (await client.get(f"{BUDGET}/web"))["status"]["disruptionsAllowed"] == 1
        await evict(client, "web-1")
        assert await list_staying(client) == ["web-2"]


async def test_a_pod_that_was_evicted_two_minutes_ago_and_is_still_there_counts_again(
    few_controllers: ControlPlane,
) -> None:
    async with Client.of(few_controllers.kubeconfig) as client:
        await create_budget(client)
        for seconds, healthy in ((60, 2), (130, 3)):
            evicted_at = (datetime.now(UTC) - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")
            status = {"disruptedPods": {"web-0": evicted_at}, "currentHealthy": 0}
            await client.patch(f"{BUDGET}/web/status", {"status": status})
            await client.wait_until(f"{BUDGET}/web", partial(has_count, healthy=healthy))


async def create_budget(client: Client) -> None:
    """Over three ready pods, two of which it asks for; returns when they are counted."""
    for number in range(3):
        await create_ready_pod(client, f"web-{number}")
    spec = {"minAvailable": 2, "selector": {"matchLabels": LABELS}}
    await client.create(BUDGET, {"metadata": {"name": "web"}, "spec": spec})
    await wait_for_count(client, healthy=3)


async def list_staying(client: Client) -> list[str]:
    pods = [pod["metadata"] for pod in (await client.get(PODS))["items"]]
    return [meta["name"] for meta in pods if "deletionTimestamp" not in meta]


async def create_ready_pod(client: Client, name: str) -> None:
    spec = {"nodeName": "n0", "containers": [{"name": "web", "image": "web:1"}]}
    await client.create(PODS, {"metadata": {"name": name, "labels": LABELS}, "spec": spec})
    await set_ready(client, name, is_ready=True)


async def set_ready(client: Client, name: str, *, is_ready: bool) -> None:
    ready = {"type": "Ready", "status": str(is_ready)}
    await client.patch(f"{PODS}/{name}/status", {"status": {"phase": "Running", "conditions": [ready]}})


def has_count(budget: Any, healthy: int) -> bool:
    return bool((budget.get("status") or {}).get("currentHealthy") == healthy)


async def wait_for_count(client: Client, healthy: int) -> None:
    """Until a controller has counted so many, and knows of no eviction that it has not seen."""

    def is_counted(budget: Any) -> bool:
        return has_count(budget, healthy) and not budget["status"].get("disruptedPods")

    await client.wait_until(f"{BUDGET}/web", is_counted)


async def evict(client: Client, name: str) -> None:
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    await client.create(f"{PODS}/{name}/eviction", body)
