"""Python's cyclic garbage collector looks rarely while a world runs. Used by the world.

A world makes millions of objects that stay, and hardly any cycles: what is no longer needed goes by its reference
count. With Python's own thresholds the collector walks over all that was made lately again and again, and takes a
sixth of the time.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

OBJECTS_BETWEEN = 50_000  # made and not yet gone, between two collections of the youngest


@contextmanager
def collect_rarely() -> Iterator[None]:
    """Collect at most once per OBJECTS_BETWEEN new objects while the context lasts; never more often than before."""
    youngest, middle, oldest = gc.get_threshold()
    if youngest:  # 0: somebody has switched it off
        gc.set_threshold(max(youngest, OBJECTS_BETWEEN), middle, oldest)
    try:
        yield
    finally:
        gc.set_threshold(youngest, middle, oldest)
