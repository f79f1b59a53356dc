"""What KubeVirt's actors look up by index is what a walk over the mirror finds, after any changes and on any fork."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wukong.api.kinds import VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, VIRTUAL_MACHINE_INSTANCES
from wukong.api.resources import Key, key_of
from wukong.embedded.actors.kubevirt.migration_index import MigrationIndex
from wukong.embedded.actors.kubevirt.node_index import InstancesByNode
from wukong.embedded.world.objects import VirtualMachineInstance, VirtualMachineInstanceMigration, read
from wukong.ports import EventType
from wukong.state import State

NAMESPACES, NAMES, NODES = ("shop", "other"), ("a", "b", "c"), ("", "n1", "n2")
PHASES = ("", "Pending", "Scheduling", "Running", "Succeeded", "Failed")
KEYS = [Key(namespace, name) for namespace in NAMESPACES for name in NAMES]


def a_meta(key: Key, version: int) -> dict[str, str]:
    return {"namespace": key.namespace, "name": key.name, "uid": f"{key}", "resourceVersion": str(version)}


@st.composite
def changes(draw: st.DrawFn) -> tuple[EventType, str, Key, str, str]:
    """An event of an instance on a node, or of a migration of an instance; both may change to others."""
    event: EventType = draw(st.sampled_from(("ADDED", "MODIFIED", "DELETED")))
    kind = draw(st.sampled_from((VIRTUAL_MACHINE_INSTANCES.group_kind, VIRTUAL_MACHINE_INSTANCE_MIGRATIONS.group_kind)))
    of = draw(st.sampled_from(NODES if kind == VIRTUAL_MACHINE_INSTANCES.group_kind else NAMES))
    return event, kind, draw(st.sampled_from(KEYS)), of, draw(st.sampled_from(PHASES))


def apply(state: State, change: tuple[EventType, str, Key, str, str], version: int) -> None:
    event, kind, key, of, phase = change
    is_instance = kind == VIRTUAL_MACHINE_INSTANCES.group_kind
    status = {"phase": phase, "nodeName": of} if is_instance else {"phase": phase}
    spec = {} if is_instance else {"vmiName": of}
    state.apply(event, read(kind, {"metadata": a_meta(key, version), "spec": spec, "status": status}), kind)


def ask_indexes(state: State) -> Iterator[object]:
    migrations, instances = state.index_of(MigrationIndex), state.index_of(InstancesByNode)
    yield [migrations.of_instance(key) for key in KEYS]
    yield list(map(key_of, migrations.list_unfinished(state)))
    yield list(map(key_of, migrations.list_running(state)))
    yield [list(map(key_of, instances.on_node(node, state))) for node in NODES[1:]]


def walk(state: State) -> Iterator[object]:
    """The same answers, by a look at every object."""
    migrations = {key_of(migration): migration for migration in state.all(VirtualMachineInstanceMigration)}
    instances = {key_of(instance): instance for instance in state.all(VirtualMachineInstance)}
    unfinished = [key for key in sorted(migrations) if migrations[key].status.phase not in ("Succeeded", "Failed")]
    yield [
        [key for key in sorted(migrations) if Key(key.namespace, migrations[key].spec.vmi_name) == instance]
        for instance in KEYS
    ]
    yield unfinished
    yield [key for key in unfinished if migrations[key].status.phase not in ("", "Pending")]
    yield [[key for key in sorted(instances) if instances[key].status.node_name == node] for node in NODES[1:]]


@pytest.mark.slow
@settings(max_examples=100)
@given(st.lists(changes(), max_size=20), st.lists(changes(), max_size=6), st.lists(changes(), max_size=6))
def test_an_index_answers_as_a_walk_does_and_forks_go_their_own_way(
    history: list[tuple[EventType, str, Key, str, str]],
    own: list[tuple[EventType, str, Key, str, str]],
    of_fork: list[tuple[EventType, str, Key, str, str]],
) -> None:
    state = State()
    assert list(ask_indexes(state)) == list(walk(state))  # the indexes are there from now on
    for version, change in enumerate(history):
        apply(state, change, version)
        assert list(ask_indexes(state)) == list(walk(state))
    fork = state.fork()
    for branch, later in ((fork, of_fork), (state, own)):
        for version, change in enumerate(later, len(history)):
            apply(branch, change, version)
    for branch in (state, fork, state.fork()):
        assert list(ask_indexes(branch)) == list(walk(branch))


@settings(max_examples=50)
@given(st.lists(changes(), max_size=20))
def test_an_index_that_is_asked_for_late_knows_what_was_there_before(
    history: list[tuple[EventType, str, Key, str, str]],
) -> None:
    state = State()
    for version, change in enumerate(history):
        apply(state, change, version)
    assert list(ask_indexes(state)) == list(walk(state))
