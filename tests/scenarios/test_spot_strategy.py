"""examples/sim/spot-strategy.yaml, phase by phase: the twin of tests/live/test_spot_strategy.py on virtual time."""

from __future__ import annotations

import pytest

from spot_strategy.judge import Judge, Layout
from spot_strategy.phases import play_phases, read_strategy

BEGIN = {"cache": (3, 0, 0), "payments": (0, 2, 0), "web": (0, 2, 0)}
GROWN = {"batch": (4, 0, 0), "cache": (3, 1, 0), "payments": (0, 2, 0), "web": (6, 4, 0)}
# By app: pods on spot nodes, on demand, and without a node.
LAYOUTS: list[Layout] = [
    {"batch": (4, 0, 0), **BEGIN},
    {"batch": (21, 3, 0), **BEGIN},  # spot nodes are full
    BEGIN,
    {"batch": (4, 0, 0), **BEGIN},
    {"batch": (4, 0, 0), **BEGIN},  # cordoned
    {"batch": (4, 0, 0), **BEGIN, "cache": (3, 1, 0)},
    {"batch": (4, 0, 0), **BEGIN, "cache": (3, 1, 0)},
    GROWN,  # from 2 to 10, while two nodes are reclaimed
    GROWN,
    GROWN,  # a third was reclaimed
    {"batch": (0, 2, 2), "cache": (0, 4, 0), "payments": (0, 2, 0), "web": (0, 10, 0)},  # all spot nodes are gone
    {"batch": (0, 0, 4), "cache": (0, 4, 0), "payments": (0, 4, 0), "web": (0, 10, 0)},  # payments needs the room
    {"batch": (4, 0, 0), "cache": (0, 4, 0), "payments": (0, 4, 0), "web": (6, 4, 0)},
]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_the_strategy_holds_at_every_step(seed: int) -> None:
    judge = Judge()
    assert play_phases(read_strategy(), judge, seed) == LAYOUTS
    assert judge.violations == []
    assert judge.sizes.keys() >= {2, 4, 6, 8, 10}


def test_without_admission_the_judge_objects() -> None:
    scenario = read_strategy()
    scenario.components = ["policy"]
    judge = Judge()
    play_phases(scenario, judge)
    assert any("is critical" in violation for violation in judge.violations)
    assert any("are on demand" in violation for violation in judge.violations)
