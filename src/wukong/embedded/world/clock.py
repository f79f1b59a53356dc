"""The virtual clock and virtual chance of the embedded cluster. Read by the world, the server and the actors.

Nothing here waits: who moves the clock is the world's loop. Chance is a hash of the seed and of what the number is for,
so it depends neither on the order of the questions nor on PYTHONHASHSEED.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

START = 1_767_225_600.0  # 2026-01-01T00:00:00Z


class VirtualClock:
    """Only goes forward. Whoever shows a world to people hears of each jump before it is made, by `jumping`."""

    def __init__(self, start: float = START) -> None:
        self._now = start
        self.jumping: Callable[[float], None] | None = None

    def now(self) -> float:
        return self._now

    def move_to(self, moment: float) -> None:
        if moment > self._now:
            if self.jumping is not None:
                self.jumping(moment)
            self._now = moment


class Chance:
    """Numbers by name: the same seed and name always give the same number."""

    def __init__(self, seed: int | str = 0, name: str = "") -> None:
        self.seed, self.name = seed, name

    def named(self, name: str) -> Chance:
        return Chance(f"{self.seed}/{self.name}" if self.name else self.seed, name)

    def share(self, *of: object) -> float:
        """Between 0 and 1, 1 excluded."""
        text = "/".join(map(str, (self.seed, self.name, *of)))
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big") / 2**48
