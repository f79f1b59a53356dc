"""Builders for the tests of the embedded store: a server with a clock that stands still, and small objects."""

from __future__ import annotations

from typing import Any

from small_cluster import ManualClock
from wukong.api.kinds import CONFIG_MAPS, DEPLOYMENTS, NAMESPACES, POD_DISRUPTION_BUDGETS, PODS
from wukong.api.resources import Key
from wukong.embedded.store import Server
from wukong.ports import Document, PatchBody

NAMESPACE = "shop"
BUDGETS = POD_DISRUPTION_BUDGETS


def a_server(**options: Any) -> Server:
    server = Server(ManualClock(), **options)
    server.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
    return server


def key(name: str) -> Key:
    return Key(NAMESPACE, name)


def a_map(name: str, **meta: Any) -> Document:
    return {"metadata": {"name": name, **meta}, "data": {"a": "1"}}


def a_pod(name: str = "web", labels: dict[str, str] | None = None, **spec: Any) -> Document:
    containers = [{"name": "main", "image": "registry.example/app:1"}]
    meta = {"name": name, "labels": labels if labels is not None else {"app": "web"}}
    return {"metadata": meta, "spec": {"containers": containers, **spec}}


def a_running_pod(server: Server, name: str = "web", *, is_ready: bool = True, node: str = "n1") -> Document:
    server.create(PODS, a_pod(name, nodeName=node), NAMESPACE)
    ready = {"type": "Ready", "status": "True" if is_ready else "False"}
    status = {"status": {"phase": "Running", "conditions": [ready]}}
    return server.patch(PODS, key(name), PatchBody("strategic", status), "status")


def a_budget(server: Server, name: str = "budget", policy: str = "", **status: int) -> Document:
    """Create a budget for all pods of app=web. Its status is as given, and up to date."""
    spec: Document = {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}
    spec |= {"unhealthyPodEvictionPolicy": policy} if policy else {}
    server.create(BUDGETS, {"metadata": {"name": name}, "spec": spec}, NAMESPACE)
    counts = {"observedGeneration": 1, "disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1, **status}
    return server.patch(BUDGETS, key(name), merge_patch(status=counts), "status")


def merge_patch(**body: Any) -> PatchBody:
    return PatchBody("merge", body)


__all__ = [
    "BUDGETS", "CONFIG_MAPS", "DEPLOYMENTS", "NAMESPACE", "PODS",
    "a_budget", "a_map", "a_pod", "a_running_pod", "a_server", "key", "merge_patch",
]  # fmt: skip
