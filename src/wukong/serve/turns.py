"""Long work that lets everybody else on the event loop have a turn. Used by the servers of extender and webhooks."""

from __future__ import annotations

import asyncio
import time
from typing import TypeVar

from wukong.placement.slices import Slices

_TURN_SECONDS = 0.01
T = TypeVar("T")


class Unfinished:
    """There is more to do, after others had a turn."""


UNFINISHED = Unfinished()


async def take_turns(slices: Slices[T]) -> T:
    """Work to the end, and let others have a turn after every slice that went on for too long."""
    while isinstance(result := work_for_a_turn(slices), Unfinished):
        await asyncio.sleep(0)
    return result


def work_for_a_turn(slices: Slices[T]) -> T | Unfinished:
    """Work until it is others' turn; gives the result if there is one by then."""
    began = time.perf_counter()
    while True:
        try:
            next(slices)
        except StopIteration as end:
            result: T = end.value
            return result
        if time.perf_counter() - began > _TURN_SECONDS:
            return UNFINISHED
