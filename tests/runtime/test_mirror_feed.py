"""What watches say goes into the mirror: what is not listed yet, broken, missing or unreadable is known and said."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from builders import a_node, a_pod
from wukong.api.kinds import NODES, PLACEMENT_POLICIES, PODS
from wukong.api.meta import ObjectMeta
from wukong.api.unreadable import Unreadable
from wukong.errors import ServerFailed
from wukong.ports import Event, KindMissing, Listing, WatchFailure
from wukong.runtime.metrics import Metrics
from wukong.runtime.mirror_feed import MOST_LOGGED, MirrorFeed, list_unreadable
from wukong.state import State
from wukong.state.controller import Watch

WATCHES = {resource: Watch(resource) for resource in (PODS, NODES, PLACEMENT_POLICIES)}
BROKEN = WatchFailure(ServerFailed("etcd is away"), 1.23456)


class Clock:
    seconds = 100.0

    def now(self) -> float:
        return self.seconds


def a_feed() -> MirrorFeed:
    return MirrorFeed(WATCHES, State(), Clock(), Metrics(), 60.0)


def odd(name: str = "odd") -> Unreadable:
    return Unreadable(metadata=ObjectMeta(name=name, namespace="shop"), problem="$.spec: odd.")


def line(feed: MirrorFeed, name: str) -> float:
    lines = feed.metrics.text().decode().splitlines()
    return float(next(text for text in lines if text.startswith(name)).rpartition(" ")[2])


def said(caplog: pytest.LogCaptureFixture) -> list[tuple[str, dict[str, Any]]]:
    names = ("kind", "group", "object", "problem", "more", "error", "again_seconds")
    return [
        (record.message, {name: getattr(record, name) for name in names if hasattr(record, name)})
        for record in caplog.records
    ]


def test_a_kind_is_known_when_its_last_page_has_come() -> None:
    feed = a_feed()
    assert feed.describe_unsynced() == [
        f"{kind} has not been listed yet" for kind in ("Node", "PlacementPolicy", "Pod")
    ]
    feed.take_in(WATCHES[PODS], BROKEN)
    assert feed.describe_unsynced()[-1] == "Pod has not been listed yet: etcd is away"
    feed.take_in(WATCHES[PODS], Listing([a_pod("a")], "1", is_last=False))
    assert feed.describe_unsynced()[-1] == "Pod has not been listed yet", "it goes on"
    changes = feed.take_in(WATCHES[PODS], Listing([a_pod("b")], "1", is_first=False))
    assert [change.key.name for change in changes] == ["b"]
    assert len(feed.describe_unsynced()) == 2
    assert not feed.is_synced
    feed.take_in(WATCHES[NODES], Listing([], "1"))
    feed.take_in(WATCHES[PLACEMENT_POLICIES], KindMissing(30.0))
    assert (feed.is_synced, feed.describe_unsynced()) == (True, [])


def test_what_the_mirror_holds_its_age_and_what_broke_are_measured() -> None:
    feed = a_feed()
    assert line(feed, 'wukong_watch_restarts_total{kind="Pod"}') == 0
    assert line(feed, 'wukong_unreadable_objects{kind="Pod"}') == 0
    feed.take_in(WATCHES[PODS], Listing([a_pod("a"), a_pod("b")], "1", [odd()]))
    feed.take_in(WATCHES[PODS], BROKEN)
    feed.clock.seconds += 7  # type: ignore[attr-defined]
    assert line(feed, 'wukong_mirror_objects{kind="Pod"}') == 2
    assert line(feed, 'wukong_unreadable_objects{kind="Pod"}') == 1
    assert line(feed, 'wukong_watch_restarts_total{kind="Pod"}') == 1
    assert line(feed, 'wukong_mirror_age_seconds{kind="Pod"}') == 7
    feed.take_in(WATCHES[PODS], Event[Any]("DELETED", a_pod("a")))
    assert line(feed, 'wukong_mirror_objects{kind="Pod"}') == 1
    assert line(feed, 'wukong_mirror_age_seconds{kind="Pod"}') == 0


def test_a_kind_that_is_no_longer_installed_has_no_objects() -> None:
    feed = a_feed()
    feed.take_in(WATCHES[NODES], Listing([a_node("n")], "1"))
    changes = feed.take_in(WATCHES[NODES], KindMissing(30.0))
    assert [(change.type, change.key.name) for change in changes] == [("DELETED", "n")]


def test_that_a_kind_is_installed_or_not_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    feed, watch = a_feed(), WATCHES[PLACEMENT_POLICIES]
    missing, listed = KindMissing(30.0), Listing[Any]([], "1")
    for update in (listed, missing, missing, listed, listed, missing):
        feed.take_in(watch, update)
    kind = {"kind": "PlacementPolicy"}
    not_installed = ("kind is not installed", {**kind, "group": "placement.novasphere.dev"})
    assert said(caplog) == [not_installed, ("kind is installed now", kind), not_installed]


def test_a_watch_that_broke_is_said_with_its_kind_and_when_it_is_begun_again(caplog: pytest.LogCaptureFixture) -> None:
    assert a_feed().take_in(WATCHES[PODS], BROKEN) == []
    assert said(caplog) == [("watch broke", {"kind": "Pod", "error": "etcd is away", "again_seconds": 1.235})]


def test_of_unreadable_objects_some_are_named_and_the_rest_counted(caplog: pytest.LogCaptureFixture) -> None:
    feed = a_feed()
    feed.take_in(WATCHES[PODS], Listing([], "1", [odd(f"odd-{number}") for number in range(MOST_LOGGED)]))
    messages = said(caplog)
    assert len(messages) == MOST_LOGGED == 10
    facts = {"kind": "Pod", "object": "shop/odd-0", "problem": "$.spec: odd."}
    assert messages[0] == ("object cannot be read and is left out", facts)
    caplog.clear()
    feed.take_in(WATCHES[PODS], Listing([], "2", [odd(f"other-{number}") for number in range(MOST_LOGGED + 3)]))
    assert said(caplog)[MOST_LOGGED:] == [("more objects cannot be read", {"kind": "Pod", "more": 3})]


def test_which_objects_of_an_update_cannot_be_read() -> None:
    subject = odd()
    assert list_unreadable(Listing([], "1", [subject])) == [subject]
    assert list_unreadable(Event("MODIFIED", subject)) == (subject,)
    assert list_unreadable(Event("DELETED", subject)) == ()
    assert list_unreadable(Event[Any]("ADDED", a_pod("a"))) == ()
    assert list_unreadable(BROKEN) == ()
