"""Keeps worker processes from writing to memory that they share with the process that they are forks of.

Called by many_seeds.py just before it forks. A fork shares all pages of memory until one side writes to one. Whatever a
worker creates goes into free blocks between the objects that are there: were they scattered over all pages, it would
soon have copied most of them. So they are filled before, and its own objects lie together on pages of their own.
"""

from __future__ import annotations

import gc
from collections.abc import Callable

# Of CPython's allocator for small objects: blocks are multiples of a step, and those of one size come in pools.
_STEP, _LARGEST, _POOL_BITS, _POOL_HEADER = 16, 512, 14, 48
_BYTES_HEADER = 33  # what a bytes object takes besides its bytes
_MOST_BYTES = 4 << 20  # in blocks of one size; another allocator than CPython's own has no pools to be filled


def prepare_fork() -> list[object]:
    """Fill the free blocks, and have the garbage collector leave all that is there alone: it writes to what it looks
    at. Returns what fills the blocks, to be kept for as long as pages are shared."""
    gc.collect()
    fillers = [filler for size in range(_STEP, _LARGEST + 1, _STEP) for filler in _fill_blocks(size)]
    gc.freeze()
    return fillers


def _fill_blocks(size: int) -> list[object]:
    """Take blocks of one size until they come from a pool that had been empty."""
    make, in_pool = _maker_of(size), ((1 << _POOL_BITS) - _POOL_HEADER) // size
    fillers: list[object] = []
    latest_pool, from_it = 0, 0
    while from_it < in_pool - 1 and len(fillers) * size < _MOST_BYTES:
        filler = make()
        pool = id(filler) >> _POOL_BITS
        latest_pool, from_it = pool, from_it + 1 if pool == latest_pool else 1
        fillers.append(filler)
    del fillers[len(fillers) - from_it :]
    return fillers


def _maker_of(size: int) -> Callable[[], object]:
    """What makes an object of this size that the garbage collector does not know."""
    if size == _STEP:
        return object
    if size == 2 * _STEP:
        return lambda: float("0.5")
    return lambda: bytes(size - _BYTES_HEADER)
