"""Whether a run makes progress: controllers that undo each other's work would keep it at one moment for ever.

Used by the world, which reports every decision to it. A large cluster may take millions of decisions in one instant,
but few about each key: every round of the queue decides a key once, and the work of an instant is over after a few
rounds. Where controllers take milliseconds the clock moves on while they quarrel: there it is the decisions of some
minutes that are too many.
"""

from __future__ import annotations

from collections import Counter as Tally

from wukong.errors import NoProgress
from wukong.runtime.dispatch import Item

MAX_DECISIONS = 5_000  # about one key in one instant
WINDOW_SECONDS, MAX_IN_WINDOW = 600.0, 20_000  # about one key, where controllers take time: a decision per 30 ms
MAX_SECONDS = 366 * 86_400.0  # of virtual time, for a run without a deadline


class ProgressGuard:
    def __init__(self, now: float, *, has_deadline: bool) -> None:
        self.begin = self.moment = self.window = now
        self.has_deadline = has_deadline
        self._decisions: Tally[Item] = Tally()  # of this moment
        self._in_window: Tally[Item] = Tally()

    def observe(self, now: float, item: Item | None) -> None:
        """Count one more decision, about this item. Raises NoProgress if the run leads nowhere."""
        if now != self.moment:
            self.moment = now
            self._decisions.clear()
            if now - self.window > WINDOW_SECONDS:
                self.window = now
                self._in_window.clear()
            if not self.has_deadline and now - self.begin > MAX_SECONDS:
                culprit = f"last {item}" if item is not None else "nobody in particular"
                raise NoProgress(
                    f"The cluster is not quiet after {MAX_SECONDS / 86_400:.0f} days of its own time: somebody always "
                    f"has something to do, {culprit}. Give the run a deadline."
                )
        if item is None:
            return
        decisions = self._decisions[item] = self._decisions.get(item, 0) + 1
        in_window = self._in_window[item] = self._in_window.get(item, 0) + 1
        if decisions > MAX_DECISIONS:
            raise NoProgress(self._describe_quarrel("The clock stands still", "In this instant", self._decisions))
        if in_window > MAX_IN_WINDOW:
            since = f"In {self.moment - self.window:.0f} s"
            raise NoProgress(self._describe_quarrel("Nothing comes to rest", since, self._in_window))

    def _describe_quarrel(self, state: str, since: str, decisions: Tally[Item]) -> str:
        most_decided = ", ".join(f"{item} {count} times" for item, count in decisions.most_common(5))
        after = f"{self.moment - self.begin:.3f} s after the run began"
        return (
            f"{state} {after}: controllers undo each other's work, or one is never content. "
            f"{since} were looked at: {most_decided}. Let one of them leave alone what another decides."
        )
