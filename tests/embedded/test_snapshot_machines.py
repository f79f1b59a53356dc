"""Virtual machines of a snapshot: loading changes nothing, and what comes then goes on from what is there."""

from __future__ import annotations

import pytest

from embedded.actors.machine_world import (
    a_cluster,
    add_machine,
    instance_of,
    launchers_of,
    node_of,
    word_of,
)
from embedded.test_snapshot_load import list_everything
from wukong.api.kinds import VIRTUAL_MACHINE_INSTANCE_MIGRATIONS
from wukong.app.snapshots import load, play_on
from wukong.cluster.anonymize import anonymize_documents
from wukong.cluster.reduction import reduce_document
from wukong.embedded.scenario import Scenario
from wukong.embedded.scenario.format.read import read_scenario
from wukong.embedded.world.world import World
from wukong.ports import Document


def a_running_world(seed: int = 0) -> World:
    world = a_cluster(seed=seed).world
    for name in ("web", "db"):
        secret = {"name": "init", "cloudInitNoCloud": {"userData": "password: hunter2"}}
        disk = {"name": "root", "containerDisk": {"image": "registry/disk:1"}}
        add_machine(world, name, volumes=[disk, secret], accessCredentials=[{"sshPublicKey": {"source": "hunter2"}}])
    world.run()
    return world


def reduce_all(world: World) -> list[Document]:
    return [reduce_document(document) for document in list_everything(world)]


@pytest.mark.parametrize("form", ["whole", "reduced", "anonymous"])
def test_loading_machines_restarts_nothing_and_changes_nothing(form: str) -> None:
    world = a_running_world()
    documents = list_everything(world) if form == "whole" else reduce_all(world)
    documents = anonymize_documents(documents) if form == "anonymous" else documents
    story = play_on(load(documents, world.clock.now()), Scenario())
    assert story.before is not None
    assert (story.before.changes, story.settled, story.findings) == (0, True, [])
    assert story.writes == 0
    assert [summary.available for summary in story.workloads.values()] == [1, 1]


def test_a_snapshot_keeps_no_secrets_of_machines() -> None:
    world = a_running_world()
    assert "hunter2" in str(list_everything(world))
    assert "hunter2" not in str(reduce_all(world))
    disk = {"name": "init", "cloudInit": {"userData": "hunter2"}}
    template = {"volumes": [{"name": "more", "cloudInitNoCloud": {"userData": "hunter2"}}]}
    spec = {"disks": [disk], "vmTemplate": {"spec": {"template": {"spec": template}}}}
    wukong = {"apiVersion": "vm.novasphere.dev/v1alpha1", "kind": "Wukong", "metadata": {"name": "web"}, "spec": spec}
    reduced = reduce_document(wukong)
    assert reduced["spec"]["disks"] == [{"name": "init", "cloudInit": {"userData": "***"}}]
    assert "hunter2" not in str(reduced)


@pytest.mark.slow
@pytest.mark.parametrize("is_reduced", [False, True])
def test_a_drain_of_a_snapshot_migrates_its_machines(is_reduced: bool) -> None:
    world = a_running_world()
    documents = reduce_all(world) if is_reduced else list_everything(world)
    node = node_of(world)
    drain = read_scenario(f"timeline: [{{at: 10s, drain: {node}}}]".encode())
    story = play_on(load(documents, world.clock.now()), drain)
    summary = story.workloads["shop/web"]
    assert (summary.available, summary.min_available, summary.restarts) == (1, 1, 0)
    assert any(event.text.startswith(f"migrated from {node} to") for event in story.events)
    assert story.findings == []


def test_a_migration_under_way_is_played_to_its_end_first() -> None:
    world = a_running_world()
    body = {"metadata": {"name": "move"}, "spec": {"vmiName": "web"}}
    world.server.create(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, body, "shop")
    world.run(lambda _: word_of(world) == "Migrating")
    world.run(seconds=3)
    for documents in (list_everything(world), reduce_all(world)):
        story = play_on(load(documents, world.clock.now()), Scenario())
        assert story.before is not None
        assert (story.before.settled, story.settled, story.findings) == (True, True, [])
        assert any(event.text.startswith("migrated from") for event in story.before.timeline)
        assert story.workloads["shop/web"].restarts == 0


def test_a_fork_of_a_cluster_with_machines_plays_on_as_the_original() -> None:
    for seconds in (0.2, 0.6, 3.0, 12.0):
        cluster = a_cluster(seed=3)
        world = cluster.world
        add_machine(world)
        add_machine(world, "other", annotations={"sim.novasphere.dev/boot-seconds": "2"})
        world.run(seconds=0.1)
        world.run()
        body = {"metadata": {"name": "move"}, "spec": {"vmiName": "web"}}
        world.server.create(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, body, "shop")
        world.run(seconds=seconds)
        copy = cluster.fork().world
        endings = []
        for played in (world, copy):
            begin = played.trace.total
            played.run(seconds=60)
            endings.append(
                ([str(step) for step in list(played.trace)][-(played.trace.total - begin) :], node_of(played))
            )
            assert word_of(played) == "Running"
            assert instance_of(played) is not None
            assert len(launchers_of(played)) == 2
        assert endings[0] == endings[1]
