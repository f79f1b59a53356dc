"""Decisions whose pods are on their way: made, answered, and not seen in the mirror yet.

A pod is not there yet when it is decided about: its name may be unknown, and every call has another uid. So a decision
has a nonce, which is written on the pod. Called again for the same pod, we find it there and decide the same. A pod
that a later plugin refuses (a quota) never comes: its decision is forgotten after ten seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from wukong.api.placement import GROUP

NONCE = f"{GROUP}/decision"  # the annotation
FORGET_SECONDS = 10.0
_MOST_DECISIONS = 1 << 14
Group = str | tuple[str, tuple[tuple[str, str], ...]]  # see capacity_index.py


class Decision(NamedTuple):
    group: Group
    plan: object  # by which it was made
    capacity: str
    made_at: float


class Decisions:
    def __init__(self) -> None:
        self._by_nonce: dict[str, Decision] = {}  # the oldest first
        self._by_group: dict[Group, dict[str, str]] = {}  # nonce → capacity

    def __len__(self) -> int:
        return len(self._by_nonce)

    def add(self, nonce: str, decision: Decision) -> None:
        self._forget_old(decision.made_at)
        if len(self._by_nonce) >= _MOST_DECISIONS:
            self.remove(next(iter(self._by_nonce)))
        self._by_nonce[nonce] = decision
        self._by_group.setdefault(decision.group, {})[nonce] = decision.capacity

    def find(self, nonce: str, group: Group, plan: object, now: float) -> Decision | None:
        """What was decided about the pod with this nonce, if we did so lately, by the same plan."""
        decision = self._by_nonce.get(nonce)
        if decision is None or not _is_recent(decision, now):
            return None
        return decision if decision.group == group and decision.plan is plan else None

    def list_pending(self, group: Group, has_seen: Callable[[str], bool], now: float) -> Iterator[str]:
        """The capacities decided for pods of a group that have not come yet. Those that have are forgotten here."""
        self._forget_old(now)
        for nonce, capacity in list(self._by_group.get(group, {}).items()):
            if has_seen(nonce):
                self.remove(nonce)
            else:
                yield capacity

    def remove(self, nonce: str) -> None:
        decision = self._by_nonce.pop(nonce)
        nonces = self._by_group[decision.group]
        del nonces[nonce]
        if not nonces:
            del self._by_group[decision.group]

    def _forget_old(self, now: float) -> None:
        while self._by_nonce:
            nonce, decision = next(iter(self._by_nonce.items()))
            if _is_recent(decision, now):
                return
            self.remove(nonce)


def _is_recent(decision: Decision, now: float) -> bool:
    """A decision of the future is not: somebody set the clock back."""
    return 0 <= now - decision.made_at < FORGET_SECONDS
