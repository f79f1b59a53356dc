"""A world is made of a live mirror's own documents, where a component has them kept."""

from __future__ import annotations

import asyncio
import random

import pytest

from conformance_helpers import SECONDS
from embedded.test_fork import an_image_change
from embedded.test_snapshot_load import list_everything, play_document, workload
from wukong.api.core import Pod
from wukong.api.kinds import NODES
from wukong.api.meta import Object, ObjectMeta
from wukong.api.resources import Key
from wukong.api.unreadable import Unreadable
from wukong.app.mirror_documents import WATCHES, follow_whole, list_documents, read_event
from wukong.app.snapshots import load, play_on
from wukong.cluster.list_watch import follow
from wukong.embedded.store import Store
from wukong.embedded.world.world import World
from wukong.errors import InputError
from wukong.ports import Event, PatchBody
from wukong.runtime import Loop
from wukong.runtime.watch_source import WatchSource
from wukong.state import State


def a_world() -> World:
    web = workload("Deployment", "web", 6)
    return play_document({"nodes": [{"namePrefix": "n", "count": 5}], "manifests": [web]}, 0)[0]


async def mirror(store: Store, world: World, source: WatchSource) -> State:
    """What a loop has mirrored once all is listed and a change to a node has come by its watch."""
    stop = asyncio.Event()
    loop = Loop(store, [], source, clock=world.clock, random=random.Random(0).random, also=WATCHES)
    seen = asyncio.Event()
    loop.listen(lambda change: seen.set() if change.type == "MODIFIED" else None)
    running = asyncio.create_task(loop.run(stop))
    try:
        async with asyncio.timeout(SECONDS):
            while not loop.is_synced:
                await asyncio.sleep(0)
            await store.patch(NODES, Key("", "n1"), PatchBody("merge", {"metadata": {"labels": {"rack": "r7"}}}))
            await seen.wait()
    finally:
        stop.set()
        await running
    return loop.state


async def test_a_change_played_on_the_mirror_is_that_played_on_a_snapshot() -> None:
    world = a_world()
    async with Store(server=world.server) as store:
        state = await mirror(store, world, follow_whole)
    documents = list_documents(state)
    labels = [document["metadata"].get("labels", {}) for document in documents if document["kind"] == "Node"]
    assert sum("rack" in each for each in labels) == 1
    from_mirror = play_on(load(documents, world.clock.now()), an_image_change(), 4)
    from_snapshot = play_on(load(list_everything(world), world.clock.now()), an_image_change(), 4)
    assert from_mirror.settled
    assert from_mirror.document() == from_snapshot.document()


async def test_a_mirror_without_documents_is_refused() -> None:
    world = a_world()
    async with Store(server=world.server) as store:
        state = await mirror(store, world, follow)
    with pytest.raises(InputError, match="the mirror holds no document of it"):
        list_documents(state)


def test_a_bookmark_is_read_though_it_has_a_version_and_nothing_else() -> None:
    bookmark = read_event(Event("BOOKMARK", {"metadata": {"resourceVersion": "9"}}), "Pod")
    assert (bookmark.type, type(bookmark.object)) == ("BOOKMARK", Object)
    assert bookmark.object.metadata.resource_version == "9"
    nameless = read_event(Event("ADDED", {"metadata": {"resourceVersion": "9"}}), "Pod")
    assert isinstance(nameless.object, Unreadable)
    unreadable = Unreadable(metadata=ObjectMeta(name="web"), problem="nested too deeply")
    assert read_event(Event("MODIFIED", unreadable), "Pod").object is unreadable
    pod = read_event(Event("ADDED", {"metadata": {"name": "web", "namespace": "shop"}, "spec": {}}), "Pod")
    assert isinstance(pod.object, Pod)
