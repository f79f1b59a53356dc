"""The loop, its Lease and its Events on a real API server: what the small cluster of the other tests cannot refuse."""

from __future__ import annotations

import asyncio
import random
import time
from typing import Any

from testbed.pytest_plugin import Bed
from wukong.actions import DONE, Note, Outcome, Patch
from wukong.api.core import Pod
from wukong.api.kinds import EVENTS, LEASES, PODS
from wukong.api.resources import Key
from wukong.cluster.credentials import load
from wukong.cluster.kube import Kube
from wukong.cluster.list_watch import follow
from wukong.controllers import Watch
from wukong.ports import PatchBody, Selection
from wukong.runtime import Leader, Loop
from wukong.state import State


class WallClock:
    def now(self) -> float:
        return time.time()


class Marker:
    """Marks the pods of one namespace, and says so before and after."""

    name = "marker"
    watches = (Watch(PODS),)

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace
        self.is_marked = asyncio.Event()

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        pod = state.get(Pod, key)
        if pod is None or key.namespace != self.namespace or self.is_marked.is_set():
            return DONE
        note = Note(PODS, key, "Marked", "so that it shows", uid=pod.metadata.uid)
        if "marked" in pod.metadata.annotations:
            self.is_marked.set()
            return Outcome((note,))
        patch = PatchBody("json", [{"op": "add", "path": "/metadata/annotations", "value": {"marked": "yes"}}])
        return Outcome((note, Patch(PODS, key, patch)))


async def test_a_loop_leads_acts_tells_and_leaves(bed: Bed, namespace: str) -> None:
    lease = Key(namespace, "leader")
    async with Kube(load(str(bed.kubeconfig))) as cluster, asyncio.timeout(60):
        await cluster.create(PODS, a_pod(), namespace)
        controller = Marker(namespace)
        leader = Leader(cluster, lease, "one", clock=WallClock())
        loop = Loop(
            cluster,
            [controller],
            follow,
            clock=WallClock(),
            random=random.Random(1).random,
            leader=leader,
            identity="one",
        )
        stop = asyncio.Event()
        running = asyncio.create_task(loop.run(stop))
        await controller.is_marked.wait()
        held = await cluster.get(LEASES, lease, dict)
        stop.set()
        await running
        released = await cluster.get(LEASES, lease, dict)
        events = [event for event in await told(cluster, namespace) if event["reason"] == "Marked"]
    assert held["spec"]["holderIdentity"] == "one"
    assert not released["spec"].get("holderIdentity")
    assert [(event["regarding"]["name"], event["series"]["count"]) for event in events] == [("web", 2)]


async def told(cluster: Kube, namespace: str) -> list[dict[str, Any]]:
    return (await cluster.list(EVENTS, dict, Selection(namespace=namespace))).items


def a_pod() -> dict[str, Any]:
    containers = [{"name": "main", "image": "registry.example.com/web:1"}]
    return {"metadata": {"name": "web"}, "spec": {"containers": containers, "schedulerName": "nobody"}}
