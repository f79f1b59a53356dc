"""Evictions that were decided and that the mirror does not show yet, so that nobody decides as if they were not.

Kept by evictions.py. Nodes are decided about one by one, each kind has a watch of its own, and a budget is charged
before its pod is deleted: until the mirror shows both, a pod of another node would be evicted although its turn has not
come, and the API server would refuse it. May be lost: a new leader begins with a fresh mirror. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from wukong.api.apps import PodDisruptionBudget
from wukong.api.core import Pod
from wukong.api.resources import Key, key_of
from wukong.state import State

PATIENCE = 5.0  # seconds: one that has not shown by then may have failed, or it took nothing from its budget


class _PendingEviction(NamedTuple):
    key: Key
    at: float
    budget: Key | None  # that covers the pod
    version: str  # of that budget when this was decided


class PendingEvictions:
    def __init__(self) -> None:
        self._by_uid: dict[str, _PendingEviction] = {}

    def copy(self) -> PendingEvictions:
        copy = PendingEvictions()
        copy._by_uid = dict(self._by_uid)
        return copy

    def add(self, pod: Pod, budget: PodDisruptionBudget | None, now: float) -> None:
        key, version = (None, "") if budget is None else (key_of(budget), budget.metadata.resource_version)
        self._by_uid[pod.metadata.uid] = _PendingEviction(key_of(pod), now, key, version)

    def drop_shown(self, state: State, now: float) -> None:
        """Forget those that the mirror shows: the pod goes or is gone, and its budget has changed since."""
        self._by_uid = {
            uid: pending
            for uid, pending in self._by_uid.items()
            if now < pending.at + PATIENCE and not _is_shown(uid, pending, state)
        }

    def includes(self, pod: Pod) -> bool:
        return pod.metadata.uid in self._by_uid

    def count(self, budget: Key, besides: Iterable[str] = ()) -> int:
        """How many of them this budget does not show yet, pods of these uids aside."""
        return sum(pending.budget == budget for uid, pending in self._by_uid.items() if uid not in besides)


def _is_shown(uid: str, pending: _PendingEviction, state: State) -> bool:
    pod = state.get(Pod, pending.key)
    if pod is not None and pod.metadata.uid == uid and not pod.is_terminating:
        return False
    budget = state.get(PodDisruptionBudget, pending.budget) if pending.budget is not None else None
    return budget is None or budget.metadata.resource_version != pending.version
