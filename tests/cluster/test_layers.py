"""Layers around a cluster, here the embedded one: a dry run changes nothing and says each write once."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from conformance_helpers import CONFIG_MAPS, a_deployment, a_map, a_pod, document_of, merging
from embedded.store_fixtures import NAMESPACE, key
from runtime.test_on_a_real_cluster import Marker
from runtime.virtual import LoopClock, play
from wukong.actions import Action, Bind, Create, Delete, Evict, Patch, Scale
from wukong.api.kinds import DEPLOYMENTS, EVENTS, NAMESPACES, NODES, PODS
from wukong.cluster.layers import DryRun, Recording
from wukong.cluster.list_watch import follow
from wukong.embedded.store import Store
from wukong.errors import AlreadyExists, ClusterError, NotFound
from wukong.ports import Cluster, PatchBody
from wukong.runtime import Loop

LABELLED = merging(metadata={"labels": {"a": "b"}})

WRITES: list[tuple[Callable[[Cluster], Awaitable[Any]], Action]] = [
    (
        lambda cluster: cluster.create(CONFIG_MAPS, a_map("new"), NAMESPACE),
        Create(CONFIG_MAPS, a_map("new"), NAMESPACE),
    ),
    (lambda cluster: cluster.patch(PODS, key("web"), LABELLED), Patch(PODS, key("web"), LABELLED)),
    (
        lambda cluster: cluster.patch(PODS, key("web"), LABELLED, "status"),
        Patch(PODS, key("web"), LABELLED, "status"),
    ),
    (
        lambda cluster: cluster.delete(PODS, key("web"), grace_seconds=0, propagation="Orphan"),
        Delete(PODS, key("web"), grace_seconds=0, propagation="Orphan"),
    ),
    (lambda cluster: cluster.evict(key("web"), grace_seconds=3), Evict(key("web"), grace_seconds=3)),
    (lambda cluster: cluster.bind(key("web"), "n1"), Bind(key("web"), "n1")),
    (lambda cluster: cluster.scale(DEPLOYMENTS, key("web"), 2), Scale(DEPLOYMENTS, key("web"), 2)),
]


async def fill(store: Store) -> None:
    await store.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
    await store.create(NODES, {"metadata": {"name": "n1"}})
    await store.create(PODS, a_pod("web"), NAMESPACE)
    await store.create(DEPLOYMENTS, a_deployment("web"), NAMESPACE)


@pytest.mark.parametrize(("write", "action"), WRITES, ids=lambda value: type(value).__name__)
def test_a_dry_run_says_each_write_once_and_does_none(
    write: Callable[[Cluster], Awaitable[Any]], action: Action
) -> None:
    async def story() -> None:
        said: list[Action] = []
        async with Store(LoopClock()) as store:
            await fill(store)
            version = store.server.database.version
            for _ in range(2):
                await write(DryRun(store, said.append))
            assert said == [action, action]  # two clusters, each said it once
            layer = DryRun(store, said.append)
            for _ in range(3):
                await write(layer)
            assert said == [action] * 3
            assert store.server.database.version == version

    play(story())


@pytest.mark.parametrize(("write", "action"), WRITES, ids=lambda value: type(value).__name__)
def test_a_recording_does_each_write_and_keeps_it_with_its_answer(
    write: Callable[[Cluster], Awaitable[Any]], action: Action
) -> None:
    async def story() -> None:
        recorded: list[tuple[Action, ClusterError | None]] = []
        async with Store(LoopClock()) as plain, Store(LoopClock()) as store:
            await fill(plain)
            await fill(store)
            layer = Recording(store, lambda done, error: recorded.append((done, error)))
            assert await write(layer) == await write(plain)
            assert store.server.database.version == plain.server.database.version
            assert recorded == [(action, None)]

    play(story())


def test_a_refused_write_is_recorded_with_its_error_and_raised() -> None:
    async def story() -> None:
        recorded: list[tuple[Action, ClusterError | None]] = []
        async with Store(LoopClock()) as store:
            await fill(store)
            layer = Recording(store, lambda done, error: recorded.append((done, error)))
            with pytest.raises(AlreadyExists):
                await layer.create(PODS, a_pod("web"), NAMESPACE)
            [(action, error)] = recorded
            assert isinstance(action, Create)
            assert isinstance(error, AlreadyExists)

    play(story())


def test_reads_pass_through_every_layer() -> None:
    async def story() -> None:
        async with Store(LoopClock()) as store:
            await fill(store)
            for layer in (DryRun(store, lambda _: None), Recording(store, lambda *_: None)):
                assert await layer.get(PODS, key("web"), dict) == await store.get(PODS, key("web"), dict)
                assert await layer.list(PODS, dict) == await store.list(PODS, dict)
                with pytest.raises(NotFound):
                    await layer.get(PODS, key("none"), dict)
                events = layer.watch(PODS, dict, resource_version="0")
                assert document_of(await anext(events))["metadata"]["name"] == "web"
                await events.aclose()

    play(story())


def test_a_dry_run_answers_a_create_with_a_name() -> None:
    async def story() -> None:
        async with Store(LoopClock()) as store:
            layer = DryRun(store, lambda _: None)
            made = await layer.create(CONFIG_MAPS, {"metadata": {"generateName": "map-"}}, NAMESPACE)
            assert made["metadata"]["name"] == "map-dry-run"
            assert made["metadata"]["namespace"] == NAMESPACE

    play(story())


def test_an_event_that_is_told_again_is_said_once() -> None:
    async def story() -> None:
        said: list[Action] = []
        async with Store(LoopClock()) as store:
            layer = DryRun(store, said.append)
            for number in range(3):
                event = {"metadata": {"name": f"web.{number}"}, "reason": "Told", "note": "told", "regarding": {}}
                await layer.create(EVENTS, event, NAMESPACE)
                await layer.patch(EVENTS, key("web.0"), PatchBody("merge", {"series": {"count": number}}))
        assert [type(action).__name__ for action in said] == ["Create", "Patch"]

    play(story())


def test_a_loop_that_only_tries_comes_to_rest_and_says_what_it_would_do() -> None:
    async def story() -> None:
        said: list[Action] = []
        async with Store(LoopClock()) as store:
            await fill(store)
            version = store.server.database.version
            layer = DryRun(store, said.append)
            loop = Loop(layer, [Marker(NAMESPACE)], follow, clock=LoopClock(), random=random.Random(1).random)
            stop = asyncio.Event()
            task = asyncio.create_task(loop.run(stop))
            await asyncio.sleep(3600)
            stop.set()
            await task
            assert store.server.database.version == version
            assert len(loop.dispatch.queue) == 0
            assert [type(action).__name__ for action in said].count("Patch") == 1
            decided = loop.metrics.registry.get_sample_value("wukong_reconcile_seconds_count", {"controller": "marker"})
            assert decided is not None
            assert decided < 5

    play(story())
