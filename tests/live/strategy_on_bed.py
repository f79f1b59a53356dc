"""examples/sim/spot-strategy.yaml on a real cluster: what test_spot_strategy.py performs, and how it looks on.

Spectator    follows the pods of the shop, tells a judge of each change, and waits for the end of a phase
perform      one entry of the timeline; `until_heard` then waits for the scheduler to know of a node's change
drain        cordons, and evicts through budgets until nobody is left, as `kubectl drain` does
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from typing import Any

from live.admitting import BARE
from live.pod_metrics import is_ready
from spot_strategy.judge import Judge, Layout, SeenPod
from testbed import nodes
from testbed.client import ApiError, Client, Listed, as_json
from wukong.api.kinds import KINDS
from wukong.embedded.scenario.format.fields import NodeEntry, TimelineEntry, as_list
from wukong.placement.capacity import OWN_LABEL
from wukong.placement.pods import read_mark

SHOP = "shop"
PODS = f"/api/v1/namespaces/{SHOP}/pods"
POLICY = f"/apis/placement.novasphere.dev/v1alpha1/namespaces/{SHOP}/placementpolicies/web"
BUDGET = f"/apis/policy/v1/namespaces/{SHOP}/poddisruptionbudgets/wukong-web"
NODES = "/api/v1/nodes"
PHASE_SECONDS = 300.0  # a lost node's pods are missed after 40 to 60
Json = dict[str, Any]


class Spectator:
    def __init__(self, client: Client, judge: Judge) -> None:
        self.client, self.judge = client, judge
        self.changed = asyncio.Event()

    async def look(self) -> None:
        """For ever. A list that comes later than the first would hide changes: it is none of the judge's business."""
        seen = 0
        async for change in self.client.follow(PODS):
            if isinstance(change, Listed):
                seen += 1
                assert seen == 1, "the watch was broken"
                for raw in change.items:
                    self.judge.note(read_pod(as_json(raw)))
            elif change.type == "DELETED":
                self.judge.forget(as_json(change.object)["metadata"]["uid"])
            else:
                self.judge.note(read_pod(as_json(change.object)))
            self.changed.set()

    async def until_web_has(self, size: int) -> None:
        async with asyncio.timeout(PHASE_SECONDS):
            while max(self.judge.sizes, default=0) < size:
                self.changed.clear()
                await self.changed.wait()

    async def until(self, expected: Layout) -> None:
        """Until all is at rest and looks so. Says how it looks if that does not come."""
        try:
            async with asyncio.timeout(PHASE_SECONDS):
                while not (self.judge.is_at_rest and self.judge.layout() == expected):
                    self.changed.clear()
                    await self.changed.wait()
        except TimeoutError:
            pods = [str(pod) for pod in sorted(self.judge.pods.values(), key=lambda pod: pod.app)]
            states = [str((await self.client.get(path))["status"]) for path in (POLICY, BUDGET)]
            lines = "\n".join([f"expected {expected}, got {self.judge.layout()}:", *pods, *states])
            raise AssertionError(lines) from None


@contextlib.asynccontextmanager
async def looking_on(client: Client, judge: Judge) -> AsyncIterator[Spectator]:
    spectator = Spectator(client, judge)
    task = asyncio.create_task(spectator.look())
    try:
        yield spectator
        assert not task.done(), task
    finally:
        task.cancel()


def read_pod(document: Json) -> SeenPod:
    meta, mark = document["metadata"], read_mark(document["metadata"].get("annotations"))
    return SeenPod(
        meta["uid"],
        meta["labels"]["app"],
        document["spec"].get("nodeName", ""),
        mark.capacity if mark is not None else "",
        "deletionTimestamp" in meta or document["status"].get("phase") in ("Failed", "Succeeded"),
        is_ready(document),
    )


# What happens ------------------------------------------------------------------------------------------------------


async def perform(client: Client, entry: TimelineEntry) -> None:
    if entry.apply is not None:
        for document in as_list(entry.apply):
            await apply(client, document)
    elif entry.scale is not None:
        path = f"{entry.scale.resource.path(SHOP, entry.scale.name)}/scale"
        await client.patch(path, {"spec": {"replicas": entry.scale.replicas}})
    elif isinstance(entry.kill, str):
        await client.delete(f"{NODES}/{entry.kill}")
        await until_heard(client, entry.kill, is_usable=False)
    elif isinstance(entry.drain, str):
        await drain(client, entry.drain)
    else:
        name = entry.cordon or entry.uncordon
        assert isinstance(name, str), entry
        await cordon(client, name, is_cordoned=entry.cordon is not None)


async def apply(client: Client, document: Json) -> None:
    if document["kind"] == "Node":
        meta, status = document["metadata"], document["status"]
        await create_node(client, meta["name"], meta["labels"], status["capacity"])
        return
    resource, meta = KINDS.resource_named(document["kind"]), document["metadata"]
    await client.create(resource.path(meta["namespace"]), document)


async def create_group(client: Client, group: NodeEntry) -> None:
    capacity = {resource: str(amount) for resource, amount in group.capacity.items()}
    for name in group.names():
        await create_node(client, name, {OWN_LABEL: "spot" if group.spot else "on-demand"}, capacity)


async def create_node(client: Client, name: str, labels: dict[str, str], capacity: dict[str, str]) -> None:
    await client.create(NODES, nodes.a_node(name, now=time.time(), labels=labels, capacity=capacity))
    await until_heard(client, name, is_usable=True)


async def cordon(client: Client, name: str, *, is_cordoned: bool) -> None:
    await client.patch(f"{NODES}/{name}", {"spec": {"unschedulable": is_cordoned or None}})
    await until_heard(client, name, is_usable=not is_cordoned)


async def drain(client: Client, name: str) -> None:
    await cordon(client, name, is_cordoned=True)
    while pods := (await client.get(PODS, fieldSelector=f"spec.nodeName={name}"))["items"]:
        for pod in pods:
            if "deletionTimestamp" not in pod["metadata"]:
                await try_to_evict(client, pod["metadata"])
        await asyncio.sleep(0.1)


async def try_to_evict(client: Client, meta: Json) -> None:
    body = {"metadata": {"name": meta["name"]}, "deleteOptions": {"preconditions": {"uid": meta["uid"]}}}
    try:
        await client.create(f"{PODS}/{meta['name']}/eviction", body)
    except ApiError as error:
        if error.status not in (404, 409, 429):  # gone already, or its budget has none left
            raise


async def remove(client: Client) -> None:
    """The shop and its nodes; nobody waits for it."""
    await client.delete(f"/api/v1/namespaces/{SHOP}")
    for node in (await client.get(NODES, labelSelector=f"{OWN_LABEL},!{nodes.FOR}"))["items"]:
        await client.delete(f"{NODES}/{node['metadata']['name']}")


async def until_heard(client: Client, node: str, *, is_usable: bool) -> None:
    """Until kube-scheduler knows what became of a node: it puts a pod for that node there, or says that it cannot."""
    path = f"/api/v1/namespaces/{BARE}/pods"
    spec = {"nodeSelector": {"kubernetes.io/hostname": node}, "containers": [{"name": "main", "image": "probe"}]}
    async with asyncio.timeout(PHASE_SECONDS):
        while True:
            probe = await client.create(path, {"metadata": {"generateName": "probe-"}, "spec": spec})
            own = f"{path}/{probe['metadata']['name']}"
            is_bound = bool((await client.wait_until(own, is_decided))["spec"].get("nodeName"))
            await client.delete(own, grace_seconds=0)
            if is_bound == is_usable:
                return


def is_decided(pod: Json) -> bool:
    conditions = pod["status"].get("conditions") or []
    return any(condition["type"] == "PodScheduled" for condition in conditions)
