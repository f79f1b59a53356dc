"""virt-controller whose watch of pods is late: it waits for what it asked for itself, as its expectations have it."""

from __future__ import annotations

from typing import Any

import pytest

from embedded.actors.actor_world import NAMESPACE, add_node
from embedded.actors.machine_world import (
    add_machine,
    condition_of,
    instance_of,
    launchers_of,
    node_of,
    phase_of,
    running_launchers_of,
    word_of,
)
from wukong.api.kinds import (
    NAMESPACES,
    PODS,
    VIRTUAL_MACHINE_INSTANCE_MIGRATIONS,
    VIRTUAL_MACHINE_INSTANCES,
    VIRTUAL_MACHINES,
    WUKONGS,
)
from wukong.api.resources import Key, Resource
from wukong.app.component import Component
from wukong.app.components.kube_scheduler import KUBE_SCHEDULER
from wukong.app.components.vm import VM
from wukong.app.embedded import Settings, build_world
from wukong.embedded.checkers import Checkers
from wukong.embedded.checkers.object_writes import MOST_WRITES
from wukong.embedded.faults import Faults
from wukong.embedded.scenario.play.steps import Drains
from wukong.embedded.store.documents import value_at
from wukong.embedded.world.process import Process
from wukong.embedded.world.watch_stream import Arrival, WatchStream
from wukong.embedded.world.world import World
from wukong.ports import Document, PatchBody

SLOW_TO_STOP = {"sim.novasphere.dev/stop-seconds": "40"}
WEB = Key(NAMESPACE, "web")
MACHINES = VIRTUAL_MACHINES.group_kind


class LateWatch(Faults):
    """No fault but one: what happens to this kind arrives so many seconds late at kube- and virt-controllers."""

    def __init__(self, resource: Resource, seconds: float) -> None:
        super().__init__(0, [])
        self.kind, self.arrival = resource.group_kind, Arrival(delay=seconds)

    def observe_start(self, process: Process, streams: list[WatchStream]) -> None:
        for stream in streams:
            if process.name == "controllers" and stream.kind == self.kind:
                stream.route = lambda *_: self.arrival


def a_late_world(
    resource: Resource, seconds: float, nodes: int = 4, components: tuple[Component[Any], ...] = (KUBE_SCHEDULER,)
) -> tuple[World, Checkers]:
    faults = LateWatch(resource, seconds)
    world = build_world(Settings(0, components), Drains(), fault_injection=faults)
    checkers = Checkers(world, faults)
    world.server.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
    for number in range(nodes):
        add_node(world, f"n{number}")
    world.run(seconds=1)
    return world, checkers


def test_an_instance_that_is_deleted_before_its_pod_was_seen_takes_that_along() -> None:
    world, checkers = a_late_world(PODS, 20)
    add_machine(world, annotations=SLOW_TO_STOP)
    world.run(seconds=7)  # longer than a key rests for its own write
    (pod,) = running_launchers_of(world)
    first = instance_of(world)
    assert first is not None
    world.server.delete(VIRTUAL_MACHINE_INSTANCES, WEB)
    world.run(seconds=300)
    assert [str(finding) for finding in checkers.finish(is_at_rest=False)] == []
    (other,) = running_launchers_of(world)
    assert other["metadata"]["name"] != pod["metadata"]["name"]
    assert phase_of(world) == "Running"


def test_a_pod_that_never_shows_is_not_waited_for_longer_than_five_minutes() -> None:
    world, _ = a_late_world(PODS, 10_000)
    add_machine(world)
    world.run(seconds=5)
    world.server.delete(VIRTUAL_MACHINE_INSTANCES, WEB)
    world.run(seconds=290)
    waiting = instance_of(world)
    assert waiting is not None
    assert waiting["metadata"].get("deletionTimestamp")
    world.run(seconds=20)
    after = instance_of(world)
    assert after is not None
    assert after["metadata"]["uid"] != waiting["metadata"]["uid"]


def test_a_leader_that_is_late_with_pods_lets_no_instance_go_whose_pod_another_made() -> None:
    world, checkers = a_late_world(PODS, 0.01)
    (late,) = [process for process in world.processes if process.name == "controllers"]
    world.start(late.role)  # another leader; the first does not know yet that it is none
    for stream in world.streams_of(late):
        if stream.kind == PODS.group_kind:
            stream.route = lambda *_: Arrival(delay=60)
    add_machine(world, annotations=SLOW_TO_STOP)
    world.run(seconds=3)
    (pod,) = launchers_of(world)
    world.run(seconds=37)
    world.stop(late)
    world.run(seconds=300)
    assert [str(finding) for finding in checkers.finish(is_at_rest=False)] == []
    assert phase_of(world) == "Running"
    assert [other["metadata"]["name"] for other in launchers_of(world)] == [pod["metadata"]["name"]]


def test_a_pod_that_was_refused_is_not_waited_for() -> None:
    world, _ = a_late_world(PODS, 0.01)
    add_machine(world, priorityClassName="missing")
    world.run(seconds=3)
    world.server.delete(VIRTUAL_MACHINE_INSTANCES, WEB)
    before = instance_of(world)
    assert before is not None
    world.run(seconds=30)
    after = instance_of(world)
    assert after is None or after["metadata"]["uid"] != before["metadata"]["uid"]


def test_while_a_target_pod_has_not_been_seen_no_other_is_made() -> None:
    world, checkers = a_late_world(PODS, 0.01, nodes=6)
    for name in ("web", "db", "api"):
        add_machine(world, name)
    world.run(seconds=5)
    assert isinstance(world._fault_injection, LateWatch)
    world._fault_injection.arrival = Arrival(delay=60)
    for name in ("web", "db", "api"):
        migrate(world, name)
    world.run(seconds=40)
    targets = [
        pod for pod in world.server.list(PODS).items if "kubevirt.io/migrationJobUID" in pod["metadata"]["labels"]
    ]
    assert len(targets) == 1  # virt-controller makes no second one before it has seen the first
    assert [str(finding) for finding in checkers.finish(is_at_rest=False)] == []


def migrate(world: World, name: str) -> None:
    body = {"metadata": {"name": f"move-{name}"}, "spec": {"vmiName": name}}
    world.server.create(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, body, NAMESPACE)


def test_an_evacuation_that_has_not_been_seen_is_not_begun_again() -> None:
    world, _ = a_late_world(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, 30)
    add_machine(world)
    world.run(seconds=5)
    (pod,) = running_launchers_of(world)
    evacuate = {"status": {"evacuationNodeName": pod["spec"]["nodeName"]}}
    world.server.patch(VIRTUAL_MACHINE_INSTANCES, WEB, PatchBody("merge", evacuate))
    world.run(seconds=10)
    touch = {"metadata": {"labels": {"looked": "at"}}}
    world.server.patch(VIRTUAL_MACHINE_INSTANCES, WEB, PatchBody("merge", touch))
    world.run(seconds=10)
    assert len(evacuations_of(world)) == 1
    world.run(seconds=300)
    assert [value_at(migration, "status.phase") for migration in evacuations_of(world)] == ["Succeeded"]
    assert node_of(world) != pod["spec"]["nodeName"]


def evacuations_of(world: World) -> list[Document]:
    return world.server.list(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS).items


@pytest.mark.slow
def test_leaders_of_whom_one_is_late_with_instances_write_a_machine_in_turns_but_its_wukong_is_not() -> None:
    """The leaders do as real ones (tests/live/test_two_virt_controllers.py), and are not blamed. We would be."""
    world, checkers = a_late_world(VIRTUAL_MACHINE_INSTANCES, 0.01, nodes=0, components=(KUBE_SCHEDULER, VM))
    (late,) = [process for process in world.processes if process.name == "controllers"]
    world.start(late.role)
    disks = [{"name": "root", "containerDisk": {"image": "registry/disk:1"}}]
    world.server.create(WUKONGS, {"metadata": {"name": "web"}, "spec": {"disks": disks}}, NAMESPACE)
    world.run(seconds=3)
    for stream in world.streams_of(late):
        if stream.kind == VIRTUAL_MACHINE_INSTANCES.group_kind:
            stream.route = lambda *_: Arrival(delay=60)
    words: list[str] = []
    world.listen(lambda change: words.append(word_of(world)) if change.group_kind == MACHINES else None)
    add_node(world, "n0")
    world.run(seconds=12)
    assert min(words.count("Running"), words.count("ErrorUnschedulable")) > MOST_WRITES[MACHINES]
    world.stop(late)
    world.run(seconds=300)
    assert [str(finding) for finding in checkers.finish(is_at_rest=False)] == []
    assert word_of(world) == "Running"
    assert condition_of(world.server.get(WUKONGS, WEB), "Ready")["status"] == "True"
