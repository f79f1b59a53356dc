"""Every type of fault strikes, makes a difference, and lets the cluster come to rest once it is calm."""

from __future__ import annotations

import pytest

from embedded.faults.small import RATES, a_scenario, play_seed
from wukong.app.embedded import play_scenario
from wukong.embedded.faults import TYPES
from wukong.embedded.scenario.format.fields import Fault
from wukong.errors import InputError

SEEDS = range(1, 9)


@pytest.mark.slow
@pytest.mark.parametrize("name", TYPES)
def test_a_fault_strikes_makes_a_difference_and_is_overcome(name: str) -> None:
    effective = 0
    for seed in SEEDS:
        story, counts = play_seed(a_scenario(fault=Fault(name, "100s", RATES[TYPES[name].per])), seed)
        assert (story.settled, story.stuck, story.findings) == (True, [], [])
        assert set(counts.injected) <= {name}
        assert counts.effective[name] <= counts.injected[name]
        effective += counts.effective[name]
        if effective:
            return
    raise AssertionError(f"{name} never made a difference in {len(SEEDS)} seeds")


def test_faults_end_with_their_time() -> None:
    _, counts = play_seed(a_scenario(fault=Fault("failed", "1s", 0.5)))
    _, longer = play_seed(a_scenario(fault=Fault("failed", "100s", 0.5)))
    assert 0 < counts.injected["failed"] < longer.injected["failed"]


def test_a_fault_per_minute_without_a_rate_comes_once() -> None:
    _, counts = play_seed(a_scenario(fault=Fault("node-flapping")))
    assert counts.injected == {"node-flapping": 1}


@pytest.mark.slow
def test_the_same_seed_and_faults_give_the_same_story_and_another_seed_another() -> None:
    first, again, other = (play_scenario(a_scenario(), seed, faults=list(TYPES)) for seed in (3, 3, 4))
    assert first.digest == again.digest != other.digest
    assert first.trace == again.trace


def test_without_faults_nobody_is_late_and_nothing_is_found() -> None:
    story = play_scenario(a_scenario(), 3)
    assert (story.settled, story.findings) == (True, [])


def test_a_scenario_that_is_refused_without_faults_goes_on_with_them() -> None:
    scenario = a_scenario()
    scenario.timeline[1].drain = "nowhere"
    with pytest.raises(InputError, match="nowhere"):
        play_scenario(scenario)
    assert play_scenario(scenario, faults=["stale"]).settled
