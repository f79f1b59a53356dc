"""The scheduler's queue: pods that want a node, in kube-scheduler's order. Without a clock: `now` is an argument.

                 pop                     park (no node fits)                an event that may help, or 5 minutes
    (new) ─► active ───► being decided ──────────────────────► parked ──────────────────────┐
               ▲                 │ trouble                                                   ▼
               └─────────────────┴──────────────────────────────────────────────────── backing off
                  its backoff is over, or nothing is active and no trouble was the reason

Active pods go by priority, then by when they came: a new one by its creation, one that failed by its failure. So a
queue made anew from the same state gives the same order, save that it knows of no backoff. As in kube-scheduler 1.35
(SchedulerPopFromBackoffQ) an idle scheduler does not wait for a backoff to end, unless an error was its reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from heapq import heappop, heappush
from typing import NamedTuple

import msgspec

from wukong.api.core import Pod
from wukong.api.resources import Key

FIRST_BACKOFF, LONGEST_BACKOFF = 1.0, 10.0  # podInitialBackoffSeconds, podMaxBackoffSeconds
LONGEST_PARKED = 300.0  # podMaxInUnschedulablePodsDuration


class Entry(msgspec.Struct):
    """One pod that wants a node."""

    key: Key
    uid: str
    priority: int
    came: float
    failures: int = 0
    ready_at: float = float("-inf")  # when its backoff is over
    parked_until: float | None = None  # None: not parked
    is_troubled: bool = False  # an error is why it backs off
    plugins: frozenset[str] = frozenset()  # who refused it last
    nominated: str = ""
    is_out: bool = False  # being decided, or its binding under way
    occasion: Key | None = None  # the key on which it was decided last
    turn: int = 0  # the place in a heap that counts: the last it got

    @property
    def rank(self) -> tuple[float, float, Key]:
        return -self.priority, self.came, self.key


class Turn(NamedTuple):
    """A place in a heap, by time or by rank."""

    at: float
    then: float
    key: Key
    number: int
    entry: Entry

    @property
    def is_current(self) -> bool:
        return not self.entry.is_out and self.number == self.entry.turn


class Queue:
    def __init__(self) -> None:
        self.entries: dict[Key, Entry] = {}
        self.parked: dict[Key, Entry] = {}
        self.nominated: dict[Key, str] = {}
        self._active: list[Turn] = []  # heaps; turns that are not current are skipped
        self._backing_off: list[Turn] = []
        self._parked: list[Turn] = []
        self._turns = 0

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries.values())

    # ---- in and out

    def add(self, pod: Pod) -> Entry:
        """A pod that came, or came anew under an old name."""
        key = Key(pod.metadata.namespace, pod.metadata.name)
        held = self.entries.get(key)
        if held is not None and held.uid == pod.metadata.uid:
            return held
        self.remove(key)
        entry = Entry(key, pod.metadata.uid, pod.spec.priority or 0, seconds_of(pod.metadata.creation_timestamp))
        self.entries[key] = entry
        self.nominate(entry, pod.status.nominated_node_name)
        self._push(self._active, entry, entry.rank)
        return entry

    def remove(self, key: Key) -> None:
        self.nominated.pop(key, None)
        self.parked.pop(key, None)
        gone = self.entries.pop(key, None)
        if gone is not None:
            gone.is_out = True  # what the heaps still hold of it no longer counts

    def nominate(self, entry: Entry, node: str) -> None:
        entry.nominated = node
        if node:
            self.nominated[entry.key] = node
        else:
            self.nominated.pop(entry.key, None)

    def pop(self, now: float) -> Entry | None:
        """The pod whose turn it is."""
        entry = self._next(now)
        if entry is not None:
            entry.is_out = True
        return entry

    def next_due(self, now: float) -> float | None:
        """When a pod will have its turn: `now` if one has it already; None if only an event can help."""
        if self._next(now) is not None:
            return now
        times = [heap[0].at for heap in (self._backing_off, self._parked) if heap]
        return min(times, default=None)

    # ---- what became of it

    def park(self, entry: Entry, plugins: frozenset[str], now: float) -> None:
        """No node suits it: it waits for an event that may help."""
        self._back_off(entry, now)
        entry.plugins, entry.parked_until = plugins, now + LONGEST_PARKED
        self.parked[entry.key] = entry
        self._push(self._parked, entry, (entry.parked_until, 0.0, entry.key))

    def trouble(self, entry: Entry, now: float) -> None:
        """It could not be decided, or its decision not carried out: again after a backoff."""
        self._back_off(entry, now)
        entry.is_troubled = True
        self._push(self._backing_off, entry, (entry.ready_at, 0.0, entry.key))

    def wake(self, entry: Entry) -> None:
        """Something happened that may help it."""
        if entry.parked_until is not None:
            entry.parked_until = None
            self.parked.pop(entry.key, None)
            self._push(self._backing_off, entry, (entry.ready_at, 0.0, entry.key))

    def _back_off(self, entry: Entry, now: float) -> None:
        entry.failures += 1
        entry.came = now
        entry.ready_at = now + min(LONGEST_BACKOFF, FIRST_BACKOFF * 2.0 ** min(entry.failures - 1, 8))
        entry.is_out, entry.is_troubled, entry.parked_until = False, False, None
        self.parked.pop(entry.key, None)

    def _next(self, now: float) -> Entry | None:
        """The first of the active pods; if there is none, the first that backs off without trouble."""
        self._advance(now)
        while self._active and not self._active[0].is_current:
            heappop(self._active)
        if self._active:
            return self._active[0].entry
        calm = (turn for turn in self._backing_off if turn.is_current and not turn.entry.is_troubled)
        found = min(calm, default=None)
        return None if found is None else found.entry

    def _advance(self, now: float) -> None:
        """Bring on those parked for too long, then those whose backoff is over."""
        for heap in (self._parked, self._backing_off):
            while heap and (heap[0].at <= now or not heap[0].is_current):
                turn = heappop(heap)
                if not turn.is_current:
                    continue
                if turn.entry.parked_until is not None:
                    self.wake(turn.entry)
                else:
                    self._push(self._active, turn.entry, turn.entry.rank)

    def _push(self, heap: list[Turn], entry: Entry, rank: tuple[float, float, Key]) -> None:
        self._turns += 1  # never the same twice, so that no two entries are ever compared
        entry.turn = self._turns
        heappush(heap, Turn(*rank, entry.turn, entry))


def seconds_of(timestamp: str | None) -> float:
    """Seconds since 1970; 0 if the object does not say."""
    if not timestamp:
        return 0.0
    at = datetime.fromisoformat(timestamp)
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
