"""Lets the controllers of a test bed do things, one after the other in each namespace, while their log is written.

Called by command.py. Each step waits for the one before to be seen to its end, so that audit.py can tell what caused
what. Only through the test bed's own client: what is measured is Kubernetes alone.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from testbed.client import Client, Json

APPS, CORE = "/apis/apps/v1/namespaces", "/api/v1/namespaces"
SETTLE_SECONDS = 0.3  # after each step: what follows from it without being waited for, such as a budget's count
WAIT_SECONDS = 120.0
AT_ONCE = {f"testbed.wukong/{name}-seconds": "0" for name in ("pull", "start", "ready")}  # a pod has one status: ready
BUSY = "while True: sum(range(10000))"


async def play_round(client: Client, namespace: str, node: str) -> None:
    await client.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
    await client.wait_until(f"{CORE}/{namespace}/serviceaccounts/default", lambda _: True, WAIT_SECONDS)
    await _play_deployment(client, namespace)
    await _create(client, f"{APPS}/{namespace}/statefulsets", _workload("db", serviceName="db", replicas=1))
    await _await_count(client, f"{APPS}/{namespace}/statefulsets/db", "availableReplicas")
    await _create(client, f"{APPS}/{namespace}/daemonsets", _workload("agent"))
    await _await_count(client, f"{APPS}/{namespace}/daemonsets/agent", "numberReady")
    await _create(client, f"/apis/batch/v1/namespaces/{namespace}/jobs", _job())
    await _cordon(client, node)
    await client.delete(f"{APPS}/{namespace}/deployments/web")
    await client.wait_until_gone(f"{APPS}/{namespace}/deployments/web", WAIT_SECONDS)
    await asyncio.sleep(SETTLE_SECONDS)
    await client.delete(f"/api/v1/namespaces/{namespace}")


async def _play_deployment(client: Client, namespace: str) -> None:
    path = f"{APPS}/{namespace}/deployments"
    budgets = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"
    selector = {"matchLabels": {"app": "web"}}
    await _create(client, budgets, {"metadata": {"name": "web"}, "spec": {"minAvailable": 0, "selector": selector}})
    await _create(client, path, _workload("web", replicas=1))
    await _await_count(client, f"{path}/web", "availableReplicas")
    containers = [{"name": "main", "image": "web:2"}]
    await client.patch(f"{path}/web", {"spec": {"template": {"spec": {"containers": containers}}}}, "strategic")
    await client.wait_until(f"{path}/web", _is_updated, WAIT_SECONDS)
    await asyncio.sleep(SETTLE_SECONDS)
    for _ in range(2):
        pods = await client.get(f"{CORE}/{namespace}/pods", labelSelector="app=web")
        running = [pod["metadata"] for pod in pods["items"] if not pod["metadata"].get("deletionTimestamp")]
        pod_path = f"{CORE}/{namespace}/pods/{running[0]['name']}"
        await client.create(f"{pod_path}/eviction", _eviction(running[0]))
        await client.wait_until_gone(pod_path, WAIT_SECONDS)
        await _await_count(client, f"{path}/web", "availableReplicas")


def _eviction(meta: Json) -> Json:
    head = {"apiVersion": "policy/v1", "kind": "Eviction"}
    return {**head, "metadata": {"name": meta["name"], "namespace": meta["namespace"]}}


async def _cordon(client: Client, node: str) -> None:
    path = f"/api/v1/nodes/{node}"
    await client.patch(path, {"spec": {"unschedulable": True}})
    await client.wait_until(path, _is_tainted, WAIT_SECONDS)
    await asyncio.sleep(SETTLE_SECONDS)
    await client.patch(path, {"spec": {"unschedulable": None}})
    await client.wait_until(path, lambda found: not _is_tainted(found), WAIT_SECONDS)
    await asyncio.sleep(SETTLE_SECONDS)


def _is_tainted(node: Json) -> bool:
    return any(taint["key"] == "node.kubernetes.io/unschedulable" for taint in node["spec"].get("taints") or ())


async def _create(client: Client, path: str, body: Json) -> None:
    await client.create(path, body)
    await asyncio.sleep(SETTLE_SECONDS)


async def _await_count(client: Client, path: str, field: str) -> None:
    await client.wait_until(path, lambda found: (found.get("status") or {}).get(field, 0) >= 1, WAIT_SECONDS)
    await asyncio.sleep(SETTLE_SECONDS)


def _is_updated(deployment: Json) -> bool:
    status = deployment.get("status") or {}
    counts = [status.get(name, 0) for name in ("replicas", "updatedReplicas", "availableReplicas")]
    return counts == [1, 1, 1] and status.get("observedGeneration") == deployment["metadata"]["generation"]


def _workload(name: str, **spec: object) -> Json:
    labels = {"app": name}
    pod = {"containers": [{"name": "main", "image": f"{name}:1"}], "terminationGracePeriodSeconds": 1}
    template = {"metadata": {"labels": labels, "annotations": AT_ONCE}, "spec": pod}
    return {"metadata": {"name": name}, "spec": {**spec, "selector": {"matchLabels": labels}, "template": template}}


def _job() -> Json:
    pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "job:1"}]}
    return {"metadata": {"name": "job"}, "spec": {"template": {"spec": pod}}}


@asynccontextmanager
async def busy_machine(processes: int) -> AsyncIterator[None]:
    """So many processes keep the cores busy meanwhile."""
    running = [await asyncio.create_subprocess_exec(sys.executable, "-c", BUSY) for _ in range(processes)]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            await process.wait()
