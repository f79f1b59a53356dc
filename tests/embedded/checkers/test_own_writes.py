"""A key decided on a mirror without its own last write is found, and no key whose write has shown."""

from __future__ import annotations

import pytest

from wukong.actions import DONE, Outcome
from wukong.api.kinds import CONFIG_MAPS
from wukong.api.resources import Key
from wukong.embedded.checkers.findings import Findings
from wukong.embedded.checkers.own_writes import OwnWrites
from wukong.embedded.store import Server
from wukong.embedded.world.clock import VirtualClock
from wukong.embedded.world.watch_stream import AT_ONCE, Arrival
from wukong.embedded.world.world import Role, World
from wukong.ports import Document, PatchBody
from wukong.runtime.delivery import written_version_of
from wukong.runtime.dispatch import Item
from wukong.runtime.pending_writes import PATIENCE
from wukong.state import State
from wukong.state.controller import Watch

KEY = Key("default", "mine")
ITEM = Item("idle", KEY)


class Idle:
    name = "idle"
    watches = (Watch(CONFIG_MAPS),)

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        return DONE


class WatchedConfigMaps:
    """A process that watches ConfigMaps, and the checker. The test says what the process writes and decides."""

    def __init__(self) -> None:
        clock = VirtualClock()
        self.server = Server(clock)
        self.world = World(server=self.server, clock=clock, roles=[Role("idle", lambda _: [Idle()])])
        (self.process,) = self.world.processes
        (self.stream,) = self.world.streams_of(self.process)
        self.findings = Findings(self.world)
        self.checker = OwnWrites(self.findings)

    def create(self, name: str = KEY.name) -> Document:
        return self.server.create(CONFIG_MAPS, {"metadata": {"name": name}}, KEY.namespace)

    def create_own(self) -> None:
        self._observe_write(self.create())

    def change_own(self) -> None:
        self._observe_write(self.server.patch(CONFIG_MAPS, KEY, PatchBody("merge", {"data": {"a": "b"}})))

    def _observe_write(self, document: Document) -> None:
        self.checker.observe_write(self.process, ITEM, written_version_of(CONFIG_MAPS, document))

    def delete(self) -> None:
        self.server.delete(CONFIG_MAPS, KEY)

    def delay(self, seconds: float, name: str = KEY.name) -> None:
        """Changes of this object arrive so much later, and others overtake them."""
        late = Arrival(delay=seconds, may_be_overtaken=True)
        self.stream.route = lambda _, event: late if event.key.name == name else AT_ONCE

    def decide(self) -> list[str]:
        """What is found when the key is decided now."""
        self.checker.observe_decision(self.process, ITEM)
        return [finding.text for finding in self.findings.all]


NOT_SHOWN = ["decided again before its own write to ConfigMap default/mine showed"]


def test_a_write_that_the_watch_has_shown_is_no_finding() -> None:
    cluster = WatchedConfigMaps()
    cluster.create_own()
    assert cluster.decide() == []


def test_a_write_that_is_still_to_arrive_is_found_until_the_key_need_not_rest_any_longer() -> None:
    for seconds, expected in ((0.0, NOT_SHOWN), (PATIENCE, [])):
        cluster = WatchedConfigMaps()
        cluster.delay(2 * PATIENCE)
        cluster.create_own()
        cluster.world.run(seconds=seconds)
        assert cluster.decide() == expected


@pytest.mark.parametrize("is_gone", [False, True])
def test_a_write_that_a_broken_watch_never_showed_is_found_also_if_the_object_is_gone(is_gone: bool) -> None:
    cluster = WatchedConfigMaps()
    cluster.stream.disconnect()
    cluster.create_own()
    if is_gone:
        cluster.delete()
    assert cluster.decide() == NOT_SHOWN


def test_a_write_before_a_list_is_no_finding() -> None:
    cluster = WatchedConfigMaps()
    cluster.stream.disconnect()
    cluster.create_own()
    cluster.delete()
    cluster.stream.relist()
    cluster.stream.disconnect()
    cluster.create()
    assert cluster.decide() == []


@pytest.mark.parametrize("is_known", [False, True], ids=["created", "changed"])
def test_an_object_that_was_seen_to_go_is_no_finding_though_its_name_came_again_unseen(is_known: bool) -> None:
    """Where older changes of others are still to arrive when a watch breaks, it resumes from before what it showed."""
    cluster = WatchedConfigMaps()
    if is_known:
        cluster.create()
    cluster.delay(PATIENCE, "slow")
    cluster.create("slow")
    cluster.change_own() if is_known else cluster.create_own()
    cluster.delete()
    cluster.world.run(seconds=1.0)
    cluster.stream.disconnect()
    cluster.create()
    assert cluster.decide() == []


def test_what_is_still_to_arrive_is_found_though_an_earlier_object_of_that_name_was_seen_to_go() -> None:
    cluster = WatchedConfigMaps()
    cluster.create()
    cluster.delay(1.0)
    cluster.delete()
    cluster.delay(2.0)
    cluster.create_own()
    cluster.world.run(seconds=1.0)
    assert cluster.decide() == NOT_SHOWN
