"""How writes of a Wukong's machines are named and paced; which are made, test_vm.py shows."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from wukong.api.resources import Key
from wukong.controllers.vm.controller import Advice, Judgement, VirtualMachineController
from wukong.controllers.vm.vm_writes import Repair, index_of, name_some
from wukong.placement.rules import BUILT_IN
from wukong.state import State


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (1, "vm-0"),
        (5, "vm-0, vm-1, vm-2, vm-3, vm-4"),
        (6, "vm-0, vm-1, vm-2, vm-3, vm-4 and 1 more"),
        (70, "vm-0, vm-1, vm-2, vm-3, vm-4 and 65 more"),
    ],
)
def test_five_names_are_told_and_how_many_more_there_are(count: int, expected: str) -> None:
    assert name_some([f"vm-{number}" for number in range(count)]) == expected


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("db-0", 0),
        ("db-17", 17),
        ("db-999999999", 999_999_999),
        ("db-1000000000", -1),
        ("db", -1),
        ("db-", -1),
        ("db-²", -1),
    ],
)
def test_the_index_of_a_machine_is_the_number_at_the_end_of_its_name(name: str, index: int) -> None:
    assert index_of(name) == index


@pytest.mark.parametrize(
    ("count", "seconds"), [(1, 1.0), (2, 2.0), (3, 4.0), (9, 256.0), (10, 300.0), (17, 300.0), (5000, 300.0)]
)
def test_repairs_in_a_row_wait_twice_as_long_each_time_up_to_five_minutes(count: int, seconds: float) -> None:
    assert Repair(count, 0.0).wait_seconds == seconds


def test_a_fork_remembers_what_was_judged_told_and_repaired_and_shares_nothing() -> None:
    web, db = Key("shop", "web"), Key("shop", "db")
    source, copy = VirtualMachineController(BUILT_IN), VirtualMachineController(BUILT_IN)
    source._judged[web], source._told_at[web] = Judgement("u", 1, [], True), 7.0
    source._advice[web], source._quiet_at[web] = Advice("p", "no room", 7.0, "Add cpu."), 8.0
    source.writer._verified[web] = {"web": ("u", 1, "5")}
    source.writer._repairs[web] = {"web": Repair(2, 7.0)}

    def read(controller: VirtualMachineController) -> list[dict[Key, Any]]:
        told, writer = (controller._told_at, controller._quiet_at), controller.writer
        memory = (controller._judged, *told, controller._advice, writer._verified, writer._repairs)
        return [deepcopy(part) for part in memory]

    copy.copy_memory(source, State())
    before = read(source)
    assert read(copy) == before
    copy._judged[db], copy._told_at[db], copy._advice[db] = copy._judged[web], 9.0, copy._advice[web]
    copy._quiet_at[db] = 9.0
    copy.writer._verified[web]["web-1"] = ("u", 2, "6")
    copy.writer._repairs[web]["web-1"] = Repair(1, 9.0)
    assert read(source) == before
