"""The latest changes of a process's mirror, by which it can be told how that was a moment ago. Kept by the process.

A decision is carried out some milliseconds after it was made, on a mirror that has changed meanwhile. Checkers who ask
what it was based on get a copy of the mirror with the changes since then undone.
"""

from __future__ import annotations

from collections import deque
from itertools import islice

from wukong.state import Change, State

MOST = 5_000  # kept: many times what happens while one decision is carried out


class RecentChanges:
    def __init__(self) -> None:
        self.count = 0  # of all changes so far
        self._changes: deque[Change] = deque(maxlen=MOST)

    def fork(self) -> RecentChanges:
        copy = RecentChanges()
        copy.count, copy._changes = self.count, self._changes.copy()
        return copy

    def add(self, change: Change) -> None:
        self.count += 1
        self._changes.append(change)

    def clear(self) -> None:
        """Nobody will ask for what happened so far."""
        self._changes.clear()

    def restore(self, state: State, count: int) -> State:
        """The state as it was after so many changes; itself if there have been none since."""
        since = min(self.count - count, len(self._changes))
        if not since:
            return state
        past = state.fork()
        for change in islice(reversed(self._changes), since):
            if change.old is not None:
                past.apply("MODIFIED", change.old, change.group_kind)
            elif change.new is not None:
                past.apply("DELETED", change.new, change.group_kind)
        return past
