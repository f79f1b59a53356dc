"""A sample of `make compare-autoscaler`: what an autoscaler decides, and what it says of it, on both sides."""

from __future__ import annotations

import pytest

from autoscaler_comparison.random_case import draw_case
from autoscaler_comparison.sides import compare
from testbed.pytest_plugin import Bed

SAMPLE = range(1001, 1013)


@pytest.mark.slow(waits=10)
async def test_autoscalers_decide_and_say_the_same_as_the_real_ones(bed: Bed) -> None:
    async with bed.client() as client:
        differences = await compare(client, [draw_case(seed) for seed in SAMPLE], at_once=len(SAMPLE))
    assert {seed: texts for seed, texts in differences.items() if texts} == {}
