"""Placements decided but not yet seen: a pod counts on its node until the watch confirms it, or the time is up.

    assume ──► assumed ──► confirmed   the watch shows the pod on that node
                  ├──────► corrected   the watch shows it on another node, finished, recreated or gone
                  └──────► expired     nobody bound it in time; never once the API server has taken the binding

`State` keeps these and tells its live snapshot; nothing here counts anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from math import inf
from typing import Literal, NamedTuple

from wukong.api.core import Pod
from wukong.api.resources import Key

PlacementResult = Literal["assumed", "confirmed", "corrected"]


class Assumed(NamedTuple):
    """`pod` as it was when the decision was made."""

    pod: Pod
    node: str
    until: float


class AssumedPlacements:
    def __init__(self) -> None:
        self._assumed: dict[Key, Assumed] = {}
        self._deadlines: list[tuple[float, Key]] = []  # a heap; entries of placements dropped since are skipped

    def __len__(self) -> int:
        return len(self._assumed)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._assumed)

    def get(self, key: Key) -> Assumed | None:
        return self._assumed.get(key)

    def assume(self, key: Key, pod: Pod, node: str, until: float) -> None:
        self._assumed[key] = Assumed(pod, node, until)
        heappush(self._deadlines, (until, key))

    def keep(self, key: Key, node: str) -> None:
        """Never expire what is assumed of this pod, if it is on this node."""
        assumed = self._assumed.get(key)
        if assumed is not None and assumed.node == node:
            self._assumed[key] = assumed._replace(until=inf)

    def drop(self, key: Key) -> Assumed | None:
        return self._assumed.pop(key, None)

    def settle(self, key: Key, seen: Pod | None) -> PlacementResult | None:
        """What the watch has shown (None: the pod is gone) against what was assumed. None if nothing was."""
        assumed = self._assumed.get(key)
        if assumed is None:
            return None
        result = _settle(assumed, seen)
        if result != "assumed":
            del self._assumed[key]
        return result

    def next_expiry(self) -> float | None:
        while self._deadlines and self._is_dead(*self._deadlines[0]):
            heappop(self._deadlines)
        return self._deadlines[0][0] if self._deadlines else None

    def expire(self, now: float) -> list[Key]:
        """Drop the placements whose time is up, and name their pods."""
        expired = []
        while (until := self.next_expiry()) is not None and until <= now:
            _, key = heappop(self._deadlines)
            del self._assumed[key]
            expired.append(key)
        return expired

    def _is_dead(self, until: float, key: Key) -> bool:
        assumed = self._assumed.get(key)
        return assumed is None or assumed.until != until

    def fork(self) -> AssumedPlacements:
        copy = AssumedPlacements()
        copy._assumed, copy._deadlines = dict(self._assumed), list(self._deadlines)
        return copy


def _settle(assumed: Assumed, seen: Pod | None) -> PlacementResult:
    if seen is None or seen.is_finished or seen.metadata.uid != assumed.pod.metadata.uid:
        return "corrected"
    if not seen.spec.node_name:
        return "assumed"
    return "confirmed" if seen.spec.node_name == assumed.node else "corrected"
