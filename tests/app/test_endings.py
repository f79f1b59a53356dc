"""How many seeds end how: stories that end alike are counted together, whichever is played first."""

from __future__ import annotations

from itertools import permutations

import pytest

from wukong.app.endings import Ending, Endings, WorkloadEnding, ending_of, ending_player, find_endings
from wukong.embedded.scenario import Story, read_scenario
from wukong.embedded.scenario.record.story import NodeCount, WorkloadSummary
from wukong.errors import InputError

ALL = WorkloadEnding(3, 3, 2)
TWO = """
nodes: [{namePrefix: n, count: 2}]
manifests:
  - {apiVersion: v1, kind: Pod, metadata: {name: lone}, spec: {containers: [{name: main, image: x}]}}
"""


def an_ending(seed: int, available: int = 3, *, unmet: bool = False) -> Ending:
    workloads = {"default/web": WorkloadEnding(3, available, 2)}
    return Ending(settled=available == 3, stuck=[], workloads=workloads, unmet=["no"] if unmet else [], seeds=[seed])


def a_story(**fields: object) -> Story:
    values: dict[str, object] = {"settled": True, "stuck": [], "workloads": {}, "nodes": NodeCount()}
    return Story(**values | {"writes": 1, "virtual_seconds": 1.0, "digest": "1"} | fields)  # type: ignore[arg-type]


def test_stories_that_end_alike_are_counted_together_in_whatever_order_they_come() -> None:
    for order in permutations([an_ending(1), an_ending(2, 1), an_ending(3), an_ending(4)]):
        endings = Endings()
        for ending in order:
            endings.add(an_ending(ending.seeds[0], ending.workloads["default/web"].available))
        assert [ending.seeds for ending in endings.endings] == [[1, 3, 4], [2]]
        assert endings.seeds == 4


def test_what_is_as_expected_and_what_is_not_are_two_endings() -> None:
    endings = Endings()
    endings.add(an_ending(1))
    before = endings.has_unmet
    endings.add(an_ending(2, unmet=True))
    assert (before, endings.has_unmet) == (False, True)
    assert [ending.seeds for ending in endings.endings] == [[1], [2]]


def test_the_names_of_pods_that_were_not_evicted_make_no_ending_of_their_own() -> None:
    reasons = [f"node n1: drain: pod shop/web-{name}: TooManyRequests: Cannot evict" for name in ("x7abc", "k2def")]
    first, second = (ending_of(a_story(stuck=[reason]), 1, []) for reason in reasons)
    assert first == second
    assert first.stuck == ["node n1: drain: pod …: TooManyRequests: Cannot evict"]


def test_where_pods_run_and_for_how_long_they_were_short_makes_no_ending_of_its_own() -> None:
    summaries = [
        WorkloadSummary(kind="Deployment", replicas=3, available=3, min_available=2, unavailable_seconds=seconds)
        for seconds in (0.25, 0.31)
    ]
    first, second = (ending_of(a_story(workloads={"shop/web": summary}), 1, []) for summary in summaries)
    assert first == second
    assert first.workloads == {"shop/web": ALL}


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_every_seed_is_played_once(jobs: int) -> None:
    told: list[int] = []
    play = ending_player(read_scenario(TWO), None, ())
    endings = find_endings(play, range(1, 8), jobs, lambda so_far: told.append(so_far.seeds))
    assert [ending.seeds for ending in endings.endings] == [[1, 2, 3, 4, 5, 6, 7]]
    assert told == [1, 2, 3, 4, 5, 6, 7]


def test_an_interrupt_ends_it_with_what_there_is_by_then() -> None:
    def play(seed: int) -> Ending:
        if seed == 3:
            raise KeyboardInterrupt
        return an_ending(seed)

    endings = find_endings(play, range(1, 6), 1, lambda so_far: None)
    assert endings.was_interrupted
    assert endings.endings[0].seeds == [1, 2]
    assert not find_endings(play, range(1, 3), 1, lambda so_far: None).was_interrupted


def test_with_faults_a_scenario_is_held_to_less() -> None:
    """Faults may cost pods: how few there were at times is not held against a story then."""
    text = TWO + "expect: {workloads: {default/lone: {evicted: 7}}}\n"
    (ending,) = find_endings(ending_player(read_scenario(text), None, ()), [1], 1, lambda so_far: None).endings
    assert ending.unmet
    faulty = ending_player(read_scenario(text), None, ("conflict",))
    (ending,) = find_endings(faulty, [1], 1, lambda so_far: None).endings
    assert ending.unmet == []


def test_a_mistake_of_ours_is_an_ending_and_one_of_the_scenario_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(error: Exception) -> None:
        def play(*_: object, **__: object) -> None:
            raise error

        monkeypatch.setattr("wukong.app.endings.play_with", play)

    player = ending_player(read_scenario(TWO), None, ())
    fail(ValueError("x" * 600))
    ending = player(5)
    assert (ending.settled, ending.seeds, ending.stuck) == (False, [5], [f"ValueError: {'x' * 488}"])
    assert ending.unmet == ending.stuck
    fail(InputError("no such node"))
    with pytest.raises(InputError, match="no such node"):
        player(5)
