"""Loads with absurd amounts in them are exact whatever comes and goes, and shown within bounds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wukong.engine.arrays import Ints
from wukong.engine.oversized_loads import OVERSIZED, OversizedLoads, cap, is_oversized

LARGEST = int(cap([2**80])[0])
AMOUNTS = st.sampled_from((0, 1, 7, OVERSIZED - 1, OVERSIZED, OVERSIZED + 1, 2**62))


def an_array(*amounts: int) -> Ints:
    return np.array(amounts, dtype=np.int64)


@pytest.mark.parametrize(
    ("amounts", "expected"),
    [
        ((), False),
        ((0, 0), False),
        ((OVERSIZED - 1,), False),
        ((OVERSIZED,), True),
        ((0, OVERSIZED), True),
        ((-OVERSIZED,), True),
        ((1 - OVERSIZED,), False),
        ((-OVERSIZED, 5), True),
    ],
)
def test_one_amount_is_enough_to_be_oversized(amounts: tuple[int, ...], expected: bool) -> None:
    assert is_oversized(an_array(*amounts)) is expected


def test_what_is_shown_is_bounded_on_both_sides() -> None:
    assert cap([5, -5, LARGEST, LARGEST + 1, -LARGEST - 1]).tolist() == [5, -5, LARGEST, LARGEST, -LARGEST]


@given(st.lists(st.tuples(AMOUNTS, AMOUNTS, st.booleans()), max_size=20), st.integers(0, 1000))
def test_pods_that_come_and_go_leave_what_was_there_before(steps: list[tuple[int, int, bool]], start: int) -> None:
    loads, exact, column = OversizedLoads(), [start, 0], an_array(start, 0)
    present: list[tuple[int, int]] = []
    for first, second, comes in steps:
        if comes or not present:
            vector, count = (first, second), 1
            present.append(vector)
        else:
            vector, count = present.pop(0), -1
        if 0 in loads or is_oversized(an_array(*vector)):
            column = loads.add(0, column, an_array(*vector), count)
        else:
            column = column + count * an_array(*vector)
        exact = [amount + count * change for amount, change in zip(exact, vector, strict=True)]
        assert column.tolist() == cap(exact).tolist()
        assert (0 in loads) == any(is_oversized(an_array(*pod)) for pod in present)
        assert bool(loads) == (0 in loads)


def test_several_at_once_count_as_many() -> None:
    loads = OversizedLoads()
    assert loads.add(3, an_array(1), an_array(2**62), 3).tolist() == [LARGEST]
    assert loads.add(3, an_array(LARGEST), an_array(2**62), -2).tolist() == [min(LARGEST, 2**62 + 1)]
    assert loads.add(3, an_array(0), an_array(2**62), -1).tolist() == [1]
    assert 3 not in loads


def test_lines_that_are_new_begin_at_nothing() -> None:
    loads = OversizedLoads()
    loads.add(0, an_array(1), an_array(2**62), 1)
    assert loads.add(0, an_array(0, 0), an_array(0, 5), 1).tolist()[1] == 5
    assert loads.change(0, an_array(0, 0, 0), [(2, 7), (1, -2)]).tolist()[1:] == [3, 7]


def test_nodes_move_go_and_forks_are_their_own() -> None:
    loads = OversizedLoads()
    for row in range(3):
        loads.add(row, an_array(row), an_array(2**62), 1)
    fork = loads.fork()
    loads.move([2, -1, 0])
    assert [row in loads for row in range(3)] == [True, False, True]
    assert loads.add(0, an_array(0), an_array(2**62), -1).tolist() == [2]
    assert loads.add(2, an_array(0), an_array(2**62), -1).tolist() == [0]
    assert not loads
    assert [row in fork for row in range(3)] == [True, True, True]
    assert fork.add(1, an_array(0), an_array(2**62), -1).tolist() == [1]
