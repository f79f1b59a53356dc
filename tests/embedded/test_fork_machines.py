"""A fork of a world with Wukongs and virtual machines goes on as the world would, migrations under way included."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from embedded.test_fork import a_play, list_differences, whole_end
from wukong.api.kinds import VIRTUAL_MACHINES, WUKONGS
from wukong.api.kubevirt import VirtualMachineInstanceMigration
from wukong.embedded.scenario import Scenario, read_scenario
from wukong.ports import Document

END = 500.0
CHANGES: list[Document] = [
    {"cpu": 4},
    {"memory": "2Gi"},
    {"labels": {"tier": "front"}},
    {"scheduling": {"tolerations": [{"key": "spot", "operator": "Exists"}]}},
    {"scheduling": {"schedulingPolicy": {"priority": 100}}},
    {"runStrategy": "Halted"},
]


def a_wukong(name: str, **spec: object) -> Document:
    disks = [{"name": "root", "containerDisk": {"image": "registry.example/disk:1"}}]
    return {
        "apiVersion": WUKONGS.api_version,
        "kind": WUKONGS.kind,
        "metadata": {"name": name},
        "spec": {"disks": disks, **spec},
    }


def a_document(manifests: list[Document], timeline: list[Document], nodes: int = 4) -> Document:
    capacity = {"cpu": 8, "memory": "16Gi"}
    return {
        "components": ["vm"],
        "nodes": [{"namePrefix": "n", "count": nodes, "capacity": capacity}],
        "manifests": manifests,
        "timeline": timeline,
    }


@st.composite
def machine_scenarios(draw: st.DrawFn) -> Document:
    """One Wukong of several machines and one of one, and what happens to them and their nodes, close together."""
    web: Document = {
        "replicas": draw(st.integers(1, 4)),
        "restartPolicy": draw(st.sampled_from(("Never", "WhenSafe"))),
        "highAvailability": {"antiAffinity": draw(st.booleans())},
        "evictionStrategy": draw(st.sampled_from(("LiveMigrateIfPossible", "LiveMigrate", "None"))),
    }
    machine = {"kind": VIRTUAL_MACHINES.kind, "apiVersion": VIRTUAL_MACHINES.api_version, "name": "web-0"}
    migration = {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstanceMigration",
        "metadata": {"name": "by-hand"},
        "spec": {"vmiName": "web-0"},
    }
    steps: list[Document] = [
        {"drain": "n1"},
        {"drain": "n2"},
        {"uncordon": "n1"},
        {"kill": "n3"},
        {"notReady": "n2"},
        {"ready": "n2"},
        {"apply": migration},
        {"delete": machine},
        {"delete": {"kind": WUKONGS.kind, "apiVersion": WUKONGS.api_version, "name": "db"}},
        {"patch": {**machine, "type": "merge", "patch": {"spec": {"runStrategy": "Halted"}}}},
        *({"apply": a_wukong("web", **{**web, **change})} for change in CHANGES),
        {"apply": a_wukong("web", **{**web, "replicas": draw(st.integers(0, 4))})},
    ]
    chosen = draw(st.lists(st.sampled_from(steps), min_size=1, max_size=4, unique_by=str))
    moments = sorted(draw(st.lists(st.integers(20, 200), min_size=len(chosen), max_size=len(chosen))))
    timeline = [{"at": f"{moment}s", **step} for moment, step in zip(moments, chosen, strict=True)]
    return a_document([a_wukong("web", **web), a_wukong("db", memory="2Gi")], timeline, draw(st.integers(2, 5)))


def drain_two() -> Document:
    """Machines that keep apart leave two of five nodes, by migrations of twenty seconds; one has to wait for room."""
    web = a_wukong("web", replicas=4, memory="2Gi", highAvailability={"antiAffinity": True})
    timeline = [{"at": "60s", "drain": "n1"}, {"at": "70s", "drain": "n2"}, {"at": "120s", "uncordon": "n1"}]
    return a_document([web, a_wukong("db", memory="1Gi")], timeline, 5)


def read(document: Document) -> Scenario:
    return read_scenario(msgspec.json.encode(document))


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(machine_scenarios(), st.integers(0, 50), st.lists(st.floats(0.01, 220), min_size=2, max_size=2).map(sorted))
@example(drain_two(), 1, [60.5, 71.5])
@example(drain_two(), 2, [66.0, 125.0])
def test_a_played_fork_with_machines_and_a_fork_of_it_end_like_a_world_played_from_the_start(
    document: Document, seed: int, times: list[float]
) -> None:
    scenario = read(document)
    whole = a_play(scenario, seed)
    whole.go_on(scenario, 0, END)
    parent = a_play(scenario, seed)
    parent.go_on(scenario, 0, times[0])
    child = parent.fork()
    assert list_differences(parent, child) == []
    child.go_on(scenario, times[0], times[1])
    grandchild = child.fork()
    for play, since in ((grandchild, times[1]), (parent, times[0]), (child, times[1])):
        play.go_on(scenario, since, END)  # one after another: none may disturb those that follow
        assert play.end() == whole_end(whole)


@pytest.mark.parametrize(("seed", "moment"), [(1, 71.5), (2, 66.0), (2, 125.0)])
def test_migrations_are_under_way_where_the_examples_fork(seed: int, moment: float) -> None:
    scenario = read(drain_two())
    play = a_play(scenario, seed)
    play.go_on(scenario, 0, moment)
    migrations = play.world.state.all(VirtualMachineInstanceMigration)
    assert any(migration.status.phase == "Running" for migration in migrations)
