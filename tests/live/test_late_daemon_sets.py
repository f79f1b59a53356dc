"""A DaemonSet's status that stays behind: why the checkers do not ask for more of a node that came again."""

from __future__ import annotations

import time
from typing import Any

from testbed import nodes
from testbed.client import Client
from testbed.control_plane import ControlPlane

DAEMON_SETS = "/apis/apps/v1/namespaces/default/daemonsets"
PODS = "/api/v1/namespaces/default/pods"


async def test_a_node_that_goes_and_comes_again_while_its_daemon_stays_is_not_counted_again(
    few_controllers: ControlPlane,
) -> None:
    """kube-controller-manager looks at a DaemonSet for a node only where a pod has to come or go (syncNodeUpdate)."""
    async with Client.of(few_controllers.kubeconfig) as client:
        await create_nodes(client, "n0", "n1")
        await create_daemon_set(client, "agent")
        await wait_for_counts(client, "agent", 2)
        names = {await bound_node(client, pod): pod["metadata"]["name"] for pod in await list_pods(client)}
        await client.delete("/api/v1/nodes/n1")
        await client.patch(f"{PODS}/{names['n0']}", {"metadata": {"labels": {"looked": "at"}}})
        await wait_for_counts(client, "agent", 1)
        await create_daemon_set(client, "witness", nodeSelector={"kubernetes.io/hostname": "n1"})
        await wait_for_counts(client, "witness", 0)
        await create_nodes(client, "n1")
        await wait_for_counts(client, "witness", 1)  # the new node has been looked at for every DaemonSet
        await wait_for_counts(client, "agent", 1)
        assert sorted(pod["spec"]["nodeName"] for pod in await list_pods(client)) == ["n0", "n1"]


async def create_nodes(client: Client, *names: str) -> None:
    for name in names:
        await client.create("/api/v1/nodes", nodes.a_node(name, now=time.time()))
        await client.patch(f"/api/v1/nodes/{name}", {"spec": {"taints": None}})


async def create_daemon_set(client: Client, name: str, **spec: Any) -> None:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "a:1"}], **spec}}
    body = {"metadata": {"name": name}, "spec": {"selector": {"matchLabels": labels}, "template": template}}
    await client.create(DAEMON_SETS, body)


async def wait_for_counts(client: Client, name: str, count: int) -> None:
    def is_counted(daemon_set: Any) -> bool:
        status = daemon_set["status"]
        counts = (status["desiredNumberScheduled"], status["currentNumberScheduled"])
        return counts == (count, count) and "observedGeneration" in status

    await client.wait_until(f"{DAEMON_SETS}/{name}", is_counted)


async def list_pods(client: Client) -> list[Any]:
    pods: list[Any] = (await client.get(PODS, labelSelector="app=agent"))["items"]
    return pods


async def bound_node(client: Client, pod: Any) -> str:
    path = f"{PODS}/{pod['metadata']['name']}"
    return str((await client.wait_until(path, lambda it: bool(it["spec"].get("nodeName"))))["spec"]["nodeName"])
