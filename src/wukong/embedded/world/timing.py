"""Draws when controllers hear of changes and how long their writes take. Each process has a Timing.

Every number is a hash of the seed, of the controller and of how many numbers it has drawn so far; nothing else. Times
are whole milliseconds, and all that happens in one moment is heard of together: so a burst of changes is one decision,
as it is in a cluster whose controllers take time.
"""

from __future__ import annotations

from collections.abc import Mapping

from wukong.embedded.world.clock import Chance
from wukong.embedded.world.latencies import ANY, LATENCIES, Latency, Spread

_SHARES = (0.0, 0.5, 0.9, 0.99, 1.0)  # of the draws that undercut the numbers of a Spread


class Timing:
    def __init__(self, seed: int, latencies: Mapping[str, Latency] = LATENCIES) -> None:
        self._chance, self._latencies = Chance(seed, "timing"), latencies
        self._draws: dict[str, int] = {}  # controller → how many it has drawn
        self._hearing: dict[str, tuple[float, float]] = {}  # controller → a moment, and when it hears of what changed

    def fork(self, seed: int | None = None) -> Timing:
        """An independent copy that will draw the same numbers, or those of another seed."""
        copy = Timing(seed or 0, self._latencies)
        copy._hearing = dict(self._hearing)
        if seed is None:
            copy._chance, copy._draws = self._chance, dict(self._draws)
        return copy

    def derive(self, name: str) -> Timing:
        """One that draws numbers of its own, for a process of this name."""
        derived = Timing(0, self._latencies)
        derived._chance = self._chance.derive(name)
        return derived

    def latency_of(self, controller: str) -> Latency:
        return self._latencies.get(controller, ANY)

    def hearing_time(self, controller: str, now: float) -> float:
        """When this controller takes up what changes now. One program never hears of two changes in reverse order."""
        moment, heard_at = self._hearing.get(controller, (0.0, 0.0))
        if moment == now:
            return heard_at
        latency = self._latencies.get(controller, ANY)
        at = self._after(latency.hearing, controller, now)
        if not latency.is_apart:
            at = max(at, heard_at)
        self._hearing[controller] = (now, at)
        return at

    def writing_time(self, controller: str, now: float) -> float:
        """When a write that this controller begins now is answered."""
        return self._after(self.latency_of(controller).writing, controller, now)

    def _after(self, spread: Spread, controller: str, now: float) -> float:
        number = self._draws[controller] = self._draws.get(controller, 0) + 1
        return round(now + draw(spread, self._chance.share(controller, number)) / 1000.0, 3)


def draw(spread: Spread, share: float) -> int:
    """The milliseconds of which this share of all draws stays below, read off the line through the spread's numbers."""
    for index in range(1, len(_SHARES)):
        low, high = _SHARES[index - 1], _SHARES[index]
        if share < high:
            return round(spread[index - 1] + (spread[index] - spread[index - 1]) * (share - low) / (high - low))
    return spread.most
