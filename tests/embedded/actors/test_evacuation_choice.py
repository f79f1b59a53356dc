"""Which machines of a node that is to be empty are migrated now: who may, and how many at a time."""

from __future__ import annotations

from typing import Any

import pytest

from wukong.embedded.actors.kubevirt.evacuation import _count_free_places, _sort_out
from wukong.embedded.world import objects
from wukong.state import State

MIGRATABLE = {"type": "LiveMigratable", "status": "True"}


def an_instance(
    name: str, strategy: str = "LiveMigrate", *, phase: str = "Running", can: bool = True, **meta: Any
) -> Any:
    metadata = {"name": name, "namespace": "shop", "uid": f"i-{name}", **meta}
    conditions = [MIGRATABLE if can else {**MIGRATABLE, "status": "False"}]
    status = {"phase": phase, "nodeName": "n0", "conditions": conditions}
    spec = {"evictionStrategy": strategy}
    return objects.read("VirtualMachineInstance.kubevirt.io", {"metadata": metadata, "spec": spec, "status": status})


def a_migration(name: str, instance: str, phase: str = "Running") -> Any:
    metadata = {"name": name, "namespace": "shop", "uid": f"m-{name}"}
    document = {"metadata": metadata, "spec": {"vmiName": instance}, "status": {"phase": phase}}
    return objects.read("VirtualMachineInstanceMigration.kubevirt.io", document)


@pytest.mark.parametrize(
    ("running", "free"),
    [
        ((), 2),
        (("a",), 1),
        (("a", "b"), 0),
        (("x",), 2),
        (("x", "y", "z"), 2),
        (("x", "y", "z", "u"), 1),
        (("a", "x", "y", "z"), 1),
        (("x", "y", "z", "u", "v"), 0),
    ],
)
def test_two_of_a_node_and_five_of_the_cluster_migrate_at_a_time(running: tuple[str, ...], free: int) -> None:
    state = State()
    for name in running:
        state.apply("ADDED", a_migration(name, name))
    state.apply("ADDED", a_migration("over", "b", "Succeeded"))
    assert _count_free_places([an_instance(name) for name in "abc"], state) == free


@pytest.mark.parametrize(
    ("instance", "is_candidate", "is_stuck"),
    [
        (an_instance("a"), True, False),
        (an_instance("a", can=False), False, True),
        (an_instance("a", "LiveMigrateIfPossible"), True, False),
        (an_instance("a", "LiveMigrateIfPossible", can=False), False, False),
        (an_instance("a", "None"), False, False),
        (an_instance("a", "External"), False, False),
        (an_instance("a", phase="Succeeded"), False, False),
        (an_instance("a", phase="Failed", can=False), False, False),
        (an_instance("a", deletionTimestamp="2026-01-01T00:00:00Z"), False, False),
    ],
)
def test_who_can_be_migrated_and_who_should_be_and_cannot(instance: Any, is_candidate: bool, is_stuck: bool) -> None:
    candidates, stuck = _sort_out([instance], [], State())
    assert (candidates == [instance], stuck == [instance]) == (is_candidate, is_stuck)
    assert _sort_out([instance], [a_migration("m", "other")], State()) == (candidates, stuck)
    assert _sort_out([instance], [a_migration("m", "a")], State()) == ([], stuck)
