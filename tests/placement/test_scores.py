"""From points to what kube-scheduler takes."""

from __future__ import annotations

import numpy as np
import pytest

from wukong.placement.judge import Term, to_scores


@pytest.mark.parametrize(
    ("points", "score"),
    [
        (0, 0),
        (4.9, 0),
        (5, 1),
        (35, 4),
        (100 * ((1 - 0.3) * 0.5 + 0.3), 7),  # 65, but for the last bit
        (64.9, 6),
        (100, 10),
    ],
)
def test_points_are_rounded_half_up_whatever_the_last_bit_says(points: float, score: int) -> None:
    assert to_scores([Term("cost-aware", 50, np.array([points]))], 1).tolist() == [score]
