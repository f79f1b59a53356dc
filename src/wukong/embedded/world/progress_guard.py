"""Whether a run gets anywhere: controllers that undo each other's work would keep it at one moment for ever.

Used by the world, which tells it every decision. A large cluster may take millions of decisions in one instant, but few
about each key: every round of the queue looks at a key once, and the work of an instant is over after a few rounds.
"""

from __future__ import annotations

from collections import Counter as Tally

from wukong.errors import NoProgress
from wukong.runtime.dispatch import Item

MOST_LOOKS = 5_000  # at one key in one instant
LONGEST = 366 * 86_400.0  # virtual seconds without an end in sight


class ProgressGuard:
    def __init__(self, now: float, *, has_end: bool) -> None:
        self.begun = self.moment = now
        self.has_end = has_end
        self._looks: Tally[Item] = Tally()

    def watch(self, now: float, item: Item | None) -> None:
        """One more decision, about this key. Raises NoProgress if that leads nowhere."""
        if now != self.moment:
            self.moment = now
            self._looks.clear()
            if not self.has_end and now - self.begun > LONGEST:
                told = f"last {item}" if item is not None else "nobody in particular"
                raise NoProgress(
                    f"The cluster is not quiet after {LONGEST / 86_400:.0f} days of its own time: somebody always has "
                    f"something to do, {told}. Give the run a deadline."
                )
        if item is None:
            return
        self._looks[item] += 1
        if self._looks[item] > MOST_LOOKS:
            raise NoProgress(self._quarrel())

    def _quarrel(self) -> str:
        often = ", ".join(f"{item} {count} times" for item, count in self._looks.most_common(5))
        after = f"{self.moment - self.begun:.3f} s after the run began"
        return (
            f"The clock stands still {after}: controllers undo each other's work, or one is never content. "
            f"In this instant were looked at: {often}. Let one of them leave alone what another decides."
        )
