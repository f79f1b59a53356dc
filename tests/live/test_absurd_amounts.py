"""Pods on a real API server that name their node and ask for what no machine has: the mirror counts on."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

import msgspec

from conformance_helpers import SECONDS
from testbed.pytest_plugin import Bed
from wukong.api.core import Node, Pod
from wukong.api.kinds import PODS
from wukong.api.resources import Key
from wukong.cluster.credentials import load
from wukong.cluster.kube import Kube
from wukong.cluster.list_watch import follow
from wukong.ports import Event, Listing, Selection
from wukong.state import State

NODE = "absurd-amounts"  # nobody's: no kubelet refuses these pods


def a_node() -> dict[str, Any]:
    room = {"cpu": "4", "memory": "16Gi", "pods": "110"}
    taints = [{"key": "test.wukong/absurd", "effect": "NoSchedule"}]
    return {"metadata": {"name": NODE}, "spec": {"taints": taints}, "status": {"allocatable": room, "capacity": room}}


def a_bound_pod(name: str, **requests: str) -> dict[str, Any]:
    container = {"name": "main", "image": "web:1", "resources": {"requests": requests}}
    return {"metadata": {"name": name}, "spec": {"nodeName": NODE, "containers": [container]}}


async def test_bound_pods_that_ask_for_exabytes_are_counted_and_hide_nothing(bed: Bed, namespace: str) -> None:
    pods = f"/api/v1/namespaces/{namespace}/pods"
    state = State()
    state.replace("Node", [msgspec.convert(a_node(), Node)])

    def free(resource: str) -> int:
        snapshot = state.snapshot
        return int((snapshot.room - snapshot.load)[snapshot.lines[resource], 0])

    async with bed.client() as client, Kube(load(str(bed.kubeconfig))) as kube, asyncio.timeout(SECONDS):
        await client.create(pods, a_bound_pod("usual", memory="12Gi"))
        await client.create(pods, a_bound_pod("cores", cpu="9E", memory="1Gi"))
        stream = follow(kube, PODS, Pod, Selection(namespace))
        async with aclosing(stream):
            async for update in stream:
                if isinstance(update, Listing):
                    state.replace("Pod", update.items)
                    assert (free("memory"), free("cpu") < 0) == (3 << 30, True)
                    for name in ("bytes", "more-bytes"):
                        await client.create(pods, a_bound_pod(name, memory="8Ei"))
                elif isinstance(update, Event) and update.type != "BOOKMARK":
                    state.apply(update.type, update.object, "Pod")
                    if len(state.objects["Pod"]) == 4:
                        break
        assert free("memory") < 0
        for name in ("bytes", "more-bytes", "cores"):
            state.apply("DELETED", state.objects["Pod"][Key(namespace, name)])
        assert (free("memory"), free("cpu")) == (4 << 30, 4_000)
