"""Processes with mirrors of their own: what they see and when, what a crash costs, how a lost answer is settled."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from wukong.actions import DONE, Action, Create, Outcome
from wukong.api.kinds import CONFIG_MAPS, PODS, STATEFUL_SETS
from wukong.api.resources import Key
from wukong.embedded.actors import make_actors
from wukong.embedded.store import Server
from wukong.embedded.store.deletion import DeleteOptions
from wukong.embedded.world.clock import VirtualClock
from wukong.embedded.world.process import Crashed, Process, Role, Transport
from wukong.embedded.world.transport import perform
from wukong.embedded.world.watch_stream import Arrival, StreamEvent, WatchStream
from wukong.embedded.world.world import DirectTransport, World
from wukong.errors import OutcomeUnknown
from wukong.runtime.pending_writes import PATIENCE, WrittenVersion
from wukong.state import State
from wukong.state.controller import Watch

POD_OF_SET = Key("default", "db-0")


class Twins:
    """Makes one ConfigMap for each that is called `…-twin`."""

    name = "twins"
    watches = (Watch(CONFIG_MAPS),)

    def __init__(self) -> None:
        self.decisions: list[tuple[float, Key]] = []

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        self.decisions.append((now, key))
        twin = Key(key.namespace, f"{key.name}-twin")
        config_maps = state.objects["ConfigMap"]
        if key not in config_maps or key.name.endswith("-twin") or twin in config_maps:
            return DONE
        return Outcome((Create(CONFIG_MAPS, {"metadata": {"name": twin.name}}, key.namespace),))


class FaultInjection:
    """What a test wants to go wrong."""

    def __init__(self, route: Callable[[WatchStream, StreamEvent], Arrival | None] | None = None) -> None:
        self.route = route
        self.errors: list[Exception] = []  # raised after the next writes
        self.streams: list[WatchStream] = []

    def join(self, world: World) -> None:
        self.world = world

    def transport(self, process: Process) -> Transport:
        return FailingTransport(self)

    def observe_start(self, process: Process, streams: list[WatchStream]) -> None:
        self.streams = streams
        for stream in streams:
            stream.route = self.route


class FailingTransport(DirectTransport):
    def __init__(self, fault_injection: FaultInjection) -> None:
        super().__init__(fault_injection.world.server)
        self.fault_injection = fault_injection

    def perform(self, action: Action) -> WrittenVersion | None:  # type: ignore[override]
        written = perform(self.server, action)
        if self.fault_injection.errors:
            raise self.fault_injection.errors.pop(0)
        return written


def a_world(fault_injection: FaultInjection) -> tuple[World, list[Twins]]:
    clock, instances = VirtualClock(), list[Twins]()

    def make(_: State) -> list[Twins]:
        instances.append(Twins())
        return instances[-1:]

    world = World(server=Server(clock), clock=clock, roles=[Role("twins", make)], fault_injection=fault_injection)
    world.run()
    return world, instances


def create(world: World, name: str) -> None:
    world.server.create(CONFIG_MAPS, {"metadata": {"name": name}}, "default")


def names_of(objects: Iterable[Key]) -> list[str]:
    return sorted(key.name for key in objects)


def mirrored_names(world: World) -> list[str]:
    return names_of(world.processes[0].state.objects.get("ConfigMap", {}))


def test_a_process_decides_when_its_watch_tells_not_when_it_happens() -> None:
    world, instances = a_world(FaultInjection(lambda stream, event: Arrival(delay=3.0)))
    begin = world.clock.now()
    create(world, "one")
    assert (mirrored_names(world), names_of(world.state.objects["ConfigMap"])) == ([], ["one"])
    world.run()
    assert [at - begin for at, _ in instances[0].decisions] == [3.0, 6.0]
    assert mirrored_names(world) == ["one", "one-twin"]


def test_events_of_one_object_never_overtake_each_other_and_those_of_others_may() -> None:
    detours = [Arrival(delay=5.0, may_be_overtaken=True), Arrival(), Arrival()]
    fault_injection = FaultInjection(lambda stream, event: detours.pop(0) if detours else Arrival())
    world, _ = a_world(fault_injection)
    create(world, "slow")
    world.server.delete(CONFIG_MAPS, Key("default", "slow"))
    create(world, "fast")
    assert mirrored_names(world) == []
    world.run(seconds=1.0)
    assert mirrored_names(world) == ["fast", "fast-twin"]
    world.run()
    assert mirrored_names(world) == ["fast", "fast-twin"]


def test_an_event_that_is_late_holds_up_those_behind_it_unless_they_may_overtake() -> None:
    delays = [Arrival(delay=5.0), Arrival(), Arrival()]
    world, _ = a_world(FaultInjection(lambda stream, event: delays.pop(0) if delays else Arrival()))
    create(world, "slow-twin")
    create(world, "fast-twin")
    world.run(seconds=4.0)
    assert mirrored_names(world) == []
    world.run(seconds=1.0)
    assert mirrored_names(world) == ["fast-twin", "slow-twin"]


def test_an_event_told_twice_is_one_change() -> None:
    world, instances = a_world(FaultInjection(lambda stream, event: Arrival(copies=2)))
    create(world, "one")
    world.run()
    assert mirrored_names(world) == ["one", "one-twin"]
    assert len(instances[0].decisions) == 2


def test_a_broken_watch_learns_from_a_list_what_it_missed_also_what_went() -> None:
    fault_injection = FaultInjection()
    world, _ = a_world(fault_injection)
    create(world, "one-twin")
    (stream,) = fault_injection.streams
    stream.disconnect()
    create(world, "two-twin")
    world.server.delete(CONFIG_MAPS, Key("default", "one-twin"))
    assert mirrored_names(world) == ["one-twin"]
    assert [change.type for change in stream.relist()] == ["DELETED", "ADDED"]
    assert mirrored_names(world) == ["two-twin"]


def test_a_watch_that_resumes_is_told_what_it_missed_in_order() -> None:
    fault_injection = FaultInjection()
    world, _ = a_world(fault_injection)
    (stream,) = fault_injection.streams
    stream.disconnect()
    create(world, "one-twin")
    world.server.delete(CONFIG_MAPS, Key("default", "one-twin"))
    create(world, "two-twin")
    assert [(change.type, change.key.name) for change in stream.resume()] == [
        ("ADDED", "one-twin"),
        ("DELETED", "one-twin"),
        ("ADDED", "two-twin"),
    ]


def test_a_process_that_crashed_starts_again_with_an_empty_mirror_and_does_the_rest() -> None:
    fault_injection = FaultInjection()
    world, instances = a_world(fault_injection)
    fault_injection.errors.append(Crashed(7.0))
    begin = world.clock.now()
    create(world, "one")
    create(world, "two")
    world.run()
    assert len(instances) == 2
    assert instances[1].decisions[0][0] - begin == 7.0
    assert mirrored_names(world) == ["one", "one-twin", "two", "two-twin"]


def test_a_write_whose_answer_got_lost_is_looked_at_before_its_key_is_decided_again() -> None:
    fault_injection = FaultInjection(
        lambda stream, event: Arrival(delay=3.0 if event.key.name.endswith("-twin") else 0.0)
    )
    world, instances = a_world(fault_injection)
    fault_injection.errors.append(OutcomeUnknown("connection lost"))
    begin = world.clock.now()
    create(world, "one")
    world.run()
    assert [(at - begin, key.name) for at, key in instances[0].decisions] == [
        (0.0, "one"),
        (3.0, "one"),
        (3.0, "one-twin"),
    ]
    assert [step.error for step in world.trace] == ["OutcomeUnknown: connection lost"]


@pytest.mark.parametrize("seconds", [1.0, 2 * PATIENCE], ids=["while the key rests", "when it no longer does"])
def test_a_write_that_was_undone_while_the_watch_was_broken_is_made_again_after_a_list(seconds: float) -> None:
    fault_injection = FaultInjection()
    world, _ = a_world(fault_injection)
    (stream,) = fault_injection.streams
    create(world, "one")
    stream.disconnect()
    world.run(seconds=seconds)
    world.server.delete(CONFIG_MAPS, Key("default", "one-twin"))
    assert stream.relist() == []  # the twin was not there before, and is not there now
    world.run()
    assert mirrored_names(world) == ["one", "one-twin"]


def test_a_stateful_set_gets_a_pod_again_that_came_and_went_while_the_watch_of_pods_was_broken() -> None:
    """kube-controller-manager notices by its resync, after 12 to 24 hours; a process here has none."""
    clock, fault_injection = VirtualClock(), FaultInjection()
    server = Server(clock)
    role = Role("controllers", lambda _: make_actors(server))
    world = World(server=server, clock=clock, roles=[role], fault_injection=fault_injection)
    world.run()
    template = {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [{"name": "db", "image": "db:1"}]}}
    spec = {"replicas": 1, "serviceName": "db", "selector": {"matchLabels": {"app": "db"}}, "template": template}
    (stream,) = (stream for stream in fault_injection.streams if stream.kind == "Pod")
    stream.disconnect()
    server.create(STATEFUL_SETS, {"metadata": {"name": "db"}, "spec": spec}, "default")
    for _ in range(2):  # after the second creation there is nothing new to say in the set's status
        world.run(seconds=2 * PATIENCE)
        server.delete(PODS, POD_OF_SET, DeleteOptions(grace_seconds=0))
    stream.relist()
    world.run()
    assert [document["metadata"]["name"] for document in server.list(PODS).items] == ["db-0"]
