"""Something played with many seeds, on all cores. Shared by app/soak.py, app/endings.py and plans."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from wukong.app.shared_pages import prepare_fork

if TYPE_CHECKING:
    from concurrent.futures import Future

T = TypeVar("T")
AHEAD = 4  # seeds handed to each other process beforehand


class ProcessExecutor:
    """The port Executor on processes of this machine: all its cores, or `jobs` of them."""

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs

    def run(self, work: Callable[[int], T], seeds: Iterable[int]) -> Iterator[T]:
        return play_seeds(work, seeds, self.jobs)


def play_seeds(play: Callable[[int], T], seeds: Iterable[int], jobs: int) -> Iterator[T]:
    """Give what `play` returns for each seed, in whatever order they are done. Raises what it raises.

    This process plays seeds, too. The others are forks of it: they share what `play` holds, however large, until one of
    them writes to it, and each that only waits would hold it as it was, besides what they have written to.
    """
    if jobs == 1:
        yield from map(play, seeds)
        return
    from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
    from multiprocessing import active_children, get_context

    waiting, fillers = iter(seeds), prepare_fork()
    with ProcessPoolExecutor(jobs - 1, get_context("fork"), initializer=_begin, initargs=(play,)) as pool:
        handed_out = {pool.submit(_play, seed): seed for seed in islice(waiting, (jobs - 1) * AHEAD)}
        try:
            while handed_out:
                own_seed = next(waiting, None)
                if own_seed is None:
                    own_seed = _take_back(handed_out)
                if own_seed is not None:
                    yield play(own_seed)
                done, _ = wait(handed_out, 0 if own_seed is not None else None, FIRST_COMPLETED)
                for future in done:
                    del handed_out[future]
                handed_out |= {pool.submit(_play, seed): seed for seed in islice(waiting, len(done))}
                yield from (future.result() for future in done)
        finally:
            try:
                pool.shutdown(wait=True, cancel_futures=True)
            except KeyboardInterrupt:  # again: what is under way ends, too, or the pool would wait for ever
                for process in active_children():
                    process.kill()
                raise
            del fillers  # until here: this process creates things, too, and shares its pages with the others


def _take_back(handed_out: dict[Future[T], int]) -> int | None:
    """A seed that no process has begun with, so that none waits while another has several left."""
    for future in reversed(handed_out):
        if future.cancel():
            return handed_out.pop(future)
    return None


_PLAY: Callable[[int], Any] | None = None  # of a process of the pool: what it does with each seed


def _begin(play: Callable[[int], Any]) -> None:
    global _PLAY  # noqa: PLW0603
    _PLAY = play
    for number in (signal.SIGINT, signal.SIGTERM):  # they are for who started us; what is under way ends
        signal.signal(number, signal.SIG_IGN)


def _play(seed: int) -> Any:
    assert _PLAY is not None, "the pool begins with _begin"
    return _PLAY(seed)
