"""What happens at a given moment, besides what processes have due in their own queues. Owned by the world.

Watches use timers for events that arrive late, faults for what begins or ends later. Nothing here waits or reads a
clock: the world says what time it is.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush


class Timers:
    def __init__(self) -> None:
        self._entries: list[tuple[float, int, Callable[[], object]]] = []
        self._sequence = 0  # of two at the same moment, the one added first fires first

    def add(self, moment: float, act: Callable[[], object]) -> None:
        """Have `act` called once, when the clock has reached this moment."""
        self._sequence += 1
        heappush(self._entries, (moment, self._sequence, act))

    def next_due(self) -> float | None:
        return self._entries[0][0] if self._entries else None

    def fire_next(self, now: float) -> bool:
        """Call the first entry whose moment has come. Returns False if there is none."""
        if not self._entries or self._entries[0][0] > now:
            return False
        heappop(self._entries)[2]()
        return True
