"""Pods that were bound a moment ago: no meter has seen what they use yet, so they are counted by their requests.

Kept by State, read by fleet_cache.py. Only bindings seen happening count: after a restart there are none for a while.
"""

from __future__ import annotations

from typing import NamedTuple

from wukong.api.core import Pod, PodSpec
from wukong.api.resources import Key
from wukong.api.times import parse_time
from wukong.engine.requests import read_requests
from wukong.errors import InputError

KEPT_SECONDS = 600.0
_MOST_KEPT = 1 << 16
_LONGEST_LOG = 1 << 16


class RecentBinding(NamedTuple):
    at: float
    node: str
    cpu_milli: int
    memory: int


class RecentBindings:
    def __init__(self) -> None:
        self.on_node: dict[str, dict[Key, RecentBinding]] = {}
        self._bound: dict[Key, RecentBinding] = {}  # the oldest first
        self._log: list[str] = []  # nodes whose bindings changed
        self._forgotten = 0  # entries dropped from the log's beginning
        self._latest: tuple[PodSpec, tuple[int, int]] | None = None  # who was read last

    @property
    def version(self) -> int:
        """Another number whenever something changed."""
        return self._forgotten + len(self._log)

    def changed_since(self, version: int) -> set[str] | None:
        """The nodes whose bindings changed since then; None if that is too long ago to tell."""
        return set(self._log[version - self._forgotten :]) if version >= self._forgotten else None

    def note(self, key: Key, old: Pod | None, new: Pod | None) -> None:
        """A pod changed: it was bound just now, or is gone."""
        if new is None or new.is_finished:
            self._remove(key)
        elif new.spec.node_name and old is not None and not old.spec.node_name:
            self._add(key, new)

    def expire(self, now: float) -> None:
        while self._bound:
            key, oldest = next(iter(self._bound.items()))
            if oldest.at > now - KEPT_SECONDS and len(self._bound) <= _MOST_KEPT:
                break
            self._remove(key)
        if len(self._log) > _LONGEST_LOG:
            self._forgotten += len(self._log)
            self._log.clear()

    def fork(self) -> RecentBindings:
        copy = RecentBindings()
        copy.on_node = {node: dict(bindings) for node, bindings in self.on_node.items()}
        copy._bound, copy._log, copy._forgotten = dict(self._bound), list(self._log), self._forgotten
        copy._latest = self._latest
        return copy

    def _add(self, key: Key, pod: Pod) -> None:
        at = _bound_at(pod)
        if at is None:
            return
        try:
            cpu, memory = self._read_requests(pod)
        except InputError:
            return
        self._remove(key)
        bound = RecentBinding(at, pod.spec.node_name, cpu, memory)
        self._bound[key] = self.on_node.setdefault(bound.node, {})[key] = bound
        self._log.append(bound.node)

    def _read_requests(self, pod: Pod) -> tuple[int, int]:
        """What a pod takes: pods of one template come by the dozen, and share what their specs hold."""
        if pod.status.container_statuses or pod.status.init_container_statuses:  # it may have been resized
            return read_requests(pod).taken_nonzero
        if self._latest is None or not _asks_alike(self._latest[0], pod.spec):
            self._latest = pod.spec, read_requests(pod).taken_nonzero
        return self._latest[1]

    def _remove(self, key: Key) -> None:
        bound = self._bound.pop(key, None)
        if bound is None:
            return
        there = self.on_node[bound.node]
        del there[key]
        if not there:
            del self.on_node[bound.node]
        self._log.append(bound.node)


def _asks_alike(spec: PodSpec, other: PodSpec) -> bool:
    return (
        spec.containers is other.containers
        and spec.init_containers is other.init_containers
        and spec.resources is other.resources
        and spec.overhead is other.overhead
    )


def _bound_at(pod: Pod) -> float | None:
    """When the binding was written: the API server notes it in the condition PodScheduled."""
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled" and condition.status == "True":
            return parse_time(condition.last_transition_time)
    return None
