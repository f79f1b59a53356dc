"""Many seeds of one scenario: counted, compared, interrupted."""

from __future__ import annotations

import pytest

from embedded.faults.small import a_scenario
from wukong.app.soak import SoakResult, play_seed, soak
from wukong.embedded.faults import TYPES

FAULTS = ("conflict", "stale", "duplicated")


def quiet(_: SoakResult) -> None:
    pass


@pytest.mark.slow
def test_seeds_go_alike_in_one_process_and_in_several() -> None:
    told: list[int] = []
    alone = soak(a_scenario(), range(1, 5), FAULTS, 1, lambda soaked: told.append(soaked.seeds))
    together = soak(a_scenario(), range(1, 5), FAULTS, 2, quiet)
    assert told == [1, 2, 3, 4]
    assert (alone.seeds, alone.failures, alone.writes) == (4, [], together.writes)
    assert (alone.injected, alone.effective) == (together.injected, together.effective)
    assert not alone.has_failed


def test_an_interrupt_leaves_what_there_is_by_then() -> None:
    def impatient(soaked: SoakResult) -> None:
        if soaked.seeds == 2:
            raise KeyboardInterrupt

    result = soak(a_scenario(), range(1, 100), (), 1, impatient)
    assert (result.seeds, result.was_interrupted, result.has_failed) == (2, True, True)


def test_a_type_that_makes_no_difference_is_named() -> None:
    scenario = a_scenario()
    scenario.extender = False
    result = soak(scenario, [1], ["extender"], 1, quiet)
    assert (result.failures, result.ineffective, result.has_failed) == ([], ["extender"], True)


@pytest.mark.slow
def test_all_faults_at_once_are_overcome_and_none_is_without_effect() -> None:
    result = soak(a_scenario(), range(1, 11), list(TYPES), 1, quiet)
    assert result.failures == []
    assert result.ineffective == []


def test_a_scenario_that_cannot_settle_fails_with_its_reasons() -> None:
    scenario = a_scenario()
    scenario.nodes[0].count = 1
    reasons = play_seed(scenario, 1, ["stale"]).reasons
    assert reasons[0] == "it does not settle"
    assert any("Insufficient cpu" in reason for reason in reasons)
