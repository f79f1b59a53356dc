"""A case on both sides, step by step: each step ends when the Deployment is complete and the endpoints are as many."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from endpoint_comparison.case import Case, count_ready, read_endpoints, read_slices
from testbed import nodes
from testbed.client import Client, Event, Json, Listed, as_json
from wukong.api.kinds import DEPLOYMENTS, ENDPOINT_SLICES, NAMESPACES, NODES, SERVICES
from wukong.api.resources import Key
from wukong.app.embedded import Settings, build_cluster
from wukong.embedded.scenario.play.steps import Drains
from wukong.ports import Document, PatchBody
from wukong.state import Change

NAMESPACE, ZONE = "case", "topology.kubernetes.io/zone"
STEP_SECONDS = 60.0
CAPACITY = {"cpu": "8", "memory": "16Gi", "pods": "110"}


class Course(msgspec.Struct, frozen=True):
    """After each step what the slices are like, and the fewest ready endpoints during the rollout."""

    endpoints: list[Any]
    slices: list[Any]
    fewest_ready: int


def play_embedded(case: Case, seed: int, zone: str) -> Course:
    world = build_cluster(Settings(seed), Drains()).world
    server = world.server
    server.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
    ready = {"type": "Ready", "status": "True"}
    for number in range(2):
        meta = {"name": f"n{number}", "labels": {"kubernetes.io/hostname": f"n{number}", ZONE: zone}}
        server.create(NODES, {"metadata": meta, "status": {"capacity": CAPACITY, "conditions": [ready]}})
    fewest: list[int] = []

    def list_slices() -> list[Document]:
        return server.list(ENDPOINT_SLICES).items

    def hear(change: Change) -> None:
        if change.group_kind == ENDPOINT_SLICES.group_kind:
            fewest.append(count_ready(list_slices()))

    steps: list[tuple[Any, Any]] = []
    server.create(SERVICES, case.service, NAMESPACE)
    world.run(seconds=STEP_SECONDS)
    steps.append((read_endpoints(list_slices()), read_slices(list_slices())))
    server.create(DEPLOYMENTS, case.deployment, NAMESPACE)
    world.run(seconds=STEP_SECONDS)
    steps.append((read_endpoints(list_slices()), read_slices(list_slices())))
    world.listen(hear)
    key = Key(NAMESPACE, "web")
    server.patch(DEPLOYMENTS, key, PatchBody("merge", case.rollout))
    world.run(seconds=STEP_SECONDS)
    steps.append((read_endpoints(list_slices()), read_slices(list_slices())))
    least = min(fewest, default=0)
    server.patch(DEPLOYMENTS, key, PatchBody("merge", {"spec": {"replicas": case.replicas}}))
    world.run(seconds=STEP_SECONDS)
    steps.append((read_endpoints(list_slices()), read_slices(list_slices())))
    return Course([step[0] for step in steps], [step[1] for step in steps], least)


class SliceWatch:
    """All EndpointSlices of a namespace as they are, and the fewest ready endpoints since `begin`."""

    def __init__(self) -> None:
        self.slices: dict[str, Json] = {}
        self.counts: list[int] = []
        self.changed = asyncio.Event()

    async def run(self, client: Client, namespace: str) -> None:
        path = f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"
        async for change in client.follow(path):
            for raw in change.items if isinstance(change, Listed) else [change.object]:
                entry = as_json(raw)
                self.slices[entry["metadata"]["name"]] = entry
                if isinstance(change, Event) and change.type == "DELETED":
                    del self.slices[entry["metadata"]["name"]]
            self.counts.append(count_ready(self.slices.values()))
            self.changed.set()

    async def await_step(self, expected: tuple[Any, Any]) -> tuple[Any, Any]:
        """What is there once it is as expected, or when the time is up."""
        try:
            async with asyncio.timeout(STEP_SECONDS):
                while self.read() != expected:
                    self.changed.clear()
                    await self.changed.wait()
        except TimeoutError:
            pass
        return self.read()

    def read(self) -> tuple[Any, Any]:
        entries = list(self.slices.values())
        return read_endpoints(entries), read_slices(entries)


async def play_real(client: Client, namespace: str, case: Case, expected: Course) -> Course:
    """`namespace` has nodes of its own."""
    watch, steps = SliceWatch(), list(zip(expected.endpoints, expected.slices, strict=True))
    task = asyncio.create_task(watch.run(client, namespace))
    deployment = msgspec.json.decode(msgspec.json.encode(case.deployment))
    deployment["spec"]["template"]["spec"] |= nodes.on_reserved(namespace)
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    try:
        await client.create(f"/api/v1/namespaces/{namespace}/services", case.service)
        seen = [await watch.await_step(steps[0])]
        await client.create(path, deployment)
        seen.append(await watch.await_step(steps[1]))
        watch.counts.clear()
        await client.patch(f"{path}/web", case.rollout)
        await client.wait_until(f"{path}/web", _is_complete, STEP_SECONDS)
        seen.append(await watch.await_step(steps[2]))
        least = min(watch.counts, default=0)
        await client.patch(f"{path}/web", {"spec": {"replicas": case.replicas}})
        seen.append(await watch.await_step(steps[3]))
    finally:
        task.cancel()
    return Course([step[0] for step in seen], [step[1] for step in seen], least)


def _is_complete(deployment: Json) -> bool:
    wanted, status = deployment["spec"]["replicas"], deployment.get("status") or {}
    counts = [status.get(name, 0) for name in ("replicas", "updatedReplicas", "availableReplicas")]
    return status.get("observedGeneration", 0) >= deployment["metadata"]["generation"] and counts == [wanted] * 3
