"""Cases on both sides, and what differs. Used by `make compare-quota` and by its sample in tests/live."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import msgspec

from quota_comparison import embedded_side
from quota_comparison.answers import Answers
from quota_comparison.random_case import Case, draw_case
from quota_comparison.real_side import RealSide
from testbed.client import Client

AT_ONCE = 6


class Comparison(msgspec.Struct, frozen=True):
    case: Case
    answers: Answers
    differences: list[str]


async def compare(client: Client, seeds: Iterable[int]) -> list[Comparison]:
    """All of these seeds, some at a time."""
    cases = [draw_case(seed) for seed in seeds]
    played = [(case, play_embedded(case)) for case in cases]  # nothing is sent while that takes its time
    side, slots = RealSide(client), asyncio.Semaphore(AT_ONCE)
    await side.prepare(cases)

    async def compare_one(case: Case, expected: list[Answers]) -> Comparison:
        async with slots:
            real = await side.play(case, expected)
        return Comparison(case, expected[0], find_differences(expected, real))

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(compare_one(case, expected)) for case, expected in played]
    return [task.result() for task in tasks]


def play_embedded(case: Case) -> list[Answers]:
    """Once for each order in which its quotas may be asked."""
    orders = (False, True) if len(case.quotas) > 1 else (False,)
    return [embedded_side.play(case, is_reversed=order) for order in orders]


def find_differences(expected: list[Answers], real: Answers) -> list[str]:
    """What the real server does that the embedded one does in no order of its quotas."""
    differences = [answers.find_differences(real) for answers in expected]
    return [text for text in differences[0] if all(_place_of(text) in map(_place_of, other) for other in differences)]


def _place_of(difference: str) -> str:
    return difference.partition(":")[0]
