"""The least of a Cluster these tests need: objects as documents, versions, merge patches, and faults on request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any, TypeVar

import msgspec

from wukong.api.kinds import PODS
from wukong.api.meta import Object
from wukong.api.resources import Key, Resource
from wukong.errors import AlreadyExists, ClusterError, Conflict, NotFound
from wukong.ports import (
    EVERYTHING,
    FIELD_MANAGER,
    Document,
    Event,
    Listing,
    Page,
    PatchBody,
    Propagation,
    Selection,
    WatchUpdate,
)

T = TypeVar("T")


class TinyCluster:
    def __init__(self) -> None:
        self.objects: dict[tuple[str, Key], Document] = {}
        self.version = 0
        self.calls: list[tuple[str, str, str]] = []  # verb, kind, key
        self.watchers: list[tuple[str, asyncio.Queue[Event[Document]]]] = []
        self.before: list[ClusterError] = []  # raised instead of doing the next writes
        self.after: list[ClusterError] = []  # raised after doing them
        self.seconds = 0.0  # how long each write takes

    # ---- the part of ports.Cluster that is used

    async def get(self, resource: Resource, key: Key, read: type[T]) -> T:
        return msgspec.convert(self._held(resource.kind, key), read)

    async def create(self, resource: Resource, body: Document, namespace: str = "") -> Document:
        key = Key(namespace, body["metadata"]["name"])
        await self._begin("create", resource.kind, key)
        if (resource.kind, key) in self.objects:
            raise AlreadyExists(str(key))
        return self._put("ADDED", resource.kind, key, body)

    async def patch(self, resource: Resource, key: Key, patch: PatchBody, subresource: str = "") -> Document:
        await self._begin("patch", resource.kind, key)
        held = self._held(resource.kind, key)
        wanted = patch.body.get("metadata", {}).get("resourceVersion")
        if wanted not in (None, held["metadata"]["resourceVersion"]):
            raise Conflict(str(key))
        return self._put("MODIFIED", resource.kind, key, merged(held, patch.body))

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
        await self._begin("delete", resource.kind, key)
        self._held(resource.kind, key)
        gone = self.objects.pop((resource.kind, key))
        self._tell("DELETED", resource.kind, gone)
        self._end()

    async def evict(self, key: Key, *, uid: str = "", grace_seconds: int | None = None) -> None:
        await self.delete(PODS, key, uid=uid)

    async def bind(self, key: Key, node: str, *, uid: str = "") -> None:
        await self._begin("bind", "Pod", key)
        held = self._held("Pod", key)
        if held.get("spec", {}).get("nodeName"):
            raise Conflict(f"{key} is bound")
        self._put("MODIFIED", "Pod", key, merged(held, {"spec": {"nodeName": node}}))

    async def scale(
        self, resource: Resource, key: Key, replicas: int, *, resource_version: str = "", manager: str = FIELD_MANAGER
    ) -> None:
        await self.patch(resource, key, PatchBody("merge", {"spec": {"replicas": replicas}}))

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
        raise NotImplementedError

    def watch(
        self, resource: Resource, read: type[T], selection: Selection = EVERYTHING, *, resource_version: str
    ) -> AsyncGenerator[Event[T], None]:
        raise NotImplementedError

    # ---- the rest

    async def follow(
        self, cluster: object, resource: Resource, read: type[Object], selection: Selection, optional: bool
    ) -> AsyncIterator[WatchUpdate[Object]]:
        news: asyncio.Queue[Event[Document]] = asyncio.Queue()
        self.watchers.append((resource.kind, news))
        found = [held for (kind, _), held in self.objects.items() if kind == resource.kind]
        yield Listing([msgspec.convert(held, read) for held in found], str(self.version))
        while True:
            event = await news.get()
            yield Event(event.type, msgspec.convert(event.object, read))

    def put(self, kind: str, name: str, **spec: Any) -> None:
        key = Key("default", name)
        body = {"kind": kind, "metadata": {"name": name, "namespace": "default", "uid": name}, "spec": spec}
        self._put("ADDED", kind, key, body)

    def change(self, kind: str, name: str, patch: Document) -> None:
        """A foreign edit."""
        key = Key("default", name)
        self._put("MODIFIED", kind, key, merged(self._held(kind, key), patch))

    async def _begin(self, verb: str, kind: str, key: Key) -> None:
        self.calls.append((verb, kind, str(key)))
        if self.seconds:
            await asyncio.sleep(self.seconds)
        if self.before:
            raise self.before.pop(0)

    def _end(self) -> None:
        if self.after:
            raise self.after.pop(0)

    def _held(self, kind: str, key: Key) -> Document:
        if (kind, key) not in self.objects:
            raise NotFound(f"{kind} {key}")
        return self.objects[kind, key]

    def _put(self, event: Any, kind: str, key: Key, body: Document) -> Document:
        self.version += 1
        stored = merged(body, {"metadata": {"resourceVersion": str(self.version)}})
        self.objects[kind, key] = stored
        self._tell(event, kind, stored)
        self._end()
        return stored

    def _tell(self, event: Any, kind: str, body: Document) -> None:
        for watched, news in self.watchers:
            if watched == kind:
                news.put_nowait(Event(event, body))


def merged(held: Document, patch: Document) -> Document:
    result = dict(held)
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        elif isinstance(value, dict) and isinstance(result.get(name), dict):
            result[name] = merged(result[name], value)
        else:
            result[name] = value
    return result
