"""Faults on the real API server, then calm: nothing is lost, nothing is done twice.

A controller copies the label `v` of ConfigMaps into an annotation, while a writer creates, changes and deletes them.
Each of its writes carries a stamp of its own, so etcd's history shows if one was made again.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from live.faulty import CONFIG_MAPS, History, Line, Writer, port_of
from testbed.client import Client
from testbed.control_plane import ControlPlane
from wukong.actions import DONE, Outcome, Patch
from wukong.api.meta import Object
from wukong.api.resources import Key, Resource
from wukong.cluster.credentials import load
from wukong.cluster.kube import Kube
from wukong.cluster.list_watch import follow
from wukong.errors import ClusterError, Gone
from wukong.ports import Event, Listing, PatchBody, WatchFailure
from wukong.runtime import Backoff, Loop
from wukong.state import Change, State
from wukong.state.controller import Watch

Record = Callable[[str, object], None]
DEADLINE_SECONDS = 120.0
DOWN_SECONDS = 5.0
NAMES = ("kept", "changed", "deleted", "again", "new", "last")
CONFIG_MAP = Resource(kind="ConfigMap", plural="configmaps")


class Copy:
    """Keeps the annotation `seen` at the value of the label `v`."""

    name = "copy"
    watches = (Watch(CONFIG_MAP),)

    def __init__(self) -> None:
        self.decisions = 0

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        found = state.objects.get("ConfigMap", {}).get(key)
        value = found.metadata.labels.get("v") if found else None
        if found is None or value is None or found.metadata.annotations.get("seen") == value:
            return DONE
        self.decisions += 1
        said = {"seen": value, "stamp": str(self.decisions)}
        return Outcome((Patch(CONFIG_MAP, key, PatchBody("merge", {"metadata": {"annotations": said}})),))


class WallClock:
    def now(self) -> float:
        return time.time()


@pytest.mark.slow
async def test_an_api_server_killed_for_five_seconds_with_writes_unanswered(
    lone_api_server: ControlPlane, tmp_path: Path, record_property: Record
) -> None:
    line, history = Line(port_of(lone_api_server)), await History.since_now(lone_api_server)
    async with (
        line.kubeconfig(lone_api_server.kubeconfig, tmp_path) as kubeconfig,
        Client.of(lone_api_server.kubeconfig) as client,
        copying(kubeconfig) as loop,
    ):
        async with writing(client) as writer:
            await more(lambda: writer.done, 100, "the writer writes")
            line.is_deaf = True
            await more(lambda: writer.done, 20, "the writer writes on")
            lone_api_server.kill("apiserver")
            line.is_deaf = False
            back_at = time.monotonic() + DOWN_SECONDS
            await when(lambda: time.monotonic() > back_at, "five seconds have passed")
            assert writer.lost > 0
            lone_api_server.launch("apiserver")
            began = time.monotonic()
            await asyncio.to_thread(lone_api_server.await_ready, "apiserver")
            await more(lambda: writer.done, 100, "the writer is answered again")
        seconds = await calm(loop, client) - began
        record_property("figure", f"API server killed for 5 s: all is well {seconds:.1f} s after its restart")
        await nothing_was_done_twice(history)


@pytest.mark.slow
async def test_connections_cut_in_the_middle_and_answers_lost(lone_api_server: ControlPlane, tmp_path: Path) -> None:
    line, history = Line(port_of(lone_api_server)), await History.since_now(lone_api_server)
    async with (
        line.kubeconfig(lone_api_server.kubeconfig, tmp_path) as kubeconfig,
        Client.of(lone_api_server.kubeconfig) as client,
    ):
        async with copying(kubeconfig) as loop:
            async with writing(client) as writer:
                for turn in range(8):
                    line.is_deaf = turn % 2 == 1  # the server does what it is asked, and nobody hears of it
                    await more(lambda: writer.done, 20, "the writer writes")
                    line.is_deaf = False
                    line.cut()
                    await more(lambda: line.opened, 1, "somebody connects again")
            await calm(loop, client)
        await nothing_was_done_twice(history)


async def test_a_version_too_old_is_listed_again_and_each_missed_change_shows_once(
    lone_api_server: ControlPlane, tmp_path: Path
) -> None:
    line = Line(port_of(lone_api_server))
    async with line.kubeconfig(lone_api_server.kubeconfig, tmp_path) as kubeconfig, Kube(load(str(kubeconfig))) as kube:
        told: list[ClusterError] = []
        changes: list[Change] = []
        following = asyncio.create_task(mirror(kube, changes, told))
        async with Client.of(lone_api_server.kubeconfig) as client:
            for name in NAMES[:4]:
                await client.create(CONFIG_MAPS, {"metadata": {"name": name}})
            await when(lambda: len(ours(changes)) == 4, "all four were seen")
            line.is_down = True
            line.cut()
            await client.create(CONFIG_MAPS, {"metadata": {"name": "new"}})
            await client.patch(f"{CONFIG_MAPS}/changed", {"metadata": {"labels": {"v": "1"}}})
            await client.patch(f"{CONFIG_MAPS}/changed", {"metadata": {"labels": {"v": "2"}}})
            for name in ("deleted", "again"):
                await client.delete(f"{CONFIG_MAPS}/{name}")
            await client.create(CONFIG_MAPS, {"metadata": {"name": "again"}})
        lone_api_server.restart("apiserver")  # its cache begins after what we saw last, so it must refuse
        line.is_down = False
        missed = [("ADDED", "again"), ("ADDED", "new"), ("DELETED", "again"), ("DELETED", "deleted")]
        missed.append(("MODIFIED", "changed"))
        await when(lambda: len(ours(changes)) >= 4 + len(missed), "what was missed has been seen")
        async with Client.of(lone_api_server.kubeconfig) as client:
            await client.create(CONFIG_MAPS, {"metadata": {"name": "last"}})  # nothing else may come
        await when(lambda: ("ADDED", "last") in ours(changes), "the watch goes on")
        following.cancel()
        assert sorted(ours(changes)[4:]) == sorted([*missed, ("ADDED", "last")])
        assert sum(isinstance(error, Gone) for error in told) == 1, told


async def mirror(kube: Kube, changes: list[Change], told: list[ClusterError]) -> None:
    state = State()
    async for update in follow(kube, CONFIG_MAP, Object):
        if isinstance(update, WatchFailure):
            told.append(update.error)
        elif isinstance(update, Event):
            changes += state.apply(update.type, update.object, "ConfigMap")
        elif isinstance(update, Listing):
            changes += state.take_page("ConfigMap", update.items, is_first=update.is_first, is_last=update.is_last)


def ours(changes: list[Change]) -> list[tuple[str, str]]:
    return [(change.type, change.key.name) for change in changes if change.key.name in NAMES]


@contextlib.asynccontextmanager
async def copying(kubeconfig: Path) -> AsyncIterator[Loop]:
    stop = asyncio.Event()
    async with Kube(load(str(kubeconfig))) as kube:
        loop = Loop(kube, [Copy()], follow, clock=WallClock(), random=random.Random(1).random)
        loop.dispatch.queue.backoff = Backoff(cap=2.0)  # a test can wait for that
        running = asyncio.create_task(loop.run(stop))
        try:
            yield loop
        finally:
            stop.set()
            await running


@contextlib.asynccontextmanager
async def writing(client: Client) -> AsyncIterator[Writer]:
    writer = Writer(client, seed=1)
    task = asyncio.create_task(writer.run())
    try:
        yield writer
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def calm(loop: Loop, client: Client) -> float:
    """When the mirror was equal to a fresh list, every annotation right and nothing left to do."""
    wrong: list[str] = []
    try:
        async with asyncio.timeout(DEADLINE_SECONDS):
            while wrong := await differences(loop, client):
                await asyncio.sleep(0.1)
    except TimeoutError:
        pytest.fail(f"no calm after {DEADLINE_SECONDS:.0f} s: {wrong[:10]}")
    return time.monotonic()


async def differences(loop: Loop, client: Client) -> list[str]:
    items = (await client.get("/api/v1/configmaps"))["items"]
    there = {Key(item["metadata"]["namespace"], item["metadata"]["name"]): item["metadata"] for item in items}
    held = loop.state.objects.get("ConfigMap", {})
    wrong = [f"{key} is {'lost' if key in there else 'too many'}" for key in there.keys() ^ held.keys()]
    for key in there.keys() & held.keys():
        meta, ours = there[key], held[key].metadata
        if (meta["uid"], meta["resourceVersion"]) != (ours.uid, ours.resource_version):
            wrong.append(f"{key} is {ours.resource_version} here, {meta['resourceVersion']} there")
        value, seen = meta.get("labels", {}).get("v"), meta.get("annotations", {}).get("seen")
        if value != seen:
            wrong.append(f"{key} has v={value} and seen={seen}")
    queue = loop.dispatch.queue
    return wrong + ["there is still work"] * bool(len(queue) + queue.in_flight)


async def nothing_was_done_twice(history: History) -> None:
    """Of each object and value there was one write by the controller, however often it was asked or answered."""
    stamps = {(it.uid, it.seen, it.stamp) for it in await history.versions() if it.stamp}
    writes = Counter((uid, seen) for uid, seen, _ in stamps)
    assert len(writes) > 20
    assert not {key: count for key, count in writes.items() if count > 1}


async def more(count: Callable[[], int], by: int, what: str) -> None:
    before = count()
    await when(lambda: count() >= before + by, what)


async def when(is_so: Callable[[], bool], what: str) -> None:
    try:
        async with asyncio.timeout(DEADLINE_SECONDS):
            while not is_so():
                await asyncio.sleep(0.02)
    except TimeoutError:
        pytest.fail(f"after {DEADLINE_SECONDS:.0f} s it is still not so that {what}")
