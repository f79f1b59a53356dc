"""Reclaimed nodes with faults of all types: seeds whose stories were once mistakes, of checkers or of the mover."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from wukong.cli.verbs.sim_run import command

SCENARIO = Path(__file__).parents[2] / "examples" / "sim" / "soak-spot.yaml"


@pytest.mark.slow
@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(18, id="a notice is withdrawn between a Move and its surge"),
        pytest.param(25, id="the same, and the mirror is behind"),
        pytest.param(37, id="an autoscaler that has not heard of its minReplicas scales up again"),
        pytest.param(223, id="the same, before the return is noted"),
        pytest.param(114, id="nothing leaves any more while an autoscaler gets its minReplicas back"),
        pytest.param(127, id="somebody asks for exactly the size of the surge"),
        pytest.param(134, id="a leader who has not heard that the Move is gone"),
    ],
)
def test_checkers_find_nothing_wrong(seed: int) -> None:
    words = [str(SCENARIO), "--faults", "all", "--seed", str(seed)]
    result = CliRunner().invoke(command, words, catch_exceptions=False)
    assert "Found to be wrong" not in result.output
    assert result.exit_code == 0, result.output
