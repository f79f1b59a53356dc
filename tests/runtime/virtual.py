"""Time that passes only when nobody has anything to do: the event loop jumps to the next timer instead of waiting."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
EPOCH = 1_767_225_600.0  # 2026-01-01


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.now = 0.0
        super().__init__(_Jumping(self))

    def time(self) -> float:
        return self.now


class _Jumping(selectors.SelectSelector):
    def __init__(self, owner: VirtualLoop) -> None:
        super().__init__()
        self.owner = owner

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        assert timeout is not None, "nothing will ever happen again: a deadlock"
        self.owner.now += max(0.0, timeout)
        return super().select(0)


class LoopClock:
    """The wall clock of a virtual loop; `offset` makes one that is wrong."""

    def __init__(self, offset: float = 0.0) -> None:
        self.offset = offset

    def now(self) -> float:
        return EPOCH + self.offset + asyncio.get_running_loop().time()


def play(story: Coroutine[Any, Any, T]) -> T:
    """Run to the end in virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(story)
