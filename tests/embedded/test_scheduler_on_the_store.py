"""The scheduler controller on the embedded store, in virtual time: what it does live it does here, in no time."""

from __future__ import annotations

import asyncio
from typing import Any

from conformance_helpers import until
from embedded.store_fixtures import NAMESPACE, key
from embedded.test_runtime_on_the_store import a_store, running
from runtime.virtual import play
from wukong.api.kinds import EVENTS, NODES, PODS
from wukong.api.resources import Key
from wukong.controllers.scheduler.controller import Scheduler
from wukong.embedded.store import Store
from wukong.embedded.store.documents import condition_of
from wukong.ports import PatchBody


async def add_node(store: Store, name: str) -> None:
    """A node is tainted when it comes; the node controller, here we, takes that away once it is ready."""
    room = {"cpu": "1", "memory": "4Gi", "pods": "10"}
    status = {"capacity": room, "allocatable": room}
    await store.create(NODES, {"metadata": {"name": name}, "status": status})
    await store.patch(NODES, Key("", name), PatchBody("merge", {"spec": {"taints": None}}))


def a_pod(name: str) -> dict[str, Any]:
    container = {"name": "main", "image": "web", "resources": {"requests": {"cpu": "1"}}}
    return {"metadata": {"name": name}, "spec": {"containers": [container], "schedulerName": "ours"}}


async def bound(store: Store, name: str) -> str:
    found = await until(store, PODS, key(name), lambda pod: bool(pod["spec"].get("nodeName")))
    return str(found["spec"]["nodeName"])


async def refused(store: Store, name: str) -> str:
    def is_told(pod: Any) -> bool:
        return (condition_of(pod, "PodScheduled") or {}).get("status") == "False"

    found = await until(store, PODS, key(name), is_told)
    return str((condition_of(found, "PodScheduled") or {})["message"])


async def told(store: Store) -> list[tuple[str, str]]:
    await asyncio.sleep(1.0)  # virtual: Events are written aside, after what they tell of
    events = (await store.list(EVENTS, dict)).items
    return sorted({(event["regarding"]["name"], event["reason"]) for event in events})


def test_pods_get_nodes_and_who_gets_none_is_told_and_waits_for_one() -> None:
    async def story() -> None:
        async with a_store() as store:
            async with running(store, Scheduler(["ours"])):
                await add_node(store, "node-a")
                await store.create(PODS, a_pod("first"), NAMESPACE)
                assert await bound(store, "first") == "node-a"
                await store.create(PODS, a_pod("second"), NAMESPACE)
                assert (await refused(store, "second")).startswith("0/1 nodes are available: 1 Insufficient cpu.")
                await add_node(store, "node-b")
                assert await bound(store, "second") == "node-b"
            events = await told(store)  # they are written aside, and all of them before it ends
        assert events == [("first", "Scheduled"), ("second", "FailedScheduling"), ("second", "Scheduled")]

    play(story())
