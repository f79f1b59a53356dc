"""What Kubernetes does under a leader whose watches are behind: why the checkers let it pass in an embedded cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from live.second_leader import HoldingProxy, second_controller_manager
from testbed.client import ApiError, Client
from testbed.pytest_plugin import OwnControlPlane

PODS = "/api/v1/namespaces/default/pods"
BUDGET = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
LABELS = {"app": "web"}
ONLY_BUDGETS = {"controller-manager": ["--controllers=serviceaccount-controller,disruption-controller"]}


async def test_a_leader_whose_pods_are_behind_lets_a_budget_be_broken(
    own_control_plane: OwnControlPlane, tmp_path: Path
) -> None:
    """The new leader counts an evicted pod out and forgets that it was evicted; the old one still sees it healthy.

    The old leader's status is written at the budget's newest version, so the API server takes it for the truth.
    """
    with own_control_plane(extra_flags=ONLY_BUDGETS) as plane:
        plane.end("controller-manager")
        proxy = HoldingProxy(plane)
        async with (
            Client.of(plane.kubeconfig) as client,
            proxy.kubeconfig(tmp_path) as kubeconfig,
        ):
            with second_controller_manager(plane, kubeconfig, "disruption-controller"):
                for number in range(3):
                    await create_ready_pod(client, f"web-{number}")
                spec = {"minAvailable": 2, "selector": {"matchLabels": LABELS}}
                await client.create(BUDGET, {"metadata": {"name": "web"}, "spec": spec})
                await wait_for_count(client, healthy=3)
                proxy.hold("pods")
                proxy.hold("poddisruptionbudgets")
                plane.launch("controller-manager")
                await evict(client, "web-0")
                await wait_for_count(client, healthy=2)
                with pytest.raises(ApiError, match="disruption budget"):
                    await evict(client, "web-1")
                plane.end("controller-manager")  # or both would write in turns
                await proxy.release("poddisruptionbudgets")
                await wait_for_count(client, healthy=3)
                await evict(client, "web-1")
                left = [pod for pod in (await client.get(PODS))["items"] if "deletionTimestamp" not in pod["metadata"]]
                assert [pod["metadata"]["name"] for pod in left] == ["web-2"]


async def create_ready_pod(client: Client, name: str) -> None:
    spec = {"nodeName": "n0", "containers": [{"name": "web", "image": "web:1"}]}
    await client.create(PODS, {"metadata": {"name": name, "labels": LABELS}, "spec": spec})
    ready = {"type": "Ready", "status": "True"}
    await client.patch(f"{PODS}/{name}/status", {"status": {"phase": "Running", "conditions": [ready]}})


async def wait_for_count(client: Client, healthy: int) -> None:
    """Until a controller has counted so many, and knows of no eviction that it has not seen."""

    def is_counted(budget: Any) -> bool:
        status = budget.get("status") or {}
        return (status.get("currentHealthy"), status.get("disruptedPods")) == (healthy, None)

    await client.wait_until(f"{BUDGET}/web", is_counted)


async def evict(client: Client, name: str) -> None:
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    await client.create(f"{PODS}/{name}/eviction", body)
