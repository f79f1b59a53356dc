"""Every type of fault strikes, makes a difference, and lets the cluster come to rest once it is calm."""

from __future__ import annotations

import pytest

from embedded.faults.small import RATES, a_scenario, played
from wukong.app.embedded import play_scenario
from wukong.embedded.faults import TYPES
from wukong.embedded.scenario.format.fields import Fault
from wukong.errors import InputError

SEEDS = range(1, 9)


@pytest.mark.parametrize("name", TYPES)
def test_a_fault_strikes_makes_a_difference_and_is_overcome(name: str) -> None:
    effective = 0
    for seed in SEEDS:
        story, ledger = played(a_scenario(it=Fault(name, "100s", RATES[TYPES[name].per])), seed)
        assert (story.settled, story.stuck, story.findings) == (True, [], [])
        assert set(ledger.injected) <= {name}
        assert ledger.effective[name] <= ledger.injected[name]
        effective += ledger.effective[name]
        if effective:
            return
    raise AssertionError(f"{name} never made a difference in {len(SEEDS)} seeds")


def test_faults_end_with_their_time() -> None:
    _, ledger = played(a_scenario(it=Fault("failed", "1s", 0.5)))
    _, longer = played(a_scenario(it=Fault("failed", "100s", 0.5)))
    assert 0 < ledger.injected["failed"] < longer.injected["failed"]


def test_a_fault_per_minute_without_a_rate_comes_once() -> None:
    _, ledger = played(a_scenario(it=Fault("node-flapping")))
    assert ledger.injected == {"node-flapping": 1}


def test_the_same_seed_and_faults_give_the_same_story_and_another_seed_another() -> None:
    first, again, other = (play_scenario(a_scenario(), seed, faults=list(TYPES)) for seed in (3, 3, 4))
    assert first.digest == again.digest != other.digest
    assert first.trace == again.trace


def test_without_faults_nobody_is_late_and_nothing_is_found() -> None:
    story = play_scenario(a_scenario(), 3)
    assert (story.settled, story.findings) == (True, [])


def test_a_scenario_that_is_refused_in_good_weather_goes_on_in_bad() -> None:
    scenario = a_scenario()
    scenario.timeline[1].drain = "nowhere"
    with pytest.raises(InputError, match="nowhere"):
        play_scenario(scenario)
    assert play_scenario(scenario, faults=["stale"]).settled
