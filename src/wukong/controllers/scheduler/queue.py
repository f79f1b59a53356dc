"""The scheduler's queue: pods that want a node, in kube-scheduler's order. It reads no clock: `now` is an argument.

                 pop                     park (no node fits)                an event that may help, or 5 minutes
    (new) ─► active ───► being decided ──────────────────────► parked ──────────────────────┐
               ▲                 │ an error                                                  ▼
               └─────────────────┴──────────────────────────────────────────────────── backing off
                  its backoff is over, or nothing is active and no error was the reason

Active pods are ordered by priority, then by time: of creation for a new pod, of the failure for one that failed; pods
of the same second in the order in which they came, as in kube-scheduler. A queue filled again from the same state has
the same order but for that, and for backoffs. As in kube-scheduler 1.35 (SchedulerPopFromBackoffQ) an idle scheduler
does not wait for a backoff to end, unless an error was its reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from typing import NamedTuple

import msgspec

from wukong.api.core import Pod
from wukong.api.resources import Key
from wukong.api.times import parse_time

FIRST_BACKOFF, LONGEST_BACKOFF = 1.0, 10.0  # podInitialBackoffSeconds, podMaxBackoffSeconds
LONGEST_PARKED = 300.0  # podMaxInUnschedulablePodsDuration


class Entry(msgspec.Struct):
    """One pod that wants a node."""

    key: Key
    uid: str
    priority: int
    queued_at: float
    failures: int = 0
    ready_at: float = float("-inf")  # when its backoff is over
    parked_until: float | None = None  # None: not parked
    had_error: bool = False  # an error is why it backs off
    plugins: frozenset[str] = frozenset()  # that refused it last
    nominated: str = ""
    is_popped: bool = False  # being decided, or its binding under way
    decided_on: Key | None = None  # the key of the reconcile in which it was decided last
    heap_number: int = 0  # of the one heap item that is current: the last pushed
    arrival: int = 0  # which pod it is, counted from the first that came
    created_at: float = 0.0

    @property
    def rank(self) -> tuple[float, float, int]:
        return -self.priority, self.queued_at, self.arrival


class HeapItem(NamedTuple):
    """An entry in a heap, ordered by time or by rank."""

    at: float
    tie_breaker: float
    arrival: int
    number: int
    entry: Entry

    @property
    def is_current(self) -> bool:
        return not self.entry.is_popped and self.number == self.entry.heap_number


class Queue:
    """Pods in the states of the drawing above. Every method takes the time."""

    def __init__(self) -> None:
        self.entries: dict[Key, Entry] = {}
        self.parked: dict[Key, Entry] = {}
        self.nominated: dict[Key, str] = {}
        self._active: list[HeapItem] = []  # heaps; items that are not current are skipped
        self._backing_off: list[HeapItem] = []
        self._parked: list[HeapItem] = []
        self._last_number = self._arrivals = 0

    def fork(self) -> tuple[Queue, Callable[[Entry], Entry]]:
        """An independent copy, and what gives the copy of each of its entries."""
        copies: dict[int, Entry] = {}

        def copy_of(entry: Entry) -> Entry:
            if id(entry) not in copies:
                copies[id(entry)] = msgspec.structs.replace(entry)
            return copies[id(entry)]

        def copy_heap(heap: list[HeapItem]) -> list[HeapItem]:
            return [item._replace(entry=copy_of(item.entry)) for item in heap]

        copy = Queue()
        copy.entries = {key: copy_of(entry) for key, entry in self.entries.items()}
        copy.parked = {key: copy_of(entry) for key, entry in self.parked.items()}
        copy.nominated = dict(self.nominated)
        copy._last_number, copy._arrivals = self._last_number, self._arrivals
        copy._active, copy._backing_off = copy_heap(self._active), copy_heap(self._backing_off)
        copy._parked = copy_heap(self._parked)
        return copy, copy_of

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries.values())

    def count_pending(self) -> dict[str, int]:
        """Return how many pods wait, by where they do. Those being decided or bound do not."""
        waiting = [entry for entry in self if not entry.is_popped]
        parked = sum(entry.parked_until is not None for entry in waiting)
        numbers = {item.number for item in self._backing_off if item.is_current}
        return {"active": len(waiting) - parked - len(numbers), "backoff": len(numbers), "unschedulable": parked}

    # ---- in and out

    def add(self, pod: Pod) -> Entry:
        """Add a new pod, or one made again under an old name. Return its entry."""
        key = Key(pod.metadata.namespace, pod.metadata.name)
        known_entry = self.entries.get(key)
        if known_entry is not None and known_entry.uid == pod.metadata.uid:
            return known_entry
        self.remove(key)
        created_at = parse_time(pod.metadata.creation_timestamp) or 0.0
        self._arrivals += 1
        entry = Entry(
            key,
            pod.metadata.uid,
            pod.spec.priority or 0,
            created_at,
            arrival=self._arrivals,
            created_at=created_at,
        )
        self.entries[key] = entry
        self.nominate(entry, pod.status.nominated_node_name)
        self._push(self._active, entry, entry.rank)
        return entry

    def remove(self, key: Key) -> None:
        self.nominated.pop(key, None)
        self.parked.pop(key, None)
        entry = self.entries.pop(key, None)
        if entry is not None:
            entry.is_popped = True  # its items in the heaps are no longer current

    def nominate(self, entry: Entry, node: str) -> None:
        entry.nominated = node
        if node:
            self.nominated[entry.key] = node
        else:
            self.nominated.pop(entry.key, None)

    def pop(self, now: float) -> Entry | None:
        """Take the next pod to decide."""
        entry = self._find_next(now)
        if entry is not None:
            entry.is_popped = True
        return entry

    def next_due(self, now: float) -> float | None:
        """Return when the next pod is due: `now` if one is already; None if only an event can help."""
        if self._find_next(now) is not None:
            return now
        times = [heap[0].at for heap in (self._backing_off, self._parked) if heap]
        return min(times, default=None)

    # ---- after a decision

    def park(self, entry: Entry, plugins: frozenset[str], now: float) -> None:
        """Let a pod that no node suits wait for an event that may help."""
        self._back_off(entry, now)
        entry.plugins, entry.parked_until = plugins, now + LONGEST_PARKED
        self.parked[entry.key] = entry
        self._push(self._parked, entry, (entry.parked_until, 0.0, entry.arrival))

    def back_off_after_error(self, entry: Entry, now: float) -> None:
        """Try a pod again after a backoff: it could not be decided, or its decision failed."""
        self._back_off(entry, now)
        entry.had_error = True
        self._push(self._backing_off, entry, (entry.ready_at, 0.0, entry.arrival))

    def wake(self, entry: Entry) -> None:
        """Take a parked pod back, after an event that may help it."""
        if entry.parked_until is not None:
            entry.parked_until = None
            self.parked.pop(entry.key, None)
            self._push(self._backing_off, entry, (entry.ready_at, 0.0, entry.arrival))

    def _back_off(self, entry: Entry, now: float) -> None:
        entry.failures += 1
        entry.queued_at = now
        entry.ready_at = now + min(LONGEST_BACKOFF, FIRST_BACKOFF * 2.0 ** min(entry.failures - 1, 8))
        entry.is_popped, entry.had_error, entry.parked_until = False, False, None
        self.parked.pop(entry.key, None)

    def _find_next(self, now: float) -> Entry | None:
        """Return the first of the active pods; if there is none, the first that backs off without an error."""
        self._advance(now)
        while self._active and not self._active[0].is_current:
            heappop(self._active)
        if self._active:
            return self._active[0].entry
        without_error = (item for item in self._backing_off if item.is_current and not item.entry.had_error)
        first = min(without_error, default=None)
        return None if first is None else first.entry

    def _advance(self, now: float) -> None:
        """Activate pods parked for too long, then pods whose backoff is over."""
        for heap in (self._parked, self._backing_off):
            while heap and (heap[0].at <= now or not heap[0].is_current):
                item = heappop(heap)
                if not item.is_current:
                    continue
                if item.entry.parked_until is not None:
                    self.wake(item.entry)
                else:
                    self._push(self._active, item.entry, item.entry.rank)

    def _push(self, heap: list[HeapItem], entry: Entry, rank: tuple[float, float, int]) -> None:
        self._last_number += 1  # never the same twice, so that no two entries are ever compared
        entry.heap_number = self._last_number
        heappush(heap, HeapItem(*rank, entry.heap_number, entry))
