"""Events on their way: they wait here, so that nothing that matters waits for them.

Kept by `loop`. A few writers send them to the API server, in the order in which they came. When too many wait, the
oldest is dropped and counted: what happens next matters more than what happened.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress

from wukong.actions import Note

WRITERS = 4
MOST_WAITING = 4096


class EventQueue:
    def __init__(self, write: Callable[[Note], Awaitable[None]], drop: Callable[[Note], None]) -> None:
        """`write` raises nothing. `drop` hears of each that is given up."""
        self._write, self._drop = write, drop
        self._waiting: deque[Note] = deque()
        self._has_notes, self._is_idle = asyncio.Event(), asyncio.Event()
        self._is_idle.set()
        self._under_way = 0

    def __len__(self) -> int:
        """How many wait, those being written left out."""
        return len(self._waiting)

    def put(self, note: Note) -> None:
        if len(self._waiting) == MOST_WAITING:
            self._drop(self._waiting.popleft())
        self._waiting.append(note)
        self._has_notes.set()
        self._is_idle.clear()

    async def run(self) -> None:
        """For ever."""
        async with asyncio.TaskGroup() as group:
            for _ in range(WRITERS):
                group.create_task(self._keep_writing())

    async def drain(self, seconds: float) -> None:
        """Wait until all are written, or the time is up."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._is_idle.wait()

    async def _keep_writing(self) -> None:
        while True:
            await self._has_notes.wait()
            while self._waiting:
                self._under_way += 1
                try:
                    await self._write(self._waiting.popleft())
                finally:
                    self._under_way -= 1
            self._has_notes.clear()
            if not self._under_way:
                self._is_idle.set()
