"""What happened, step by step: told to whoever listens as it happens, and kept as far back as anybody wants.

The world has one and its processes add to it. Who makes a digest or a file of it listens, for a story of days has
millions of steps; without a bound a trace keeps all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from wukong.embedded.world.process import Step


class Trace(list[Step]):
    """Only ever grows at its end. `total` counts all steps, those that are no longer kept, too."""

    def __init__(self) -> None:
        super().__init__()
        self.most: int | None = None  # steps to keep at least; None: all
        self.total = 0
        self._listeners: list[Callable[[Step], None]] = []

    def append(self, step: Step) -> None:
        super().append(step)
        self.total += 1
        if self.most is not None and len(self) > 2 * self.most:
            del self[: -self.most]
        for hear in self._listeners:
            hear(step)

    @contextmanager
    def heard_by(self, *hear: Callable[[Step], None]) -> Iterator[None]:
        """While this lasts, each is called with every step."""
        self._listeners += hear
        try:
            yield
        finally:
            for each in hear:
                self._listeners.remove(each)
