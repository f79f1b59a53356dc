"""The garbage collector's thresholds while a world runs, and afterwards."""

import gc
from collections.abc import Iterator

import pytest

from wukong.embedded.store import Server
from wukong.embedded.world.clock import VirtualClock
from wukong.embedded.world.rare_collection import OBJECTS_BETWEEN, collect_rarely
from wukong.embedded.world.world import World
from wukong.state import State


@pytest.fixture(autouse=True)
def _restore_thresholds() -> Iterator[None]:
    thresholds = gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)


def test_a_running_world_is_collected_rarely_and_the_thresholds_come_back() -> None:
    gc.set_threshold(700, 10, 10)
    seen: list[tuple[int, int, int]] = []

    def look(_: State) -> bool:
        seen.append(gc.get_threshold())
        return True

    clock = VirtualClock()
    World(server=Server(clock), clock=clock).run(look)
    assert seen == [(OBJECTS_BETWEEN, 10, 10)]
    assert gc.get_threshold() == (700, 10, 10)


def test_the_thresholds_come_back_after_an_error() -> None:
    gc.set_threshold(700, 10, 10)
    with pytest.raises(KeyError), collect_rarely():
        raise KeyError
    assert gc.get_threshold() == (700, 10, 10)


@pytest.mark.parametrize("youngest", [0, 10 * OBJECTS_BETWEEN])
def test_who_collects_still_more_rarely_is_left_alone(youngest: int) -> None:
    gc.set_threshold(youngest, 10, 10)
    with collect_rarely():
        assert gc.get_threshold() == (youngest, 10, 10)
