"""Decisions whose pods are on their way: made, answered, and not seen in the mirror yet.

A pod is not there yet when it is decided about: its name may be unknown, and every call has another uid. So a decision
has a nonce, which is written on the pod. Called again for the same pod, we find it there and decide the same. A pod
that a later plugin refuses (a quota) never comes: its decision is forgotten after ten seconds.
"""

from __future__ import annotations

from typing import NamedTuple

from wukong.api.placement import GROUP
from wukong.placement.pods import ON_DEMAND, SPOT, CapacityCounts

NONCE = f"{GROUP}/decision"  # the annotation
FORGET_SECONDS = 10.0
NO_PODS = CapacityCounts()
_MOST_DECISIONS = 1 << 14
Group = str | tuple[str, tuple[tuple[str, str], ...]]  # see capacity_index.py


class Decision(NamedTuple):
    group: Group
    plan: object  # by which it was made
    capacity: str
    made_at: float


def add_pods(counts: CapacityCounts, capacity: str, number: int) -> CapacityCounts:
    """These counts and so many pods of that capacity more, or fewer."""
    if capacity == SPOT:
        return CapacityCounts(counts.on_demand, counts.spot + number)
    return CapacityCounts(counts.on_demand + number, counts.spot) if capacity == ON_DEMAND else counts


class Decisions:
    def __init__(self) -> None:
        self._by_nonce: dict[str, Decision] = {}  # the oldest first
        self._counts: dict[Group, CapacityCounts] = {}

    def __len__(self) -> int:
        return len(self._by_nonce)

    def add(self, nonce: str, decision: Decision) -> None:
        if len(self._by_nonce) >= _MOST_DECISIONS:
            self.remove(next(iter(self._by_nonce)))
        self._by_nonce[nonce] = decision
        self._count(decision, 1)

    def find(self, nonce: str, group: Group, plan: object, now: float) -> Decision | None:
        """What was decided about the pod with this nonce, if we did so lately, by the same plan."""
        decision = self._by_nonce.get(nonce)
        if decision is None or not _is_recent(decision, now):
            return None
        return decision if decision.group == group and decision.plan is plan else None

    def count(self, group: Group, now: float) -> CapacityCounts:
        """How many pods of a group are on their way, by capacity."""
        while self._by_nonce:
            nonce, decision = next(iter(self._by_nonce.items()))
            if _is_recent(decision, now):
                break
            self.remove(nonce)
        return self._counts.get(group, NO_PODS)

    def remove(self, nonce: str) -> None:
        """Its pod has come, or it is too old. One that is unknown is somebody else's."""
        decision = self._by_nonce.pop(nonce, None)
        if decision is not None:
            self._count(decision, -1)

    def _count(self, decision: Decision, number: int) -> None:
        counts = add_pods(self._counts.get(decision.group, NO_PODS), decision.capacity, number)
        if counts == NO_PODS:
            self._counts.pop(decision.group, None)
        else:
            self._counts[decision.group] = counts


def _is_recent(decision: Decision, now: float) -> bool:
    """A decision of the future is not: somebody set the clock back."""
    return 0 <= now - decision.made_at < FORGET_SECONDS
