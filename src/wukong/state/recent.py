"""Pods that were bound a moment ago: no meter has seen what they use yet, so they are counted by their requests.

Kept by State, read by replies.fleets. Only bindings seen happening count: after a restart there are none for a while.
"""

from __future__ import annotations

import datetime
from typing import NamedTuple

from wukong.api.core import Pod
from wukong.api.resources import Key
from wukong.engine.requests import read_requests
from wukong.errors import InputError

KEPT_SECONDS = 600.0
_MOST_KEPT = 1 << 16


class Bound(NamedTuple):
    at: float
    node: str
    cpu_milli: int
    memory: int


class Recent:
    def __init__(self) -> None:
        self.version = 0  # another number whenever `bound` is another
        self.bound: dict[Key, Bound] = {}  # the oldest first

    def note(self, key: Key, old: Pod | None, new: Pod | None) -> None:
        """A pod changed: it was bound just now, or is gone."""
        if new is None or new.is_finished:
            if self.bound.pop(key, None) is not None:
                self.version += 1
        elif new.spec.node_name and old is not None and not old.spec.node_name:
            self._add(key, new)

    def expire(self, now: float) -> None:
        while self.bound:
            key, oldest = next(iter(self.bound.items()))
            if oldest.at > now - KEPT_SECONDS and len(self.bound) <= _MOST_KEPT:
                return
            del self.bound[key]
            self.version += 1

    def fork(self) -> Recent:
        copy = Recent()
        copy.version, copy.bound = self.version, dict(self.bound)
        return copy

    def _add(self, key: Key, pod: Pod) -> None:
        at = _bound_at(pod)
        if at is None:
            return
        try:
            cpu, memory = read_requests(pod).taken_nonzero
        except InputError:
            return
        self.bound.pop(key, None)
        self.bound[key] = Bound(at, pod.spec.node_name, cpu, memory)
        self.version += 1


def _bound_at(pod: Pod) -> float | None:
    """When the binding was written: the API server notes it in the condition PodScheduled."""
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled" and condition.status == "True" and condition.last_transition_time:
            try:
                return datetime.datetime.fromisoformat(condition.last_transition_time).timestamp()
            except ValueError:
                return None
    return None
