"""metrics.k8s.io without a metrics-server: PodMetrics as objects of a CRD, whose numbers a test writes.

Used by tests of autoscalers. kube-controller-manager lists them by the labels of pods, so they carry those.
"""

from __future__ import annotations

import asyncio
from typing import Any

from testbed.client import ApiError, Client

DEADLINE_SECONDS = 60.0
CRD: dict[str, Any] = {
    "metadata": {
        "name": "pods.metrics.k8s.io",
        "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes/metrics"},
    },
    "spec": {
        "group": "metrics.k8s.io",
        "scope": "Namespaced",
        "names": {"plural": "pods", "singular": "podmetrics", "kind": "PodMetrics", "listKind": "PodMetricsList"},
        "versions": [
            {
                "name": "v1beta1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


async def create_pod_metrics_kind(client: Client) -> None:
    """Have the kind served, whoever was first to ask for it."""
    try:
        await client.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", CRD)
    except ApiError as error:
        if error.status != 409:
            raise
    async with asyncio.timeout(DEADLINE_SECONDS):
        while True:
            try:
                await client.get("/apis/metrics.k8s.io/v1beta1/pods")
                return
            except ApiError as error:
                if error.status not in (404, 429, 503):  # the new kind is served a moment after it was made
                    raise
                await asyncio.sleep(0.2)
