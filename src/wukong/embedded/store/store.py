"""The embedded API server behind the port `wukong.ports.Cluster`: the same methods as cluster.kube, without a network.

    async with Store(clock) as store:
        await store.create(NAMESPACES, {"metadata": {"name": "shop"}})

Every method does all its work before it returns, and nothing sleeps: a watch waits for the next change and for nothing
else. It sends a bookmark after changes that its selection does not include.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

import msgspec

from wukong.api.apps import ScaledWorkload
from wukong.api.decode import readable
from wukong.api.resources import Key, Resource
from wukong.api.unreadable import Unreadable, read_document
from wukong.embedded.store import selectors, watch_events
from wukong.embedded.store.api_errors import version_too_old
from wukong.embedded.store.deletion import DeleteOptions
from wukong.embedded.store.documents import copy_document
from wukong.embedded.store.ownership.field_managers import Writer
from wukong.embedded.store.server import Server, parse_version
from wukong.errors import ClusterError
from wukong.ports import (
    EVERYTHING,
    FIELD_MANAGER,
    Clock,
    Document,
    Event,
    EventType,
    Page,
    PatchBody,
    Propagation,
    Selection,
)

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")


class Store:
    """Takes a clock, or an existing Server. Leaving the `async with` ends all watches."""

    def __init__(self, clock: Clock | None = None, *, server: Server | None = None) -> None:
        if server is None:
            assert clock is not None, "a Store needs a clock, or a Server that has one"
            server = Server(clock)
        self.server = server
        # Name of a kind → the watches that wait for its next change, in the order they came, so that they wake in it.
        self._wakeups: dict[str, dict[asyncio.Event, None]] = {}
        self._epoch = 0
        self._stop_listening = server.database.listen(self._wake)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.end_watches()
        self._stop_listening()

    def end_watches(self) -> None:
        """End every watch, as a server does that restarts. Their owners begin new ones."""
        self._epoch += 1
        for name in list(self._wakeups):
            self._wake(name)

    def _wake(self, name: str) -> None:
        for wakeup in self._wakeups.get(name, {}):
            wakeup.set()

    # The port ------------------------------------------------------------------------------------------------------

    async def get(self, resource: Resource, key: Key, read: type[T]) -> T:
        return _decode(self.server.get(resource, key), read, resource)

    async def list(
        self,
        resource: Resource,
        read: type[T],
        selection: Selection = EVERYTHING,
        *,
        limit: int = 0,
        token: str = "",
        resource_version: str | None = None,
    ) -> Page[T]:
        result = self.server.list(resource, selection, limit=limit, token=token, resource_version=resource_version)
        page: Page[T] = Page([], str(result.version), result.token)
        for document in result.items:
            subject = _read(document, read)
            if isinstance(subject, Unreadable):
                page.unreadable.append(subject)
            else:
                page.items.append(subject)
        return page

    async def watch(
        self, resource: Resource, read: type[T], selection: Selection = EVERYTHING, *, resource_version: str
    ) -> AsyncGenerator[Event[T] | Event[Unreadable], None]:
        database, kind = self.server.database, self.server.kinds.of(resource)
        selector = selectors.parse_selection(kind, selection)
        version = parse_version(resource_version)
        if version == 0:  # the current state comes first, as if it had just been created
            version = database.version
            for document in self.server.list(resource, selection).items:
                yield _build_event("ADDED", document, read)
        elif version < kind.since:
            raise version_too_old(version, kind.since)
        import asyncio  # only who watches needs it: `wukong sim run` starts without

        epoch, wakeup = self._epoch, asyncio.Event()
        self._wakeups.setdefault(kind.name, {})[wakeup] = None
        try:
            while epoch == self._epoch:
                wakeup.clear()
                changes = database.changes_since(kind.name, version)
                seen = version
                for event in watch_events.build_events(changes, selector):
                    seen = int(event.object["metadata"]["resourceVersion"])
                    yield _build_event(event.type, event.object, read)
                if changes:
                    version = changes[-1].version
                    if seen < version:
                        yield Event(
                            "BOOKMARK", _decode(watch_events.build_bookmark(kind, version).object, read, resource)
                        )
                await wakeup.wait()
        finally:
            self._wakeups[kind.name].pop(wakeup)

    async def create(self, resource: Resource, body: Document, namespace: str = "") -> Document:
        return copy_document(self.server.create(resource, body, namespace, Writer("wukong")))

    async def patch(self, resource: Resource, key: Key, patch: PatchBody, subresource: str = "") -> Document:
        return copy_document(self.server.patch(resource, key, patch, subresource))

    async def delete(
        self,
        resource: Resource,
        key: Key,
        *,
        uid: str = "",
        resource_version: str = "",
        grace_seconds: int | None = None,
        propagation: Propagation = "",
    ) -> None:
        self.server.delete(resource, key, DeleteOptions(uid, resource_version, grace_seconds, propagation))

    async def evict(self, key: Key, *, uid: str = "", grace_seconds: int | None = None) -> None:
        self.server.evict(key, DeleteOptions(uid=uid, grace_seconds=grace_seconds))

    async def bind(self, key: Key, node: str, *, uid: str = "") -> None:
        self.server.bind(key, node, uid)

    async def scale(
        self, resource: Resource, key: Key, replicas: int, *, resource_version: str = "", manager: str = FIELD_MANAGER
    ) -> None:
        body: Document = {"spec": {"replicas": replicas}}
        body |= {"metadata": {"resourceVersion": resource_version}} if resource_version else {}
        self.server.patch(resource, key, PatchBody("merge", body, manager=manager), "scale")


def _decode(document: Document, read: type[T], resource: Resource) -> T:
    """Decode a document into a struct, or copy it for `dict`: callers never get the stored document itself."""
    if cast(Any, read) is dict:
        return cast(T, copy_document(document))
    try:
        return msgspec.convert(_list_managers(document, read), read)
    except msgspec.ValidationError as error:
        message = f"the answer for {resource.plural} is not what we expect: {readable(error)}"
        raise ClusterError(message) from None


def _read(document: Document, read: type[T]) -> T | Unreadable:
    if cast(Any, read) is dict:
        return cast(T, copy_document(document))
    return read_document(_list_managers(document, read), read)


def _list_managers(document: Document, read: type[T]) -> Document:
    """Work out metadata.managedFields for those who read it: see ownership/managed_fields.py."""
    meta = document.get("metadata")
    if not issubclass(read, ScaledWorkload) or not isinstance(meta, dict) or "managedFields" not in meta:
        return document
    return {**document, "metadata": {**meta, "managedFields": list(meta["managedFields"] or ())}}


def _build_event(event_type: EventType, document: Document, read: type[T]) -> Event[T] | Event[Unreadable]:
    subject = _read(document, read)
    return cast("Event[T] | Event[Unreadable]", Event(event_type, subject))
