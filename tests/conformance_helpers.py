"""Helpers of the conformance tests: kinds, small objects, and waiting with a deadline. Use only the port."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from typing import Any

from wukong.api.kinds import NODES, POD_DISRUPTION_BUDGETS
from wukong.api.resources import Key, Resource
from wukong.api.unreadable import Unreadable
from wukong.cluster.list_watch import follow
from wukong.errors import NotFound
from wukong.ports import Cluster, Document, Event, Listing, PatchBody, Selection, WatchUpdate

CONFIG_MAPS = Resource(kind="ConfigMap", plural="configmaps")
BUDGETS = POD_DISRUPTION_BUDGETS
SECONDS = 120.0
HELD = "wukong.test/held"


def a_map(name: str, **meta: Any) -> Document:
    return {"metadata": {"name": name, **meta}, "data": {"a": "1"}}


def a_pod(name: str, **spec: Any) -> Document:
    """Nobody schedules it and no kubelet touches it unless `nodeName` is given."""
    container = {"name": "main", "image": "registry.example/app:1"}
    return {
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"schedulerName": "nobody", "containers": [container], **spec},
    }


def a_deployment(name: str, replicas: int = 0) -> Document:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": a_pod(name)["spec"]}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"metadata": {"name": name}, "spec": spec}


def a_budget(name: str, app: str, min_available: int) -> Document:
    return {
        "metadata": {"name": name},
        "spec": {"minAvailable": min_available, "selector": {"matchLabels": {"app": app}}},
    }


def owned_by(owner: Document) -> list[Document]:
    meta = owner["metadata"]
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": meta["name"], "uid": meta["uid"]}
    return [{**reference, "blockOwnerDeletion": True}]


def merging(**body: Any) -> PatchBody:
    return PatchBody("merge", body)


async def until(cluster: Cluster, resource: Resource, key: Key, is_so: Callable[[Document], bool]) -> Document:
    """The object as soon as it is as wanted."""
    seen: Document | None = None
    try:
        async with asyncio.timeout(SECONDS), aclosing(_following(cluster, resource, key)) as stream:
            async for update in stream:
                for seen in shown_by(update):
                    if is_so(seen):
                        return seen
    except TimeoutError:
        raise AssertionError(f"{resource.kind} {key} was not as expected in {SECONDS:.0f} s; last: {seen}") from None
    raise AssertionError("follow never ends")


async def until_gone(cluster: Cluster, resource: Resource, key: Key) -> None:
    try:
        async with asyncio.timeout(SECONDS), aclosing(_following(cluster, resource, key)) as stream:
            async for update in stream:
                if isinstance(update, Listing) and not update.items:
                    return
                if isinstance(update, Event) and update.type == "DELETED":
                    return
    except TimeoutError:
        raise AssertionError(f"{resource.kind} {key} was still there after {SECONDS:.0f} s") from None


def shown_by(update: WatchUpdate[Document]) -> list[Document]:
    """The objects that are there by what a follower yields."""
    if isinstance(update, Listing):
        return update.items
    return [document_of(update)] if isinstance(update, Event) and update.type in ("ADDED", "MODIFIED") else []


def document_of(event: Event[Document] | Event[Unreadable]) -> Document:
    """The object of an event, which must be one that can be read."""
    assert isinstance(event.object, dict), event.object
    return event.object


async def next_shown(stream: AsyncIterator[WatchUpdate[Document]]) -> list[Document]:
    """What the next update that shows an object shows; bookmarks and failures are passed over."""
    async for update in stream:
        if shown := shown_by(update):
            return shown
    raise AssertionError("follow never ends")


async def next_listing(stream: AsyncIterator[WatchUpdate[Document]]) -> list[Document]:
    async for update in stream:
        if isinstance(update, Listing):
            return update.items
    raise AssertionError("follow never ends")


async def exists(cluster: Cluster, resource: Resource, key: Key) -> bool:
    try:
        await cluster.get(resource, key, dict)
    except NotFound:
        return False
    return True


async def release(cluster: Cluster, key: Key) -> None:
    """Take the finalizers from a ConfigMap."""
    await cluster.patch(CONFIG_MAPS, key, merging(metadata={"finalizers": None}))


async def a_node_name(cluster: Cluster) -> str:
    """Some node that runs pods. One with a taint is another test's, and may be going silent just now."""
    page = await cluster.list(NODES, dict)
    return next(str(node["metadata"]["name"]) for node in page.items if not node["spec"].get("taints"))


def is_ready(pod: Document) -> bool:
    conditions = pod.get("status", {}).get("conditions") or []
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


def _following(cluster: Cluster, resource: Resource, key: Key) -> Any:
    return follow(cluster, resource, dict, Selection(key.namespace, fields=f"metadata.name={key.name}"))
