"""A sample of the hours of sickness that `make sickness` plays by the hundred: nothing ends, nothing wrong is written.

`PYTHONPATH=src:tests python -m hostile.sickness --seeds 3` plays one seed again.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from conftest import FIGURE
from hostile.grammar import SEED
from hostile.sickness import ACTS, play_seed
from wukong.embedded.faults import TYPES

SEEDS = [1, 2, 3, SEED]


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_an_hour_of_sickness_ends_nothing_and_writes_nothing_wrong(
    seed: int, record_property: Callable[[str, object], None]
) -> None:
    result = play_seed(seed)
    assert (result.exits, result.wrong) == ([], [])
    assert len(result.faults) > len(TYPES) // 2
    assert result.accepted > ACTS // 10
    record_property(
        FIGURE,
        f"an hour of sickness, seed {seed}: {sum(result.faults.values())} faults of {len(result.faults)} types, "
        f"{result.accepted} hostile objects taken, {result.refused} refused",
    )


@pytest.mark.slow
def test_the_same_seed_is_the_same_hour() -> None:
    assert play_seed(2).digest == play_seed(2).digest
