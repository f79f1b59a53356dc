"""Two schedulers on one cluster, each with nodes and a namespace of its own, alike but for their names.

`Twins` creates the same pod for both and shows what became of each, with the names taken out, so that the two must be
equal word for word.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from live.cluster import create_nodes
from live.random_cluster import AT_ONCE, Manifest
from testbed import nodes
from testbed.client import Client, Listed, as_json

STOCK, OURS = "stock", "ours"  # namespaces, and the beginnings of node names
NAMES = {STOCK: "default-scheduler", OURS: "wukong-test"}
WORLD = "world"
SECONDS = 120.0
PODS, EVENTS = "/api/v1/pods", "/apis/events.k8s.io/v1/events"


class Twins:
    def __init__(self, client: Client) -> None:
        self.client = client
        self.pods: dict[tuple[str, str], Any] = {}  # world and name → the pod as last seen, gone or not
        self.gone: set[tuple[str, str]] = set()
        self.events: dict[str, Any] = {}  # by uid
        self._changed = asyncio.Condition()

    # ---- what happens

    async def nodes(self, fleet: dict[str, Manifest]) -> None:
        """The same nodes for both, named after their world."""
        made = [
            {**nodes.a_node(f"{world}-{name}", now=time.time(), annotations=AT_ONCE, **like), "world": world}
            for world in NAMES
            for name, like in fleet.items()
        ]
        for node in made:
            node["metadata"]["labels"][WORLD] = node.pop("world")
        await create_nodes(self.client, made)

    async def create(self, manifest: Manifest) -> None:
        for world, scheduler in NAMES.items():
            spec = manifest["spec"]
            selector = {WORLD: world, **spec.get("nodeSelector", {})}
            spec = {**spec, "schedulerName": scheduler, "nodeSelector": selector}
            await self.client.create(f"/api/v1/namespaces/{world}/pods", {**manifest, "spec": spec})

    async def delete(self, name: str) -> None:
        for world in NAMES:
            await self.client.delete(f"/api/v1/namespaces/{world}/pods/{name}", grace_seconds=0)
        await self.until(lambda: all((world, name) in self.gone for world in NAMES), f"{name} gone")

    async def release(self, name: str) -> None:
        """Take its finalizers away."""
        for world in NAMES:
            body = {"metadata": {"finalizers": None}}
            await self.client.patch(f"/api/v1/namespaces/{world}/pods/{name}", body)

    async def label_node(self, name: str, labels: dict[str, str]) -> None:
        for world in NAMES:
            await self.client.patch(f"/api/v1/nodes/{world}-{name}", {"metadata": {"labels": labels}})

    # ---- what came of it

    async def settled(self, name: str, is_so: Callable[[Any], bool]) -> None:
        await self.until(lambda: all(is_so(self.pods.get((world, name), {})) for world in NAMES), f"{name} settled")

    async def until(self, is_so: Callable[[], bool], what: str) -> None:
        try:
            async with asyncio.timeout(SECONDS), self._changed:
                await self._changed.wait_for(is_so)
        except TimeoutError:
            raise AssertionError(f"not within {SECONDS:.0f} s: {what}") from None

    def shown(self, world: str, name: str) -> Any:
        """Node, nomination and what schedulers say in conditions."""
        pod = self.pods[world, name]
        told = [each for each in pod["status"]["conditions"] if each["type"] in ("PodScheduled", "DisruptionTarget")]
        return self.nameless(
            world,
            {
                "node": pod["spec"].get("nodeName"),
                "nominated": pod["status"].get("nominatedNodeName"),
                "conditions": sorted(_timeless(each) for each in told),
            },
        )

    def told(self, world: str) -> list[tuple[str, ...]]:
        """What Events say: about whom, reason, type, action, who reports it, and note."""
        found = {
            (
                *(event["regarding"]["name"], event["reason"], event["type"], event["action"]),
                *(self.nameless(world, event[field]) for field in ("reportingController", "note")),
            )
            for event in self.events.values()
            if event["metadata"]["namespace"] == world and event["reason"] in REASONS
        }
        return sorted(found)

    def nameless(self, world: str, found: Any) -> Any:
        if isinstance(found, dict):
            return {key: self.nameless(world, value) for key, value in found.items()}
        if isinstance(found, list | tuple):
            return [self.nameless(world, value) for value in found]
        if not isinstance(found, str):
            return found
        for (owner, name), pod in self.pods.items():
            if owner == world:
                found = found.replace(pod["metadata"]["uid"], f"uid-of-{name}")
        return found.replace(f"{world}/", "").replace(f"{world}-", "").replace(NAMES[world], "scheduler")

    # ---- watching

    async def follow(self, path: str) -> None:
        async for change in self.client.follow(path):
            raws = change.items if isinstance(change, Listed) else [change.object]
            is_gone = not isinstance(change, Listed) and change.type == "DELETED"
            async with self._changed:
                for raw in raws:
                    self._note(as_json(raw), path, is_gone=is_gone)
                self._changed.notify_all()

    def _note(self, found: Any, path: str, *, is_gone: bool) -> None:
        if path == EVENTS:
            self.events[found["metadata"]["uid"]] = found
            return
        place = found["metadata"]["namespace"], found["metadata"]["name"]
        self.pods[place] = found
        if is_gone:
            self.gone.add(place)


REASONS = ("Scheduled", "FailedScheduling", "Preempted")


def _timeless(condition: Manifest) -> list[tuple[str, str]]:
    return sorted((key, str(value)) for key, value in condition.items() if key != "lastTransitionTime")


def is_refused(pod: Any) -> bool:
    conditions = pod.get("status", {}).get("conditions", ())
    return any(each["type"] == "PodScheduled" and each["status"] == "False" for each in conditions)


def is_running(pod: Any) -> bool:
    """Bound, and its kubelet has had its say in the conditions."""
    return bool(pod.get("status", {}).get("phase") == "Running")


@asynccontextmanager
async def twins(client: Client) -> AsyncIterator[Twins]:
    for world in NAMES:
        await client.create("/api/v1/namespaces", {"metadata": {"name": world}})
        await client.wait_until(f"/api/v1/namespaces/{world}/serviceaccounts/default", lambda account: True)
    found = Twins(client)
    tasks = [asyncio.create_task(found.follow(path)) for path in (PODS, EVENTS)]
    try:
        yield found
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
