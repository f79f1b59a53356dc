"""When to look again at a workload: after a change of it, of its versions or of its pods.

`LiveObservation` watches an API server; an embedded world is driven instead (tests). Whoever waits reads the cluster
itself afterwards: a lost event costs time, never truth.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress
from types import TracebackType
from typing import Protocol, Self

import msgspec

from wukong.api.kinds import PODS, REPLICA_SETS
from wukong.api.meta import ObjectMeta
from wukong.api.resources import Key, Resource
from wukong.app.live import WallClock
from wukong.cluster.list_watch import follow
from wukong.errors import ClusterError
from wukong.ports import Cluster, Selection


class Observation(Protocol):
    """The time, and a way to wait."""

    def now(self) -> float: ...

    async def wait(self, seconds: float) -> None:
        """Return when something may have changed, or after so many seconds."""
        ...


class _Head(msgspec.Struct):
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)


class LiveObservation:
    """Use it in an `async with`. Many changes at once are one: between two looks there is a pause."""

    def __init__(self, cluster: Cluster, resource: Resource, key: Key, *, least_seconds: float = 0.25) -> None:
        self._cluster, self._namespace, self._least_seconds = cluster, key.namespace, least_seconds
        self._kinds = (resource, REPLICA_SETS, PODS)
        self._clock, self._changed = WallClock(), asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def now(self) -> float:
        return self._clock.now()

    async def wait(self, seconds: float) -> None:
        await asyncio.sleep(min(self._least_seconds, seconds))
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, seconds - self._least_seconds)):
                await self._changed.wait()
        self._changed.clear()

    async def __aenter__(self) -> Self:
        self._tasks = [asyncio.create_task(self._watch(kind)) for kind in self._kinds]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _watch(self, resource: Resource) -> None:
        """A kind that may not be watched is looked at whenever the others change, and when the waiting is over."""
        updates = follow(self._cluster, resource, _Head, Selection(self._namespace))
        with suppress(ClusterError):
            async with aclosing(updates):
                async for _ in updates:
                    self._changed.set()
