"""Keeps up with all objects of a kind: list, watch, and again whenever the watch is lost. Works on any Cluster.

              ┌── Gone, not there, not allowed any more ───┐
              ▼                                            │
    list in pages ──► Synced ──► watch ──► Changed … ──► ended or broken
                                   ▲                       │
                                   └── from last version ──┘

Between two attempts it waits, longer each time, until the server has said something again.

The list asks for the newest state in pages of 500. A 1.35 server answers that from its cache, too, and consistently: it
first makes sure that the cache has caught up with etcd (350 pages, no list in etcd's metrics). So resourceVersion=0,
which spared older servers reading etcd, only gains stale data. And the server then ignores the limit: 150,000 pods
would come and be decoded in one piece, while pages of 500 stop the loop for 3 ms each. For every list but the first it
would even be wrong: a server that lags behind would take us back in time. `from_cache` allows it for that first one,
for short-lived views.
"""

from __future__ import annotations

import asyncio
import random as dice
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any, Generic, TypeVar, cast

import msgspec

from wukong.api.resources import Resource
from wukong.errors import ClusterError, Denied, Gone, Invalid, NotFound, TooManyRequests
from wukong.ports import EVERYTHING, Cluster, Event, Selection

T = TypeVar("T")
PAGE = 500
FIRST_SECONDS = 0.8  # client-go's reflector waits the same, and up to the same
LAST_SECONDS = 30.0
_HOPELESS = (Denied, Invalid, NotFound)


class Synced(msgspec.Struct, Generic[T], frozen=True):
    """All there is: what is not in it is no more. The consumer finds what changed since the last one."""

    items: list[T]
    resource_version: str


class Changed(msgspec.Struct, Generic[T], frozen=True):
    """One change after what came before. Never a bookmark."""

    event: Event[T]


def seconds_before(attempt: int, random: float) -> float:
    """How long to wait before attempt 1, 2, 3…: doubling, and half of it by chance, so that not all come at once."""
    return min(LAST_SECONDS, FIRST_SECONDS * 2.0 ** min(attempt - 1, 10)) * (0.5 + random / 2)


async def follow(
    cluster: Cluster,
    resource: Resource,
    read: type[T],
    selection: Selection = EVERYTHING,
    *,
    from_cache: bool = False,
    tell: Callable[[ClusterError, float], object] = lambda error, seconds: None,
    random: Callable[[], float] = dice.random,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
) -> AsyncGenerator[Synced[T] | Changed[T], None]:
    """For ever. `read` must read metadata.resourceVersion. `tell` hears of each failure and the seconds until we retry.

    Before the first Synced, what waiting does not mend (no such kind, not allowed) is raised; later nothing is.
    """
    version, failures, has_synced, limit = "", 0, False, PAGE
    while True:
        heard, error = False, cast(ClusterError | None, None)
        try:
            if not version:
                first = "0" if from_cache and not has_synced else None
                synced = await _list(cluster, resource, read, selection, limit, first)
                version, has_synced, limit = synced.resource_version, True, PAGE
                yield synced
            events = cluster.watch(resource, read, selection, resource_version=version)
            async with aclosing(events):
                async for event in events:
                    version, heard, failures = version_of(event.object) or version, True, 0
                    if event.type != "BOOKMARK":
                        yield Changed(event)
        except Gone as gone:
            # If the pages themselves expired before we had them all, paging again may end the same way.
            version, limit, error = "", PAGE if version else 0, gone
        except ClusterError as failed:
            if not has_synced and isinstance(failed, _HOPELESS):
                raise
            # A kind that went away may come back with another history: look at all of it again.
            version, error = "" if isinstance(failed, _HOPELESS) else version, failed
        if heard and error is None:
            continue  # it ended as watches do, after some minutes
        failures += 1
        seconds = seconds_before(failures, random())
        if isinstance(error, TooManyRequests):
            seconds = max(seconds, error.retry_after or 0.0)
        if error is not None:
            tell(error, seconds)
        await sleep(seconds)


async def _list(
    cluster: Cluster, resource: Resource, read: type[T], selection: Selection, limit: int, version: str | None
) -> Synced[T]:
    limit = 0 if version == "0" else limit
    page = await cluster.list(resource, read, selection, limit=limit, resource_version=version)
    items = list(page.items)
    while page.token:
        page = await cluster.list(resource, read, selection, limit=limit, token=page.token)
        items += page.items
    return Synced(items, page.resource_version)


def version_of(found: Any) -> str:
    """The resourceVersion of an object, be it a struct or a dict."""
    if isinstance(found, dict):
        return str(found.get("metadata", {}).get("resourceVersion", ""))
    return str(found.metadata.resource_version)
