"""Keeps up with all objects of a kind: list, watch, and again whenever the watch is lost. Works on any Cluster.

              ┌ Gone, not there, not allowed, silent stall ┐
              ▼                                            │
    list in pages ──► Listing … ──► watch ──► Event … ──► ended, or WatchFailure
        │  ▲                       ▲                       │
        │  └ KindMissing           └── from last version ──┘
        └─────┘ (an optional kind that is not installed)

Between two attempts it waits, longer each time, until the server has said something again.

A connection on which nothing comes any more is noticed by the Cluster (http.py), which ends the watch with Stalled. A
watch that had said something is then begun again from there. One that was silent from its beginning is begun with a
list: it may be that nothing changed and the server sends no bookmarks, and only a list can tell that from a server
that is lost. (The API server sends a bookmark once a minute, but only if its cache has moved on since the watch began,
and for a kind of which nothing changes etcd moves it: every 5 s where kubeadm has set that up, by default every 10
minutes. A list that asks for the newest state moves it, too.)

The list asks for the newest state in pages of 500. A 1.35 server answers that from its cache, too, and consistently: it
first makes sure that the cache has caught up with etcd (350 pages, no list in etcd's metrics). So resourceVersion=0,
which spared older servers reading etcd, only gains stale data. And the server then ignores the limit: 150,000 pods
would come and be decoded in one piece, while pages of 500 stop the loop for 3 ms each. For every list but the first it
would even be wrong: a server that lags behind would take us back in time. `from_cache` allows it for that first one,
for short-lived views.

Each page is handed on before the next is asked for, so that no more than one of them is held at a time. Pages that
expire (410) before we have them all were too many for the time that the server keeps a version: the list is begun
again with larger ones, up to LARGEST_PAGE. It is never asked for in one piece, which a large cluster cannot answer.
"""

from __future__ import annotations

import asyncio
import random as dice
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any, TypeVar, cast

from wukong.api.resources import Resource
from wukong.errors import ClusterError, Denied, Gone, Invalid, NotFound, Stalled, TooManyRequests
from wukong.ports import EVERYTHING, Cluster, KindMissing, Listing, Selection, WatchFailure, WatchUpdate

T = TypeVar("T")
PAGE = 500
LARGEST_PAGE = 8 * PAGE
FIRST_SECONDS = 0.8  # client-go's reflector waits the same, and up to the same
LAST_SECONDS = 30.0
_HOPELESS = (Denied, Invalid, NotFound)


def retry_delay(attempt: int, random: float) -> float:
    """How long to wait before attempt 1, 2, 3…: doubling, and half of it by chance, so that not all come at once."""
    return min(LAST_SECONDS, FIRST_SECONDS * 2.0 ** min(attempt - 1, 10)) * (0.5 + random / 2)


async def follow(
    cluster: Cluster,
    resource: Resource,
    read: type[T],
    selection: Selection = EVERYTHING,
    optional: bool = False,
    *,
    from_cache: bool = False,
    random: Callable[[], float] = dice.random,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
) -> AsyncGenerator[WatchUpdate[T], None]:
    """Yields what becomes of a kind, for ever. `read` must read metadata.resourceVersion.

    Before the first Listing, what waiting does not mend (no such kind, not allowed) is raised; later it is a
    WatchFailure like any other. That an `optional` kind is not there is never raised: each time the server says so,
    there is a KindMissing, until the kind is installed and a Listing comes.
    """
    version, failures, has_synced, limit = "", 0, False, PAGE
    while True:
        has_heard, error = False, cast(ClusterError | None, None)
        try:
            if not version:
                from_version = "0" if from_cache and not has_synced else None
                async with aclosing(_list(cluster, resource, read, selection, limit, from_version)) as pages:
                    async for page in pages:
                        yield page
                        version = page.resource_version if page.is_last else ""
                has_synced, limit = True, PAGE
            events = cluster.watch(resource, read, selection, resource_version=version)
            async with aclosing(events):
                async for event in events:
                    version, has_heard, failures = version_of(event.object) or version, True, 0
                    yield event
        except Gone as gone:
            # If the pages themselves expired before we had them all, as many of them may end the same way.
            version, limit, error = "", PAGE if version else min(2 * limit, LARGEST_PAGE), gone
        except ClusterError as failed:
            has_synced = has_synced or (optional and isinstance(failed, NotFound))
            if not has_synced and isinstance(failed, _HOPELESS):
                raise
            # A kind that went away may come back with another history: look at all of it again.
            is_list_due = isinstance(failed, _HOPELESS) or (isinstance(failed, Stalled) and not has_heard)
            version, error = "" if is_list_due else version, failed
            failures = 0 if isinstance(failed, Stalled) else failures  # it has waited for long enough already
        if has_heard and error is None:
            continue  # it ended as watches do, after some minutes
        failures += 1
        seconds = retry_delay(failures, random())
        if isinstance(error, TooManyRequests):
            seconds = max(seconds, error.retry_after or 0.0)
        if optional and isinstance(error, NotFound):
            yield KindMissing(seconds)
        elif error is not None:
            yield WatchFailure(error, seconds)
        await sleep(seconds)


async def _list(
    cluster: Cluster, resource: Resource, read: type[T], selection: Selection, limit: int, version: str | None
) -> AsyncGenerator[Listing[T], None]:
    limit, token, is_first = 0 if version == "0" else limit, "", True
    while is_first or token:
        page = await cluster.list(
            resource, read, selection, limit=limit, token=token, resource_version=version if is_first else None
        )
        if not page.resource_version:  # lists of metrics have none, and nobody can watch metrics
            raise ClusterError(f"the list of {resource.plural} has no resourceVersion. Is the address an API server's?")
        token = page.token
        yield Listing(page.items, page.resource_version, page.unreadable, is_first, is_last=not token)
        is_first = False


def version_of(resource_object: Any) -> str:
    """The resourceVersion of an object, be it a struct or a dict."""
    if isinstance(resource_object, dict):
        return str(resource_object.get("metadata", {}).get("resourceVersion", ""))
    return str(resource_object.metadata.resource_version)
