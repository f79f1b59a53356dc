"""metrics.k8s.io without a metrics-server: NodeMetrics as objects of a CRD, whose numbers a test sets."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

from testbed.client import ApiError, Client

DEADLINE_SECONDS = 120.0
CRD: dict[str, Any] = {
    "metadata": {
        "name": "nodes.metrics.k8s.io",
        "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes/metrics"},
    },
    "spec": {
        "group": "metrics.k8s.io",
        "scope": "Cluster",
        "names": {"plural": "nodes", "singular": "nodemetrics", "kind": "NodeMetrics", "listKind": "NodeMetricsList"},
        "versions": [
            {
                "name": "v1beta1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                },
            }
        ],
    },
}


@contextlib.asynccontextmanager
async def metrics_of(client: Client, node: str, cpu: str, memory: str) -> AsyncIterator[Callable[[str, str], Any]]:
    """NodeMetrics, as metrics-server would serve them, from a CRD; kept fresh. Gives a function that changes them."""
    try:
        await client.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", CRD)
    except ApiError as error:
        if error.status != 409:  # another test was first
            raise
    path = "/apis/metrics.k8s.io/v1beta1/nodes"
    current = {"cpu": cpu, "memory": memory}

    def document() -> dict[str, Any]:
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        return {
            "apiVersion": "metrics.k8s.io/v1beta1",
            "kind": "NodeMetrics",
            "metadata": {"name": node},
            "timestamp": stamp,
            "window": "10s",
            "usage": dict(current),
        }

    async def refresh() -> None:
        while True:
            await asyncio.sleep(1.0)
            await client.patch(f"{path}/{node}", document())

    async def change(cpu: str, memory: str) -> None:
        current.update(cpu=cpu, memory=memory)
        await client.patch(f"{path}/{node}", document())

    async with asyncio.timeout(DEADLINE_SECONDS):
        while True:
            try:
                await client.create(path, document())
                break
            except ApiError as error:
                if error.status not in (404, 429, 503):  # the new kind is served a moment after it was made
                    raise
                await asyncio.sleep(0.2)
    keeper = asyncio.create_task(refresh())
    try:
        yield change
    finally:
        keeper.cancel()
        await client.delete(f"{path}/{node}")
