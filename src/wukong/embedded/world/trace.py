"""What happened, step by step: listeners get each step as it happens, and the latest steps are kept.

The world has one trace and its processes append to it. Whoever makes a digest or a file of it listens, because a story
of days has millions of steps. Without a bound a trace keeps all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from wukong.embedded.world.process import Step

Listener = Callable[[Step], None]


class Trace(list[Step]):
    """Only ever grows at its end. `total` counts all steps, also those that are no longer kept."""

    def __init__(self) -> None:
        super().__init__()
        self.min_kept: int | None = None  # steps to keep at least; None: all
        self.total = 0
        self._listeners: list[Listener] = []

    def fork(self) -> Trace:
        """A copy to which nobody listens yet."""
        copy = Trace()
        copy.extend(self)
        copy.min_kept, copy.total = self.min_kept, self.total
        return copy

    def append(self, step: Step) -> None:
        super().append(step)
        self.total += 1
        if self.min_kept is not None and len(self) > 2 * self.min_kept:
            del self[: -self.min_kept]
        for listener in self._listeners:
            listener(step)

    @contextmanager
    def notify(self, *listeners: Listener) -> Iterator[None]:
        """Call each listener with every step, for as long as the context lasts."""
        self._listeners += listeners
        try:
            yield
        finally:
            for listener in listeners:
                self._listeners.remove(listener)
