"""What kube-controller-manager's DaemonSet controller is not told of: why the checkers let its status be behind."""

from __future__ import annotations

from typing import Any

from testbed.client import Client
from testbed.pytest_plugin import OwnControlPlane

NODES, PODS = "/api/v1/nodes", "/api/v1/namespaces/default/pods"
DAEMON_SETS = "/apis/apps/v1/namespaces/default/daemonsets"
ONLY_DAEMON_SETS = {"controller-manager": ["--controllers=serviceaccount-controller,daemonset-controller"]}


async def test_a_node_that_comes_again_under_its_pod_is_not_counted_until_something_else_happens(
    own_control_plane: OwnControlPlane,
) -> None:
    """syncNodeUpdate (1.35) looks at a DaemonSet only where a pod has to come or go, or one is misscheduled.

    That it has heard of the node by then shows in another DaemonSet, which gets a pod there.
    """
    with own_control_plane(extra_flags=ONLY_DAEMON_SETS) as plane:
        async with Client.of(plane.kubeconfig) as client:
            await add_node(client)
            await create_daemon_set(client, "agent", {})
            await create_daemon_set(client, "other", {"came": "again"})
            await wait_for_count(client, "agent", 1)
            (agent,) = (await client.get(PODS))["items"]
            await client.wait_until(f"{PODS}/{agent['metadata']['name']}", lambda pod: "nodeName" in pod["spec"])
            await client.delete(f"{NODES}/n0")
            await touch(client, "agent", "node is gone")
            await wait_for_count(client, "agent", 0)
            await add_node(client, came="again")
            await wait_for_count(client, "other", 1)
            assert await count_scheduled(client, "agent") == 0
            await touch(client, "agent", "node came again")
            await wait_for_count(client, "agent", 1)


async def add_node(client: Client, **labels: str) -> None:
    status = {"capacity": {"cpu": "4", "memory": "8Gi", "pods": "10"}}
    await client.create(NODES, {"metadata": {"name": "n0", "labels": labels}, "status": status})
    await client.patch(f"{NODES}/n0", {"spec": {"taints": None}})


async def create_daemon_set(client: Client, name: str, node_selector: dict[str, str]) -> None:
    pod_spec = {"nodeSelector": node_selector, "containers": [{"name": "main", "image": "main:1"}]}
    template = {"metadata": {"labels": {"app": name}}, "spec": pod_spec}
    spec = {"selector": {"matchLabels": {"app": name}}, "template": template}
    await client.create(DAEMON_SETS, {"metadata": {"name": name}, "spec": spec})


async def touch(client: Client, name: str, text: str) -> None:
    """Have the controller look at this DaemonSet."""
    await client.patch(f"{DAEMON_SETS}/{name}", {"metadata": {"annotations": {"touched": text}}})


async def count_scheduled(client: Client, name: str) -> int:
    return scheduled_of(await client.get(f"{DAEMON_SETS}/{name}"))


async def wait_for_count(client: Client, name: str, count: int) -> None:
    await client.wait_until(f"{DAEMON_SETS}/{name}", lambda daemon_set: scheduled_of(daemon_set) == count)


def scheduled_of(daemon_set: Any) -> int:
    status = daemon_set.get("status") or {}
    is_seen = status.get("observedGeneration") == daemon_set["metadata"]["generation"]
    return status["currentNumberScheduled"] if is_seen else -1
