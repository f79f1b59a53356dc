"""Something played with many seeds, on all cores. Shared by app/soak.py, app/endings.py and plans."""

from __future__ import annotations

import gc
import signal
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar

T = TypeVar("T")
AHEAD = 4  # seeds handed to each process beforehand


class ProcessExecutor:
    """The port Executor on processes of this machine: all its cores, or `jobs` of them."""

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs

    def run(self, work: Callable[[int], T], seeds: Iterable[int]) -> Iterator[T]:
        return play_seeds(work, seeds, self.jobs)


def play_seeds(play: Callable[[int], T], seeds: Iterable[int], jobs: int) -> Iterator[T]:
    """Give what `play` returns for each seed, in whatever order they are done. Raises what it raises.

    The processes are forks of this one: they share what `play` holds, however large, until one of them writes to it.
    """
    if jobs == 1:
        yield from map(play, seeds)
        return
    from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
    from multiprocessing import active_children, get_context

    waiting = iter(seeds)
    gc.freeze()  # a collection would write to all of it
    with ProcessPoolExecutor(jobs, get_context("fork"), initializer=_begin, initargs=(play,)) as pool:
        running: set[Future[T]] = {pool.submit(_play, seed) for seed in islice(waiting, jobs * AHEAD)}
        try:
            while running:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                running |= {pool.submit(_play, seed) for seed in islice(waiting, len(done))}
                yield from (future.result() for future in done)
        finally:
            try:
                pool.shutdown(wait=True, cancel_futures=True)
            except KeyboardInterrupt:  # again: what is under way ends, too, or the pool would wait for ever
                for process in active_children():
                    process.kill()
                raise


_PLAY: Callable[[int], Any] | None = None  # of a process of the pool: what it does with each seed


def _begin(play: Callable[[int], Any]) -> None:
    global _PLAY  # noqa: PLW0603
    _PLAY = play
    for number in (signal.SIGINT, signal.SIGTERM):  # they are for who started us; what is under way ends
        signal.signal(number, signal.SIG_IGN)


def _play(seed: int) -> Any:
    assert _PLAY is not None, "the pool begins with _begin"
    return _PLAY(seed)
