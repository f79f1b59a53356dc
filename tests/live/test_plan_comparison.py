"""A sample of `make compare-plan`: what a plan says of a random change is what the change does."""

from __future__ import annotations

import pytest

from plan_comparison.changes import draw_change
from plan_comparison.comparison import compare_all
from testbed.pytest_plugin import Bed

SAMPLE = range(2001, 2017)


@pytest.mark.slow(waits=40)  # it waits longer, and begins when stories in real time are over
async def test_changes_do_what_their_plans_say(bed: Bed) -> None:
    changes = [draw_change(seed) for seed in SAMPLE]
    different = [
        (comparison.change.seed, comparison.change.text, comparison.real, set(comparison.planned))
        async for comparison in compare_all(bed.kubeconfig, changes, at_once=len(changes))
        if not comparison.is_equal
    ]
    assert different == []
