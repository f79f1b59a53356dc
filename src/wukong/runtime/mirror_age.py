"""How old the mirror is, kind by kind: the seconds since the API server last said anything about a kind. Without I/O.

Kept by `mirror_feed`. An event, a bookmark, a completed list and the answer that a kind is not installed all count; a
kind of which nothing changes grows old, too, when its bookmarks stop.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil
from typing import NamedTuple

LIMIT_SECONDS = 150.0  # two bookmarks, which come about once a minute, and some patience


class OldWatch(NamedTuple):
    """A kind that is older than it may be."""

    kind: str
    age_seconds: float
    limit_seconds: float

    def __str__(self) -> str:
        return f"the watch of {self.kind} is {ceil(self.age_seconds)} s old (limit {self.limit_seconds:g} s)"


class MirrorAges:
    def __init__(self, kinds: Iterable[str], limit_seconds: float = LIMIT_SECONDS) -> None:
        self.limit_seconds = limit_seconds
        self._kinds = tuple(dict.fromkeys(kinds))
        self._updated_at: dict[str, float] = {}

    def start(self, now: float) -> None:
        """Begin to count, for kinds that have not been listed yet."""
        self._updated_at = dict.fromkeys(self._kinds, now)

    def record_update(self, kind: str, now: float) -> None:
        self._updated_at[kind] = now

    def age_of(self, kind: str, now: float) -> float:
        """Seconds; 0.0 for a kind nobody watches, and after a clock was put back."""
        return max(0.0, now - self._updated_at.get(kind, now))

    def staleness_of(self, kind: str, now: float) -> float:
        """The age of a kind that is beyond the limit, else 0.0."""
        age = self.age_of(kind, now)
        return age if age > self.limit_seconds else 0.0

    def old_watches(self, now: float) -> list[OldWatch]:
        """The kinds beyond the limit, the oldest first."""
        ages = sorted(((self.staleness_of(kind, now), kind) for kind in self._kinds), reverse=True)
        return [OldWatch(kind, age, self.limit_seconds) for age, kind in ages if age]
