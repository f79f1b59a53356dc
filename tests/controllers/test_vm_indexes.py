"""What the vm controllers look up without walking: after any changes it is what it would be, made anew."""

from __future__ import annotations

from random import Random

import msgspec
import pytest

from vms import a_migration, a_vm, a_wukong, an_instance
from wukong.api.meta import Object
from wukong.api.resources import Key, key_of
from wukong.controllers.vm.machines import MigrationIndex, find_migration
from wukong.controllers.vm.priority_classes import ClassUsers
from wukong.placement.vm import VmSettings, build_virtual_machine
from wukong.state import State

CLASSES = ("wukong-5", "wukong-100")
INSTANCES = [Key("shop", f"web-{index}") for index in range(4)]


def draw_object(draw: Random) -> Object:
    """One of a few names, so that objects change and come again."""
    number = draw.randrange(4)
    priority = draw.choice([None, 5, 100])
    wukong = a_wukong(f"web-{number}", scheduling={"schedulingPolicy": {"priority": priority}} if priority else None)
    vm = a_vm(build_virtual_machine(wukong, f"web-{number}", VmSettings()))
    instance = an_instance(vm, "node-a")
    migration = a_migration(instance, f"move-{draw.randrange(3)}", draw.choice(["Running", "Succeeded"]))
    return draw.choice([wukong, vm, instance, migration])


def describe(state: State) -> object:
    users, migrations = state.index_of(ClassUsers), state.index_of(MigrationIndex)
    return (
        [(users.list_asking(name), users.is_used(name)) for name in CLASSES],
        [migrations.list_keys(key) for key in INSTANCES],
    )


def rebuild(state: State) -> State:
    """The same objects in a mirror of their own."""
    copy = State()
    for group_kind, objects in state.objects.items():
        copy.replace(group_kind, objects.values())
    return copy


@pytest.mark.parametrize("seed", range(20))
def test_indexes_are_what_they_would_be_made_anew_and_forks_go_their_own_way(seed: int) -> None:
    draw, state = Random(seed), State()
    describe(state)
    for version in range(60):
        subject = draw_object(draw)
        subject.metadata.resource_version = str(version)
        if draw.random() < 0.3:
            state.apply("DELETED", subject)
        else:
            state.apply("MODIFIED", subject)
        assert describe(state) == describe(rebuild(state))
    before, fork = describe(state), state.fork()
    for key in INSTANCES:
        for group_kind in list(fork.objects):
            for subject in [entry for entry in fork.objects[group_kind].values() if key_of(entry) == key]:
                fork.apply("DELETED", subject, group_kind)
    assert describe(fork) == describe(rebuild(fork))
    assert describe(state) == before


def test_a_migration_that_has_ended_is_not_under_way() -> None:
    vm = a_vm(build_virtual_machine(a_wukong(), "web", VmSettings()))
    instance = an_instance(vm, "node-a")
    state = State()
    state.apply("ADDED", a_migration(instance, "first", "Succeeded"))
    assert find_migration(key_of(instance), state) is None
    second = a_migration(instance, "second", "Pending")
    state.apply("ADDED", second)
    found = find_migration(key_of(instance), state)
    assert found is not None
    assert found.metadata.name == "second"
    over = msgspec.structs.replace(second, status=msgspec.structs.replace(second.status, phase="Failed"))
    over.metadata = msgspec.structs.replace(over.metadata, resource_version="9")
    state.apply("MODIFIED", over)
    assert find_migration(key_of(instance), state) is None
