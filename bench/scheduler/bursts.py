"""The pods that both schedulers are given, in bursts, and how long each waits for its node."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import NamedTuple

from testbed.client import Client, Json, Listed, as_json

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
AT_ONCE = 24  # requests under way
SECONDS = 180.0
MakeSpec = Callable[[int, str], Json]  # number and app → what the pod's spec has besides


class Burst(NamedTuple):
    """What came of one: pods a second from the first creation to the last binding, and how long pods waited."""

    per_second: float
    p50_ms: float
    p99_ms: float


def plain(number: int, app: str) -> Json:
    return {}


def anti_affinity(number: int, app: str) -> Json:
    term = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": app}}}
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def spread(number: int, app: str) -> Json:
    selector = {"matchLabels": {"app": app}}
    rule = {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
    return {"topologySpreadConstraints": [{**rule, "topologyKey": key} for key in (ZONE, HOST)]}


def mixed(number: int, app: str) -> Json:
    kinds: tuple[MakeSpec, ...] = (plain, anti_affinity, spread, prefers_zone)
    return kinds[number % len(kinds)](number, app)


def prefers_zone(number: int, app: str) -> Json:
    expression = {"key": ZONE, "operator": "In", "values": [f"zone-{number % 3}"]}
    term = {"weight": 10, "preference": {"matchExpressions": [expression]}}
    return {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}}


WORKLOADS: dict[str, MakeSpec] = {"plain": plain, "anti-affinity": anti_affinity, "spread": spread, "mixed": mixed}
APPS = {"mixed": 20}  # of how many applications the pods of a workload are; others of one


def build_pods(workload: str, scheduler: str, count: int) -> list[Json]:
    make, apps = WORKLOADS[workload], APPS.get(workload, 1)
    return [_build_pod(number, f"{workload}-{number % apps}", scheduler, make) for number in range(count)]


def _build_pod(number: int, app: str, scheduler: str, make: MakeSpec) -> Json:
    requests = {"cpu": "100m", "memory": "128Mi"}
    container = {"name": "main", "image": "web", "resources": {"requests": requests}}
    spec = {"containers": [container], "schedulerName": scheduler, "automountServiceAccountToken": False}
    return {"metadata": {"name": f"{app}-{number}", "labels": {"app": app}}, "spec": {**spec, **make(number, app)}}


async def run_burst(client: Client, namespace: str, pods: list[Json]) -> Burst:
    """Create these pods as fast as they are taken, and wait until each has a node."""
    path = f"/api/v1/namespaces/{namespace}/pods"
    created: dict[str, float] = {}
    bound: dict[str, float] = {}
    is_following = asyncio.Event()

    async def follow() -> None:
        async for change in client.follow(path):
            now = time.perf_counter()
            for raw in change.items if isinstance(change, Listed) else [change.object]:
                pod = as_json(raw)
                if "nodeName" in pod["spec"]:
                    bound.setdefault(pod["metadata"]["name"], now)
            is_following.set()
            if len(bound) == len(pods):
                return

    async def create(pod: Json) -> None:
        async with slots:
            created[pod["metadata"]["name"]] = time.perf_counter()
            await client.create(path, pod)

    slots = asyncio.Semaphore(AT_ONCE)
    async with asyncio.timeout(SECONDS), asyncio.TaskGroup() as group:
        group.create_task(follow())
        await is_following.wait()
        began = time.perf_counter()
        for pod in pods:
            group.create_task(create(pod))
    waits = sorted(bound[name] - created[name] for name in created)
    seconds = max(bound.values()) - began
    return Burst(len(pods) / seconds, 1000 * waits[len(waits) // 2], 1000 * waits[len(waits) * 99 // 100])


async def measure_bare_binding(client: Client, namespace: str, pods: list[Json], nodes: list[str]) -> float:
    """Bindings a second when nobody decides anything: what the API server takes."""
    path = f"/api/v1/namespaces/{namespace}/pods"
    slots = asyncio.Semaphore(AT_ONCE)

    async def send(target: str, body: Json) -> None:
        async with slots:
            await client.create(target, body)

    async with asyncio.TaskGroup() as group:
        for pod in pods:
            group.create_task(send(path, pod))
    began = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for number, pod in enumerate(pods):
            name = pod["metadata"]["name"]
            target = {"kind": "Node", "name": nodes[number % len(nodes)]}
            group.create_task(send(f"{path}/{name}/binding", {"metadata": {"name": name}, "target": target}))
    return len(pods) / (time.perf_counter() - began)


async def remove_pods(client: Client, namespace: str) -> None:
    """Nobody runs them: they are gone at once."""
    path = f"/api/v1/namespaces/{namespace}/pods"
    slots = asyncio.Semaphore(AT_ONCE)

    async def remove(name: str) -> None:
        async with slots:
            await client.delete(f"{path}/{name}", grace_seconds=0)

    async with asyncio.TaskGroup() as group:
        for pod in (await client.get(path))["items"]:
            group.create_task(remove(pod["metadata"]["name"]))
