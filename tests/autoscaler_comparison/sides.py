"""A case on both sides: the same objects, and what the autoscaler's status says when it no longer changes."""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from typing import Any

import msgspec

from autoscaler_comparison.random_case import Case, PodPlan, make_uniform
from testbed.client import Client, Json
from testbed.pod_metrics import create_pod_metrics_kind
from wukong.api.kinds import DEPLOYMENTS, HORIZONTAL_POD_AUTOSCALERS, NAMESPACES, POD_METRICS, PODS
from wukong.api.quantity import parse_quantity
from wukong.api.resources import Key
from wukong.embedded.actors import make_actors
from wukong.embedded.store import Server
from wukong.embedded.store.documents import format_time
from wukong.embedded.world.clock import VirtualClock
from wukong.embedded.world.world import World
from wukong.ports import Document, PatchBody

NAMESPACE = "case"
LOOKS_SECONDS = 120.0  # eight looks, and fewer than a new pod counts as one
WAIT_SECONDS = 120.0
_POD = re.compile(r"Pod web-[a-z0-9-]+")


class Ending(msgspec.Struct, frozen=True):
    replicas: int  # of the Deployment
    desired: int
    conditions: dict[str, tuple[str, str, str]]
    metrics: list[Any]


def read_ending(deployment: Document, autoscaler: Document) -> Ending:
    status = autoscaler.get("status") or {}
    conditions = {
        entry["type"]: (entry["status"], entry.get("reason", ""), _POD.sub("Pod web-?", entry.get("message", "")))
        for entry in status.get("conditions") or ()
    }
    metrics = [_read_metric(entry) for entry in status.get("currentMetrics") or ()]
    return Ending(deployment["spec"]["replicas"], status.get("desiredReplicas", 0), conditions, metrics)


def _read_metric(entry: Document) -> Any:
    current = (entry.get("resource") or entry.get("containerResource") or {}).get("current") or {}
    value = parse_quantity(current["averageValue"]) if "averageValue" in current else None
    return value, current.get("averageUtilization")


def build_status(plan: PodPlan, now: float) -> Document:
    if plan.age is None:
        return {"phase": "Pending"}
    ready = {
        "type": "Ready",
        "status": str(plan.is_ready),
        "lastTransitionTime": format_time(now - plan.ready_age),
    }
    return {"phase": "Running", "startTime": format_time(now - plan.age), "conditions": [ready]}


def build_metrics(case: Case, pod: str, usage: dict[str, Document], now: float) -> Document:
    return {
        "apiVersion": POD_METRICS.api_version,
        "kind": POD_METRICS.kind,
        "metadata": {"name": pod, "labels": case.selector},
        "timestamp": format_time(now),
        "window": "30s",
        "containers": [{"name": name, "usage": amounts} for name, amounts in usage.items()],
    }


def play_embedded(case: Case) -> list[Ending]:
    clock = VirtualClock()
    server = Server(clock)
    world = World(make_actors(server), server=server, clock=clock)
    server.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
    server.create(DEPLOYMENTS, case.deployment, NAMESPACE)
    world.run(seconds=5)
    names = [pod["metadata"]["name"] for pod in server.list(PODS).items]
    for name, plan in zip(names, case.pods, strict=True):
        patch = PatchBody("strategic", {"status": build_status(plan, clock.now())})
        server.patch(PODS, Key(NAMESPACE, name), patch, "status")
        if plan.usage is not None:
            server.create(POD_METRICS, build_metrics(case, name, plan.usage, clock.now()), NAMESPACE)
    server.create(HORIZONTAL_POD_AUTOSCALERS, case.autoscaler, NAMESPACE)

    def look() -> Ending:
        world.run(seconds=LOOKS_SECONDS)
        key = Key(NAMESPACE, "web")
        return read_ending(server.get(DEPLOYMENTS, key), server.get(HORIZONTAL_POD_AUTOSCALERS, key))

    endings = [look()]
    if goes_on(case, endings[0]):
        for name, usage in zip(names, case.later_usage, strict=True):
            if usage is not None:
                body = build_metrics(case, name, usage, clock.now())
                server.patch(POD_METRICS, Key(NAMESPACE, name), PatchBody("merge", body))
        endings.append(look())
    return endings


def goes_on(case: Case, ending: Ending) -> bool:
    """Whether usage changes afterwards: only where all pods are still there, for who goes is chance."""
    return ending.replicas == len(case.pods)


class RealSide:
    def __init__(self, client: Client) -> None:
        self.client = client

    async def play(self, case: Case, expected: list[Ending]) -> list[Ending]:
        """Waits until it ends as expected, or until the time is up."""
        namespace = f"hpa-{case.seed}-{secrets.token_hex(3)}"
        await self.client.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
        await self.client.wait_until(f"/api/v1/namespaces/{namespace}/serviceaccounts/default", lambda account: True)
        await self.client.create(f"/apis/apps/v1/namespaces/{namespace}/deployments", case.deployment)
        names = await self._await_pods(namespace, len(case.pods))
        for name, plan in zip(names, case.pods, strict=True):
            status = {"status": build_status(plan, time.time())}
            await self.client.patch(f"/api/v1/namespaces/{namespace}/pods/{name}/status", status, "strategic")
            if plan.usage is not None:
                metrics = build_metrics(case, name, plan.usage, time.time())
                await self.client.create(f"/apis/metrics.k8s.io/v1beta1/namespaces/{namespace}/pods", metrics)
        path = f"/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers"
        await self.client.create(path, case.autoscaler)
        endings = [await self._await_ending(namespace, expected[0])]
        if goes_on(case, endings[0]) and len(expected) > 1:
            for name, usage in zip(names, case.later_usage, strict=True):
                if usage is not None:
                    metrics_path = f"/apis/metrics.k8s.io/v1beta1/namespaces/{namespace}/pods/{name}"
                    await self.client.patch(metrics_path, build_metrics(case, name, usage, time.time()))
            endings.append(await self._await_ending(namespace, expected[1]))
        await self.client.delete(f"/api/v1/namespaces/{namespace}")
        return endings

    async def _await_pods(self, namespace: str, count: int) -> list[str]:
        async with asyncio.timeout(WAIT_SECONDS):
            while True:
                pods: list[Json] = (await self.client.get(f"/api/v1/namespaces/{namespace}/pods"))["items"]
                if len(pods) == count:
                    return sorted(pod["metadata"]["name"] for pod in pods)
                await asyncio.sleep(0.1)

    async def _await_ending(self, namespace: str, expected: Ending) -> Ending:
        seen = await self._look(namespace)
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                while seen != expected:
                    await asyncio.sleep(0.25)
                    seen = await self._look(namespace)
        except TimeoutError:
            pass
        return seen

    async def _look(self, namespace: str) -> Ending:
        await self._remove_stale_metrics(namespace)
        deployment = await self.client.get(f"/apis/apps/v1/namespaces/{namespace}/deployments/web")
        path = f"/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers/web"
        return read_ending(deployment, await self.client.get(path))

    async def _remove_stale_metrics(self, namespace: str) -> None:
        """metrics-server tells nothing of pods that are gone."""
        path = f"/apis/metrics.k8s.io/v1beta1/namespaces/{namespace}/pods"
        listed = await self.client.get(f"/api/v1/namespaces/{namespace}/pods")
        pods = {pod["metadata"]["name"] for pod in listed["items"]}
        for metrics in (await self.client.get(path))["items"]:
            if metrics["metadata"]["name"] not in pods:
                await self.client.delete(f"{path}/{metrics['metadata']['name']}")


async def compare(client: Client, cases: list[Case], at_once: int) -> dict[int, list[str]]:
    """Seed → what differs. All is played embedded first: nothing is sent while that takes its time."""
    played = [play_as_comparable(case) for case in cases]
    await create_pod_metrics_kind(client)
    side, slots = RealSide(client), asyncio.Semaphore(at_once)

    async def compare_one(case: Case, expected: list[Ending]) -> list[str]:
        async with slots:
            real = await side.play(case, expected)
        if real == expected:
            return []
        pairs = zip(expected, real, strict=False)
        return [f"embedded {ours}\n      real {theirs}" for ours, theirs in pairs if ours != theirs]

    async with asyncio.TaskGroup() as group:
        tasks = {case.seed: group.create_task(compare_one(case, expected)) for case, expected in played}
    return {seed: task.result() for seed, task in tasks.items()}


def play_as_comparable(case: Case) -> tuple[Case, list[Ending]]:
    """The case, with pods all alike where some of them go, and how it ends in the embedded cluster."""
    expected = play_embedded(case)
    if min(ending.replicas for ending in expected) < len(case.pods):
        case = make_uniform(case)
        expected = play_embedded(case)
    return case, expected
