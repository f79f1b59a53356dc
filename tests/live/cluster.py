"""A live cluster as its API server stores it, typed: furnished at random, kept current by a watch on its pods."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from random import Random

import msgspec

from live import random_cluster
from live.random_cluster import CLAIM, NAMESPACES, OWNER, Manifest
from testbed import nodes
from testbed.client import Client, Event, Listed
from wukong.api.core import Pod, PodCondition
from wukong.api.decode import decode_objects
from wukong.api.kinds import KINDS, PODS
from wukong.api.objects import Objects
from wukong.engine import Snapshot

SETTLE_SECONDS = 120.0
ANEW_EVERY = 10  # snapshots: to read all pods again for each would take most of the test's time
CORDONED = "node.kubernetes.io/unschedulable"
SENTINEL = "sentinel"

Changes = AsyncGenerator[Listed | Event, None]


class Cluster:
    """All objects, typed. The watch on pods is read while waiting: nothing happens to them in between."""

    def __init__(self, client: Client, objects: Objects, changes: AsyncIterator[Listed | Event]) -> None:
        self.client = client
        self.objects = objects
        self.changes = changes
        self.pods: dict[str, Pod] = {}
        self.taken = 0
        self.kept = Snapshot.of(objects)  # and kept current, pod by pod, as a running scheduler does

    def snapshot(self) -> Snapshot:
        """One of the objects as they are now: most are copies of the one that is kept, every tenth is made anew."""
        self.objects.pods = [*self.pods.values()]
        self.taken += 1
        return Snapshot.of(self.objects) if self.taken % ANEW_EVERY == 0 else self.kept.fork()

    async def create(self, manifest: Manifest) -> Pod:
        """The pod as it is stored, before anybody has looked at it."""
        path = f"/api/v1/namespaces/{manifest['metadata']['namespace']}/pods"
        return as_pod(await self.client.send("POST", path, manifest))

    async def settled(self, key: str) -> Pod:
        """The pod when it is bound or was refused."""
        await self.until(lambda: key in self.pods and is_settled(self.pods[key]))
        return self.pods[key]

    async def delete(self, key: str) -> None:
        namespace, _, name = key.partition("/")
        await self.client.delete(f"/api/v1/namespaces/{namespace}/pods/{name}", grace_seconds=0)
        await self.until(lambda: key not in self.pods)

    async def until(self, is_so: Callable[[], bool]) -> None:
        async with asyncio.timeout(SETTLE_SECONDS):
            while not is_so():
                self.note(await anext(self.changes))

    def note(self, change: Listed | Event) -> None:
        if isinstance(change, Listed):
            self.pods = {pod.key: pod for pod in map(as_pod, change.items)}
            self.objects.pods = [*self.pods.values()]
            self.kept = Snapshot.of(self.objects)
            return
        pod = as_pod(change.object)
        if pod.key in self.kept.pods:
            self.kept.forget(pod.key)
        if change.type == "DELETED":
            self.pods.pop(pod.key, None)
            return
        self.pods[pod.key] = pod
        if pod.spec.node_name and not pod.is_finished:
            self.kept.assume(pod.key, pod, pod.spec.node_name)


@asynccontextmanager
async def watched(client: Client) -> AsyncIterator[Cluster]:
    objects = Objects()
    for kind in KINDS.list_deciding():
        if kind.resource != PODS and kind.is_built_in:
            for found in decode_objects(await client.send("GET", kind.resource.path())):
                objects.add(found)
    async with aclosing(follow_pods(client)) as changes:
        cluster = Cluster(client, objects, changes)
        cluster.note(await anext(changes))
        yield cluster


async def follow_pods(client: Client) -> Changes:
    async for change in client.follow("/api/v1/pods"):
        yield change


def as_pod(raw: bytes | msgspec.Raw) -> Pod:
    """Items of a list come without their kind."""
    (pod,) = decode_objects(b'{"kind": "PodList", "apiVersion": "v1", "items": [' + bytes(raw) + b"]}")
    assert isinstance(pod, Pod)
    return pod


def is_settled(pod: Pod) -> bool:
    return bool(pod.spec.node_name) or refusal(pod) is not None


def refusal(pod: Pod) -> PodCondition | None:
    """What kube-scheduler wrote when it found no node."""
    return next((it for it in pod.status.conditions if it.type == "PodScheduled" and it.status == "False"), None)


# Making one --------------------------------------------------------------------------------------------------------


async def furnish(client: Client, rng: Random, count: int) -> dict[str, str]:
    """Make everything but pods, and wait until kube-scheduler must know it; gives the ReplicaSets' uids."""
    return await furnish_with(client, random_cluster.random_nodes(rng, count, time.time()))


async def furnish_with(client: Client, fleet: list[Manifest]) -> dict[str, str]:
    """The same with these nodes."""
    owners: dict[str, str] = {}
    for path, manifest in random_cluster.surroundings():
        made = await client.create(path, manifest)
        if manifest["metadata"]["name"] == OWNER:
            owners[made["metadata"]["namespace"]] = made["metadata"]["uid"]
    for namespace in NAMESPACES:
        core = f"/api/v1/namespaces/{namespace}"
        await client.wait_until(f"{core}/serviceaccounts/default", lambda account: True)
        await client.wait_until(f"{core}/persistentvolumeclaims/{CLAIM}", lambda it: it["status"]["phase"] == "Bound")
    await create_nodes(client, fleet)
    await await_sentinel(client)
    return owners


async def create_nodes(client: Client, made: list[Manifest]) -> None:
    await nodes.create(client, made)
    for node in made:
        await client.wait_until(f"/api/v1/nodes/{node['metadata']['name']}", is_at_rest)


def is_at_rest(node: Manifest) -> bool:
    """The node controller has removed the taint of a new node, and added that of a cordoned one."""
    is_cordoned = node["spec"].get("unschedulable", False)
    has_taint = any(taint["key"] == CORDONED for taint in node["spec"].get("taints", ()))
    return nodes.is_usable(node) and has_taint == is_cordoned


async def await_sentinel(client: Client) -> None:
    """kube-scheduler hears of nodes in order: when it uses the last one it knows the others as they are."""
    last = nodes.a_node(SENTINEL, now=time.time(), labels={SENTINEL: ""}, annotations=random_cluster.AT_ONCE)
    await create_nodes(client, [last])
    path = "/api/v1/namespaces/default/pods"
    spec = {"nodeSelector": {SENTINEL: ""}, "containers": [{"name": "main", "image": "web"}]}
    await client.create(path, {"metadata": {"name": SENTINEL}, "spec": spec})
    await client.wait_until(f"{path}/{SENTINEL}", lambda pod: pod["status"]["phase"] == "Running")
