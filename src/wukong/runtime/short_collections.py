"""Keeps the garbage collector's pauses short in a process that holds a large cluster.

A full collection looks at every object there is: half a second for a mirror of some hundred megabytes, during which
nothing else runs. What outlived one is therefore frozen: collections to come pass it over, and last as long as what is
new takes. Objects of the mirror refer to nothing in circles, so they are freed without a collector. What does, and dies
after it was frozen, stays: when twice as much is frozen as usual, everything is looked at again.

Used by app.live for `wukong run`.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

_OLDEST = 2  # the generation of a full collection
_FULL_EVERY = 2  # collections of the generation before: often, as each only takes what is new
_COUNTED_EVERY = 1000  # full collections, or some ten million objects that lived for a while: counting takes time, too
_FEWEST = 200_000  # objects of which a full collection takes no time worth mentioning


class _Freezer:
    def __init__(self) -> None:
        self.full_collections = 0
        self.usual_count = 0  # frozen when that was first counted: a process has its whole mirror by then

    def observe(self, phase: str, info: Mapping[str, Any]) -> None:
        if phase != "stop" or info["generation"] != _OLDEST:
            return
        self.full_collections += 1
        gc.freeze()
        if self.full_collections % _COUNTED_EVERY == 0:
            self._count()

    def _count(self) -> None:
        frozen = gc.get_freeze_count()
        if self.usual_count == 0:
            self.usual_count = frozen
        elif frozen > 2 * max(self.usual_count, _FEWEST):
            gc.unfreeze()  # the next full collection looks at everything
            self.usual_count = 0


@contextmanager
def keep_collections_short() -> Iterator[None]:
    """While it lasts, what outlives a full collection is not looked at again."""
    freezer, thresholds = _Freezer(), gc.get_threshold()
    youngest, middle, _ = thresholds
    gc.callbacks.append(freezer.observe)
    gc.set_threshold(youngest, middle, _FULL_EVERY)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        gc.callbacks.remove(freezer.observe)
        gc.unfreeze()
