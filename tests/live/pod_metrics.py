"""metrics.k8s.io without a metrics-server: PodMetrics as objects of a CRD, and a load that the ready pods share.

The real HorizontalPodAutoscaler of the controller manager reads them. `node_metrics.py` is the same for nodes.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from typing import Any

from live.node_metrics import CRD as NODE_METRICS
from testbed.client import ApiError, Client

NAMES = {"plural": "pods", "singular": "podmetrics", "kind": "PodMetrics", "listKind": "PodMetricsList"}
CRD: dict[str, Any] = {
    "metadata": {**NODE_METRICS["metadata"], "name": "pods.metrics.k8s.io"},
    "spec": {**NODE_METRICS["spec"], "scope": "Namespaced", "names": NAMES},
}
GROUP = "metrics.k8s.io/v1beta1"
DEADLINE_SECONDS = 120.0
PAUSE_SECONDS = 0.5


class Load:
    """Work for the pods of one app: `cpu_milli` in all, the same for each that is ready."""

    def __init__(self, client: Client, namespace: str, app: str, cpu_milli: int) -> None:
        self.client, self.namespace, self.app, self.cpu_milli = client, namespace, app, cpu_milli

    async def measure(self) -> None:
        """Write down once what each pod uses."""
        path = f"/api/v1/namespaces/{self.namespace}/pods"
        pods = (await self.client.get(path, labelSelector=f"app={self.app}"))["items"]
        ready = [pod for pod in pods if is_ready(pod)]
        for pod in ready:
            await self.write(pod, self.cpu_milli // len(ready))

    async def write(self, pod: dict[str, Any], cpu_milli: int) -> None:
        name = pod["metadata"]["name"]
        usage = {"cpu": f"{cpu_milli}m", "memory": "64Mi"}
        document = {
            "apiVersion": GROUP,
            "kind": "PodMetrics",
            "metadata": {"name": name, "labels": pod["metadata"]["labels"]},
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "window": "1s",
            "containers": [{"name": container["name"], "usage": usage} for container in pod["spec"]["containers"]],
        }
        await self.client.send(
            "PATCH",
            f"/apis/{GROUP}/namespaces/{self.namespace}/pods/{name}",
            document,
            params={"fieldManager": "test", "force": "true"},
            content_type="application/apply-patch+yaml",
        )

    async def run(self) -> None:
        while True:
            await self.measure()
            await asyncio.sleep(PAUSE_SECONDS)


@contextlib.asynccontextmanager
async def load_of(client: Client, namespace: str, app: str, cpu_milli: int) -> AsyncIterator[Load]:
    """A load that is measured until the end of the block; change its `cpu_milli` at will."""
    await client.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", CRD)
    async with asyncio.timeout(DEADLINE_SECONDS):
        while True:
            try:
                await client.get(f"/apis/{GROUP}/namespaces/{namespace}/pods")
                break
            except ApiError as error:
                if error.status not in (404, 429, 503):  # a new kind is served a moment after it was made
                    raise
                await asyncio.sleep(0.1)
    load = Load(client, namespace, app, cpu_milli)
    measuring = asyncio.create_task(load.run())
    try:
        yield load
        assert not measuring.done(), measuring
    finally:
        measuring.cancel()


def is_ready(pod: dict[str, Any]) -> bool:
    conditions = pod["status"].get("conditions") or []
    is_so = any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)
    return is_so and "deletionTimestamp" not in pod["metadata"]
