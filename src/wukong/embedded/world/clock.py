"""The virtual clock and virtual chance of the embedded cluster. Read by the world, the server and the actors.

Nothing here waits: the world's loop moves the clock. Chance is a hash of the seed and of what the number is for, so it
depends neither on the order of the calls nor on PYTHONHASHSEED.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

START = 1_767_225_600.0  # 2026-01-01T00:00:00Z


class VirtualClock:
    """Only goes forward. Whoever shows a world to people sets `on_jump`, which is called before each jump."""

    def __init__(self, start: float = START) -> None:
        self._now = start
        self.on_jump: Callable[[float], None] | None = None

    def now(self) -> float:
        return self._now

    def move_to(self, moment: float) -> None:
        if moment > self._now:
            if self.on_jump is not None:
                self.on_jump(moment)
            self._now = moment


class Chance:
    """Numbers by name: the same seed and name always give the same number."""

    def __init__(self, seed: int | str = 0, name: str = "") -> None:
        self.seed, self.name = seed, name
        self._prefix = f"{seed}/{name}"

    def derive(self, name: str) -> Chance:
        """A stream of numbers of its own."""
        return Chance(f"{self.seed}/{self.name}" if self.name else self.seed, name)

    def share(self, *purpose: object) -> float:
        """The number for this purpose, between 0 and 1, 1 excluded."""
        text = self._prefix
        for part in purpose:
            text += f"/{part!s}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big") / 2**48
