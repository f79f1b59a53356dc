"""The work queue: each item at most once, at its time, never while it is being worked on. Without I/O or a clock.

             add, add_after              due                  done
    (idle) ──────────────────► waiting ──────► in flight ──────────────► (idle)
                                  ▲                │ added meanwhile, or retry
                                  └────────────────┘

Used by `dispatch`. Of several times asked for one item the earliest holds: whoever works on it looks at all of it.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

import msgspec

Item = TypeVar("Item", bound=Hashable)
_LONGEST_WISH = 300.0  # seconds that a server may ask to be left alone
_MOST_OUTDATED = 1024  # entries of the heap that no longer count, before it is cleared of them


class Backoff(msgspec.Struct, frozen=True):
    """Seconds to wait after the n-th failure in a row: `first` doubling up to `cap`, less a share by chance."""

    first: float = 0.5
    cap: float = 300.0
    spread: float = 0.25

    def delay(self, failures: int, jitter: float) -> float:
        """`jitter` is a random number in [0, 1). Never longer than `cap`."""
        doubled = self.first * 2.0 ** min(failures - 1, 64)
        return min(self.cap, doubled) * (1.0 - self.spread * jitter)


class Queue(Generic[Item]):
    def __init__(self, backoff: Backoff | None = None) -> None:
        self.backoff = backoff or Backoff()
        self._waiting: dict[Item, float] = {}
        self._heap: list[tuple[float, int, Item]] = []  # may hold entries that no longer count
        self._in_flight: dict[Item, float | None] = {}  # item → when to take it again, if asked meanwhile
        self._failures: dict[Item, int] = {}
        self._sequence = 0  # of two due at the same time, the one asked for first

    def fork(self) -> Queue[Item]:
        copy: Queue[Item] = Queue(self.backoff)
        copy._waiting, copy._heap, copy._in_flight = dict(self._waiting), list(self._heap), dict(self._in_flight)
        copy._failures, copy._sequence = dict(self._failures), self._sequence
        return copy

    def __len__(self) -> int:
        """How many items wait, those in flight left out."""
        return len(self._waiting)

    @property
    def waiting(self) -> Mapping[Item, float]:
        """What waits, and until when."""
        return self._waiting

    @property
    def in_flight(self) -> int:
        return len(self._in_flight)

    def add(self, item: Item, at: float) -> None:
        """Ask for an item at this time."""
        if item in self._in_flight:
            before = self._in_flight[item]
            self._in_flight[item] = at if before is None else min(before, at)
            return
        waiting = self._waiting
        known = waiting.get(item)
        if known is None or at < known:
            waiting[item] = at
            self._sequence += 1
            heappush(self._heap, (at, self._sequence, item))
            if len(self._heap) > 2 * len(waiting) + _MOST_OUTDATED:
                self._heap = [entry for entry in self._heap if waiting.get(entry[2]) == entry[0]]
                heapify(self._heap)

    def add_after(self, item: Item, delay: float, now: float) -> None:
        self.add(item, now + delay)

    def add_in_flight(self, now: float) -> None:
        """Ask again for all that is being worked on."""
        for item in self._in_flight:
            self.add(item, now)

    def take_due(self, now: float, limit: int | None = None) -> list[Item]:
        """Take the items whose time has come, oldest first, at most `limit`. Each is in flight until `finish`."""
        taken: list[Item] = []
        while (at := self.next_due()) is not None and at <= now and (limit is None or len(taken) < limit):
            taken.append(self.take_first())
        return taken

    def take_first(self) -> Item:
        """Take the item whose time `next_due` has just told."""
        _, _, item = heappop(self._heap)
        del self._waiting[item]
        self._in_flight[item] = None
        self.next_due()  # lets go of what no longer counts: `may_have_due` would take it for due
        return item

    def restart(self, item: Item, now: float) -> None:
        """Work on an item that was taken begins only now: what was asked for until now is part of it."""
        again = self._in_flight[item]
        if again is not None and again <= now:
            self._in_flight[item] = None

    def may_have_due(self, now: float) -> bool:
        """Whether an item's time has come; also where it was asked for and is not waiting any longer."""
        return bool(self._heap) and self._heap[0][0] <= now

    def next_due(self) -> float | None:
        heap, waiting = self._heap, self._waiting
        while heap:
            at, _, item = heap[0]
            if waiting.get(item) == at:
                return at
            heappop(heap)
        return None

    def finish(self, item: Item) -> None:
        """Work on it has ended. If it was asked for meanwhile, it waits again."""
        again = self._in_flight.pop(item)
        if again is not None:
            self.add(item, again)

    def retry(
        self, item: Item, now: float, jitter: float, at_least: float = 0.0, backoff: Backoff | None = None
    ) -> float:
        """It failed: ask for it again after a backoff, or after what the server said; gives the seconds.

        `backoff` is that of the item's controller, if it has one of its own. A server, or a proxy before it, may say
        anything: it is believed up to five minutes.
        """
        self._failures[item] = self._failures.get(item, 0) + 1
        delay = max((backoff or self.backoff).delay(self._failures[item], jitter), min(at_least, _LONGEST_WISH))
        self.add(item, now + delay)
        return delay

    def forget(self, item: Item) -> None:
        """It succeeded: the next failure is the first again."""
        self._failures.pop(item, None)
