"""The workers of a process: which controllers are busy, and what each of them writes next, and when.

    item due ─► a worker is free ─► decision ─► its writes, one batch after the other ─► the worker is free again
             └► all are busy ─► waits for one

Asked by process.py, which decides and writes. Times are the world's, also where the clock of the process is ahead. All
of it is plain data: `fork` copies it at any moment, with the numbers drawn so far (timing.py) and what has changed
since the decisions under way (recent_changes.py). It is lost with its process.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush
from typing import NamedTuple

from wukong.actions import Action, Create, Delete, Evict, Note
from wukong.api.kinds import PODS
from wukong.embedded.world.recent_changes import RecentChanges
from wukong.embedded.world.timing import Timing
from wukong.runtime.dispatch import Item
from wukong.runtime.work_cycle import Work
from wukong.state import Change


class Decision(NamedTuple):
    """What a worker carries out, and when it was decided, by the clock of its process: at what time, in which of its
    turns, and after how many changes of its mirror."""

    work: Work
    at: float
    turn: int = 0
    change_count: int = 0

    def copy(self) -> Decision:
        return self._replace(work=self.work.copy())


class Freed(NamedTuple):
    """A worker of this controller is free again."""

    controller: str


Due = Decision | Item | Freed  # to go on with, to begin with a worker that is kept free for it, or to note


class Workers:
    def __init__(self, timing: Timing) -> None:
        self.timing, self.recent_changes = timing, RecentChanges()
        self._busy: dict[str, int] = {}  # controller → how many of its workers are busy
        self._waiting: dict[str, deque[Item]] = {}  # controller → items that wait for one of its workers
        self._under_way: dict[str, dict[Item, Decision]] = {}  # controller → what its workers carry out
        self._heap: list[tuple[float, int, Due]] = []
        self._sequence = 0  # of two at the same moment, the one that was added first

    def fork(self, seed: int | None = None) -> Workers:
        """An independent copy; with a `seed` other times are drawn from now on."""
        copy = Workers(self.timing.fork(seed))
        copy.recent_changes = self.recent_changes.fork()
        copy._busy, copy._sequence = dict(self._busy), self._sequence
        copy._waiting = {controller: deque(items) for controller, items in self._waiting.items()}
        copies: dict[int, Due] = {id(due): due.copy() for _, _, due in self._heap if isinstance(due, Decision)}
        copy._heap = [(at, number, copies.get(id(due), due)) for at, number, due in self._heap]
        for decisions in self._under_way.values():  # in the order in which they were taken, not in that of the heap
            for decision in decisions.values():
                copied = copies[id(decision)]
                assert isinstance(copied, Decision)
                copy._add_under_way(copied)
        return copy

    def observe(self, changes: Iterable[Change]) -> None:
        """Remember changes of the mirror for as long as decisions made before are under way."""
        if not self.is_idle:
            for change in changes:
                self.recent_changes.add(change)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is under way."""
        return not self._heap and not self._under_way

    def next_due(self) -> float | None:
        return self._heap[0][0] if self._heap else None

    def has_due(self, now: float) -> bool:
        return bool(self._heap) and self._heap[0][0] <= now

    def list_due(self) -> Iterator[tuple[Item, float]]:
        """The items that workers are busy with, and when they go on. Those that wait for a worker follow them."""
        for at, _, due in self._heap:
            if not isinstance(due, Freed):
                yield due.work.item if isinstance(due, Decision) else due, at

    def list_under_way(self, controller: str) -> Iterator[Decision]:
        """The decisions that this controller has taken and not carried out yet, or only in part."""
        yield from self._under_way.get(controller, {}).values()

    def pop_due(self, now: float) -> Due | None:
        """Take what is due first, if its moment has come."""
        return heappop(self._heap)[2] if self._heap and self._heap[0][0] <= now else None

    def forget_changes(self) -> None:
        """Forget the changes so far once nothing is under way: nobody will ask for them."""
        if self.is_idle:
            self.recent_changes.clear()

    def occupy(self, item: Item) -> bool:
        """Find a worker for an item. Returns False if all are busy: then the item waits and comes by `pop_due`."""
        controller = item.controller
        busy = self._busy.get(controller, 0)
        if busy >= self.timing.latency_of(controller).workers:
            self._waiting.setdefault(controller, deque()).append(item)
            return False
        self._busy[controller] = busy + 1
        return True

    def begin(self, decision: Decision, now: float) -> None:
        """Schedule the first writes of a decision."""
        self._add_under_way(decision)
        controller = decision.work.item.controller
        latency = self.timing.latency_of(controller)
        decided_at = round(now + latency.deciding / 1000.0, 3)
        if latency.writes_aside:
            self._push(decided_at, Freed(controller))
        self._push(self.timing.writing_time(controller, decided_at), decision)

    def proceed(self, decision: Decision, now: float) -> None:
        """Schedule the next writes of a decision."""
        self._push(self.timing.writing_time(decision.work.item.controller, now), decision)

    def end(self, decision: Decision, now: float) -> None:
        """A decision that had writes is carried out, or has failed."""
        controller = decision.work.item.controller
        decisions = self._under_way[controller]
        del decisions[decision.work.item]
        if not decisions:
            del self._under_way[controller]
        if not self.timing.latency_of(controller).writes_aside:
            self.release(controller, now)

    def release(self, controller: str, now: float) -> None:
        """A worker is free: the item that has waited longest gets it."""
        if waiting := self._waiting.get(controller):
            self._push(now, waiting.popleft())
        else:
            self._busy[controller] -= 1

    def _add_under_way(self, decision: Decision) -> None:
        item = decision.work.item
        self._under_way.setdefault(item.controller, {})[item] = decision

    def _push(self, at: float, due: Due) -> None:
        self._sequence += 1
        heappush(self._heap, (at, self._sequence, due))


def count_together(actions: Sequence[Action], position: int) -> int:
    """How many of the actions from here on are performed in the same moment.

    Kubernetes' controllers create pods in batches that double (slow start), and delete them side by side. Other writes
    follow each other. Events are written by somebody else, whom nobody waits for.
    """
    run, left = "", 0
    for index in range(position, len(actions)):
        if isinstance(actions[index], Note):
            continue
        kind = _run_of(actions[index])
        if not run:
            run, left = kind, _batch_size(kind, actions, position)
        if kind != run or left == 0:
            return index - position
        left -= 1
    return len(actions) - position


def _run_of(action: Action) -> str:
    """What kind of run an action may be part of."""
    if isinstance(action, Create) and action.resource == PODS:
        return "creations"
    is_removal = isinstance(action, Evict) or (isinstance(action, Delete) and action.resource == PODS)
    return "removals" if is_removal else "one"


def _batch_size(run: str, actions: Sequence[Action], position: int) -> int:
    if run == "creations":  # 1, 2, 4, 8 …: one more than there were before
        return 1 + sum(_run_of(action) == run for action in actions[:position])
    return len(actions) if run == "removals" else 1
