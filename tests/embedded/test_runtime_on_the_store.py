"""The runtime that serves real clusters, on the embedded store and in virtual time."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from conformance_helpers import until
from embedded.store_fixtures import NAMESPACE, key
from runtime.test_on_a_real_cluster import Marker, a_pod
from runtime.virtual import LoopClock, play
from wukong.api.kinds import EVENTS, LEASES, NAMESPACES, PLACEMENT_POLICIES, PODS
from wukong.api.placement import PlacementPolicy
from wukong.api.resources import Key
from wukong.cluster.list_watch import follow
from wukong.controllers import Controller
from wukong.controllers.policy.controller import Policy
from wukong.embedded.store import Store
from wukong.embedded.store.documents import condition_of
from wukong.placement.rules import BUILT_IN
from wukong.ports import Document, PatchBody
from wukong.runtime import Leader, Loop

POLICIES = PLACEMENT_POLICIES


@asynccontextmanager
async def a_store() -> AsyncIterator[Store]:
    async with Store(LoopClock()) as store:
        await store.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
        yield store


@asynccontextmanager
async def running(store: Store, controller: Controller, identity: str = "one") -> AsyncIterator[Loop]:
    leader = Leader(store, Key(NAMESPACE, "leader"), identity, clock=LoopClock())
    loop = Loop(
        store, [controller], follow, clock=LoopClock(), random=random.Random(1).random, leader=leader, identity=identity
    )
    stop = asyncio.Event()
    task = asyncio.create_task(loop.run(stop))
    try:
        yield loop
    finally:
        stop.set()
        await task


def test_a_loop_leads_acts_tells_and_leaves() -> None:
    async def story() -> None:
        async with a_store() as store:
            await store.create(PODS, a_pod(), NAMESPACE)
            controller = Marker(NAMESPACE)
            async with running(store, controller):
                await controller.is_marked.wait()
                held = await store.get(LEASES, key("leader"), dict)
            released = await store.get(LEASES, key("leader"), dict)
            [event] = (await store.list(EVENTS, dict)).items
        assert held["spec"]["holderIdentity"] == "one"
        assert not released["spec"].get("holderIdentity")
        assert (event["reason"], event["regarding"]["name"], event["series"]["count"]) == ("Marked", "web", 2)

    play(story())


def test_the_policy_controller_tells_what_the_server_stored() -> None:
    async def story() -> None:
        rules = [{"name": "cost-awar", "type": "score"}]
        body = {"metadata": {"name": "web"}, "spec": {"scheduling": {"schedulingPolicy": {"rules": rules}}}}
        async with a_store() as store, running(store, Policy(BUILT_IN)):
            await store.create(POLICIES, body, NAMESPACE)
            found = await until(
                store, POLICIES, key("web"), lambda policy: condition_of(policy, "Accepted") is not None
            )
            policy = await store.get(POLICIES, key("web"), PlacementPolicy)
        assert (condition_of(found, "Accepted") or {})["status"] == "False"
        assert policy.status.observed_generation == policy.metadata.generation == 1

    play(story())


def test_a_loop_survives_the_end_of_its_watches_and_a_compaction() -> None:
    async def story() -> None:
        async with a_store() as store, running(store, Policy(BUILT_IN)):
            for name in ("one", "two", "three"):
                await store.create(POLICIES, {"metadata": {"name": name}, "spec": {}}, NAMESPACE)
                store.end_watches()
                store.server.database.compact()
                await until(store, POLICIES, key(name), lambda policy: condition_of(policy, "Accepted") is not None)

    play(story())


def deep(levels: int) -> Any:
    return {"a": deep(levels - 1)} if levels else 1


def with_config(name: str, config: Any) -> Document:
    rules = [{"name": "label-match", "type": "filter", "config": config}]
    return {"metadata": {"name": name}, "spec": {"scheduling": {"schedulingPolicy": {"rules": rules}}}}


def test_a_policy_that_cannot_be_read_is_told_so_counted_and_hides_no_other(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        async with a_store() as store:
            await store.create(POLICIES, with_config("deep", deep(40)), NAMESPACE)
            async with running(store, Policy(BUILT_IN)) as loop:
                for name in ("good", "better"):
                    await store.create(POLICIES, {"metadata": {"name": name}, "spec": {}}, NAMESPACE)
                    await until(store, POLICIES, key(name), lambda policy: condition_of(policy, "Accepted") is not None)
                    await store.create(POLICIES, with_config(f"deep-{name}", deep(50)), NAMESPACE)
                for name in ("deep", "deep-good", "deep-better"):
                    seen = await until(
                        store, POLICIES, key(name), lambda policy: condition_of(policy, "Accepted") is not None
                    )
                    told = condition_of(seen, "Accepted") or {}
                    assert (told["status"], told["reason"]) == ("False", "Unreadable")
                    assert "rules[0]: expected a config of at most 16 levels" in told["message"]
                await asyncio.sleep(120)
                assert sorted(loop.state.objects[POLICIES.group_kind]) == [key("better"), key("good")]
                text = loop.metrics.text().decode()
                assert 'wukong_unreadable_objects{kind="PlacementPolicy"} 3.0' in text
                version = (await store.get(POLICIES, key("deep"), dict))["metadata"]["resourceVersion"]
                store.end_watches()
                await asyncio.sleep(600)
                # Nobody writes the same again, and nobody says it again.
                assert (await store.get(POLICIES, key("deep"), dict))["metadata"]["resourceVersion"] == version
                await store.patch(POLICIES, key("deep"), PatchBody("merge", with_config("deep", {"a": None})))
                await until(
                    store,
                    POLICIES,
                    key("deep"),
                    lambda policy: (condition_of(policy, "Accepted") or {})["reason"] != "Unreadable",
                )
                assert 'wukong_unreadable_objects{kind="PlacementPolicy"} 2.0' in loop.metrics.text().decode()

    play(story())
    said = [record.__dict__["object"] for record in caplog.records if "cannot be read" in record.getMessage()]
    assert sorted(said) == [f"{NAMESPACE}/deep", f"{NAMESPACE}/deep-better", f"{NAMESPACE}/deep-good"]
