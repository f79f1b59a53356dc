"""A mirror knows how old it is: the loop counts, logs and tells when the API server falls silent, in virtual time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest

from runtime.test_loop import Marker, a_loop, patches, running
from runtime.tiny import TinyCluster
from runtime.virtual import LoopClock, play
from wukong.api.core import Pod
from wukong.api.kinds import PLACEMENT_POLICIES, PODS
from wukong.api.meta import Object
from wukong.api.resources import Resource
from wukong.controllers import Watch
from wukong.errors import ServerFailed
from wukong.ports import Event, KindMissing, Listing, Selection, WatchFailure, WatchUpdate
from wukong.runtime import Loop
from wukong.runtime.mirror_age import MirrorAges

POLICIES = PLACEMENT_POLICIES
BOOKMARK = Event("BOOKMARK", Object())
WIDGETS = Resource(kind="Widget", group="example.com", plural="widgets")


class Scripted(TinyCluster):
    """Yields each update after so many seconds, then nothing any more."""

    def __init__(self, *script: tuple[float, WatchUpdate[Any]]) -> None:
        super().__init__()
        self.script = script
        self.asked: list[tuple[Resource, Selection, bool]] = []

    async def follow(
        self, cluster: object, resource: Resource, read: type[Object], selection: Selection, optional: bool
    ) -> AsyncIterator[WatchUpdate[Object]]:
        self.asked.append((resource, selection, optional))
        for seconds, update in self.script:
            await asyncio.sleep(seconds)
            yield update
        await asyncio.Event().wait()


class Idle(Marker):
    def __init__(self, *watches: Watch) -> None:
        super().__init__()
        self.watches = watches


def age_of(loop: Loop, kind: str = "Pod") -> float | None:
    return loop.metrics.registry.get_sample_value("wukong_mirror_age_seconds", {"kind": kind})


def restarts(loop: Loop, kind: str = "Pod") -> float | None:
    return loop.metrics.registry.get_sample_value("wukong_watch_restarts_total", {"kind": kind})


def test_events_bookmarks_and_lists_make_a_mirror_young_and_failures_do_not() -> None:
    async def story() -> None:
        listing = Listing[Any]([], "1")
        failure = WatchFailure(ServerFailed("down"), 1.0)
        cluster = Scripted((100.0, listing), (100.0, BOOKMARK), (100.0, failure), (100.0, Event("ADDED", Pod())))
        loop = a_loop(cluster, Idle(Watch(PODS)))
        async with running(loop):
            await asyncio.sleep(99.0)
            assert age_of(loop) == pytest.approx(99.0)  # since the start
            await asyncio.sleep(2.0)
            assert age_of(loop) == pytest.approx(1.0)
            await asyncio.sleep(100.0)
            assert age_of(loop) == pytest.approx(1.0)
            assert restarts(loop) == 0
            await asyncio.sleep(100.0)
            assert age_of(loop) == pytest.approx(101.0)
            assert restarts(loop) == 1
            assert loop.old_watches() == []
            await asyncio.sleep(98.0)
            [old] = loop.old_watches()
            assert str(old) == "the watch of Pod is 199 s old (limit 150 s)"
            await asyncio.sleep(2.0)
            assert age_of(loop) == pytest.approx(1.0)
            assert loop.old_watches() == []

    play(story())


def test_the_limit_is_a_setting_and_the_oldest_kind_comes_first() -> None:
    ages = MirrorAges(["Node", "Pod"], limit_seconds=2.5)
    ages.start(10.0)
    ages.record_update("Pod", 11.0)
    assert ages.staleness_of("Node", 12.5) == 0.0
    assert ages.staleness_of("Node", 13.0) == 3.0
    assert [str(old) for old in ages.old_watches(14.0)] == [
        "the watch of Node is 4 s old (limit 2.5 s)",
        "the watch of Pod is 3 s old (limit 2.5 s)",
    ]
    assert (ages.age_of("Node", 9.0), ages.age_of("Widget", 14.0)) == (0.0, 0.0)


def test_a_watch_that_breaks_is_logged_with_its_kind_and_when_it_is_tried_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def story() -> None:
        cluster = Scripted((0.0, WatchFailure(ServerFailed("no route"), 0.81234)))
        async with running(a_loop(cluster, Idle(Watch(PODS)))):
            await asyncio.sleep(1.0)

    with caplog.at_level(logging.WARNING):
        play(story())
    [record] = [record for record in caplog.records if record.name == "wukong.runtime.mirror_feed"]
    facts = vars(record)
    assert (record.message, facts["kind"], facts["error"]) == ("watch broke", "Pod", "no route")
    assert facts["again_seconds"] == 0.812


def test_an_optional_kind_does_not_hold_up_the_others_and_comes_and_goes(caplog: pytest.LogCaptureFixture) -> None:
    class Beside(Scripted):
        async def follow(
            self, cluster: object, resource: Resource, read: type[Object], selection: Selection, optional: bool
        ) -> AsyncIterator[WatchUpdate[Object]]:
            source = super().follow if optional else TinyCluster.follow.__get__(self)
            async for update in source(cluster, resource, read, selection, optional):
                yield update

    widget = Object()
    widget.metadata.name = "w"
    missing = KindMissing(1.0)

    async def story() -> None:
        cluster = Beside((0.0, missing), (1.0, missing), (1.0, Listing([widget], "1")), (1.0, missing), (1.0, missing))
        cluster.put("Pod", "p")
        loop = a_loop(cluster, Idle(Watch(PODS), Watch(WIDGETS, keys=lambda *_: (), optional=True)))
        async with running(loop):
            await asyncio.sleep(1.5)
            assert (loop.is_synced, loop.state.objects.get(WIDGETS.group_kind, {})) == (True, {})
            assert loop.state.missing_kinds == {WIDGETS.group_kind}
            assert patches(cluster).total() == 1
            await asyncio.sleep(1.0)
            assert loop.state.missing_kinds == set()
            assert len(loop.state.objects[WIDGETS.group_kind]) == 1
            await asyncio.sleep(1.0)
            assert (loop.is_synced, len(loop.state.objects[WIDGETS.group_kind])) == (True, 0)
            await asyncio.sleep(1.0)
        assert restarts(loop, WIDGETS.group_kind) == 0

    with caplog.at_level(logging.INFO):
        play(story())
    told = [record.message for record in caplog.records if vars(record).get("kind") == "Widget"]
    assert told == ["kind is not installed", "kind is installed now", "kind is not installed"]


def test_a_loop_follows_what_a_watch_selects() -> None:
    async def story() -> list[tuple[Resource, Selection, bool]]:
        cluster = Scripted((0.0, Listing[Any]([], "1")))
        loop = Loop(
            cluster,
            [Idle(Watch(PODS, selection=Selection("shop"), optional=True))],
            cluster.follow,
            clock=LoopClock(),
            random=lambda: 0.0,
            also=[Watch(POLICIES)],
        )
        async with running(loop):
            await asyncio.sleep(1.0)
        return cluster.asked

    assert play(story()) == [(POLICIES, Selection(), False), (PODS, Selection("shop"), True)]
