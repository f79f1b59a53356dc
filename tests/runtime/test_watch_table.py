"""What a process watches: each kind once, and never in two ways."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import pytest

from runtime.tiny import TinyCluster
from runtime.virtual import LoopClock
from wukong.api.core import Pod
from wukong.api.kinds import NAMESPACES, NODES, PODS
from wukong.api.meta import Object
from wukong.api.resources import Key, Resource
from wukong.embedded.store import Server
from wukong.embedded.world.clock import VirtualClock
from wukong.embedded.world.world import Role, World
from wukong.errors import InputError
from wukong.ports import PatchBody, Selection
from wukong.runtime import Loop
from wukong.runtime.watch_table import merge_watches
from wukong.state import State
from wukong.state.controller import Controller, Watch

MINE = Selection(labels="mine")
PODS_V2 = Resource(kind="Pod", version="v2", plural="pods")


class Watcher(NamedTuple):
    name: str
    watches: tuple[Watch, ...]

    def reconcile(self, *_: Any) -> Any:
        raise AssertionError("nothing happens here")


def test_a_kind_is_watched_once_and_is_optional_only_if_all_say_so() -> None:
    one = Watcher("one", (Watch(PODS, optional=True), Watch(NODES, optional=True)))
    two = Watcher("two", (Watch(PODS, keys=lambda *_: (), optional=True),))
    merged = merge_watches([one, two], [Watch(NODES)])
    assert {resource.kind: watch.optional for resource, watch in merged.items()} == {"Node": False, "Pod": True}


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (Watch(PODS), Watch(PODS, read=Object), r"one reads it as wukong\.api\.core\.Pod, two as .*\.Object"),
        (Watch(PODS, selection=MINE), Watch(PODS), r"one selects labels 'mine', two everything"),
        (Watch(PODS), Watch(PODS_V2), r"one watches v1, two v2\. Have both watch the same version\."),
    ],
)
def test_what_cannot_be_watched_together_is_refused_at_the_start_in_both_worlds(
    first: Watch, second: Watch, expected: str
) -> None:
    watchers = [Watcher("one", (first,)), Watcher("two", (second,))]
    message = f"Pod is watched in two ways: {expected}"
    with pytest.raises(InputError, match=message):
        Loop(TinyCluster(), watchers, TinyCluster().follow, clock=LoopClock(), random=lambda: 0.0)
    clock = VirtualClock()
    with pytest.raises(InputError, match=message):
        World(watchers, server=Server(clock), clock=clock)


def test_what_is_watched_beside_the_controllers_counts_as_well() -> None:
    with pytest.raises(InputError, match="what is watched beside the controllers reads it as"):
        merge_watches([Watcher("one", (Watch(PODS, read=Object),))], [Watch(PODS, read=Pod)])


def a_world(*watches: Watch, server: Server, clock: VirtualClock) -> World:
    """One process for each."""
    watchers = [Watcher(f"p{number}", (watch,)) for number, watch in enumerate(watches)]
    roles = [Role(watcher.name, partial(_alone, watcher)) for watcher in watchers]
    return World(server=server, clock=clock, roles=roles)


def _alone(watcher: Watcher, _: State) -> list[Controller]:
    return [watcher]


def a_namespace(name: str, **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": labels}}


def names(world: World, process: int, kind: str = "Namespace") -> set[str]:
    return {key.name for key in world.processes[process].state.objects.get(kind, {})}


def test_processes_of_an_embedded_cluster_select_each_for_itself() -> None:
    clock = VirtualClock()
    server, namespaces = Server(clock), NAMESPACES
    server.create(namespaces, a_namespace("first", mine="yes"), "")
    watch = Watch(namespaces, keys=lambda *_: ())
    world = a_world(watch._replace(selection=MINE), watch, server=server, clock=clock)
    before = names(world, 1)
    assert names(world, 0) == {"first"}
    server.create(namespaces, a_namespace("second", mine="yes"), "")
    server.create(namespaces, a_namespace("foreign"), "")
    assert names(world, 0) == {"first", "second"}
    assert names(world, 1) == {*before, "second", "foreign"}
    server.patch(namespaces, _key("first"), _labels(mine=None))
    server.patch(namespaces, _key("foreign"), _labels(mine="now"))
    assert names(world, 0) == {"foreign", "second"}


def test_processes_that_read_a_kind_differently_are_refused() -> None:
    clock = VirtualClock()
    with pytest.raises(InputError, match=r"p0 reads it as .*Pod, p1 as .*Object"):
        a_world(Watch(PODS), Watch(PODS, read=Object), server=Server(clock), clock=clock)


def test_an_optional_kind_that_an_embedded_cluster_does_not_have_is_empty() -> None:
    clock, widgets = VirtualClock(), Resource(kind="Widget", group="example.com", plural="widgets")
    world = World([Watcher("one", (Watch(widgets, optional=True),))], server=Server(clock), clock=clock)
    assert world.run() == "quiet"


def _key(name: str) -> Key:
    return Key("", name)


def _labels(**labels: str | None) -> PatchBody:
    return PatchBody("merge", {"metadata": {"labels": labels}})
