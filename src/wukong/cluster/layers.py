"""Layers: clusters around a cluster. Reads pass through; writes are said and not done, or done and recorded.

    DryRun(cluster, say)          says each write once, as the action that would have caused it, and does none
    Recording(cluster, record)    does each write, and records it with what the API server answered

Put around any `ports.Cluster`, as app.live does for --dry-run; whoever is given one cannot tell it from what is inside.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Any, TypeVar

import msgspec

from wukong.actions import Action, Bind, Create, Delete, Evict, Patch, Scale
from wukong.api.kinds import EVENTS
from wukong.api.resources import Key, Resource
from wukong.api.unreadable import Unreadable
from wukong.errors import ClusterError
from wukong.ports import EVERYTHING, FIELD_MANAGER, Cluster, Document, Event, Page, PatchBody, Propagation, Selection

T = TypeVar("T")
GENERATED = "dry-run"  # what a name that the API server would have generated ends with
_KEPT = 10_000  # writes that were said already
Say = Callable[[Action], None]
Record = Callable[[Action, ClusterError | None], None]


class Layer:
    """What all layers share: reads are the inner cluster's own. `write` is what a layer is about."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    async def write(self, action: Action, answer: T, perform: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Do it, or give the `answer` that a plain success would have."""
        return await perform()

    async def get(self, resource: Resource, key: Key, read: type[T]) -> T:
        return await self.cluster.get(resource, key, read)

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
        return await self.cluster.list(
            resource, read, selection, limit=limit, token=token, resource_version=resource_version
        )

    def watch(
        self, resource: Resource, read: type[T], selection: Selection = EVERYTHING, *, resource_version: str
    ) -> AsyncGenerator[Event[T] | Event[Unreadable], None]:
        return self.cluster.watch(resource, read, selection, resource_version=resource_version)

    async def create(self, resource: Resource, body: Document, namespace: str = "") -> Document:
        action = Create(resource, body, namespace)
        return await self.write(action, _build_created(action), lambda: self.cluster.create(resource, body, namespace))

    async def patch(self, resource: Resource, key: Key, patch: PatchBody, subresource: str = "") -> Document:
        action = Patch(resource, key, patch, subresource)
        answer: Document = {"metadata": {"name": key.name, "namespace": key.namespace}}
        return await self.write(action, answer, lambda: self.cluster.patch(resource, key, patch, subresource))

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
        await self.write(
            Delete(resource, key, uid, resource_version, grace_seconds, propagation),
            None,
            lambda: self.cluster.delete(
                resource,
                key,
                uid=uid,
                resource_version=resource_version,
                grace_seconds=grace_seconds,
                propagation=propagation,
            ),
        )

    async def evict(self, key: Key, *, uid: str = "", grace_seconds: int | None = None) -> None:
        action = Evict(key, uid, grace_seconds)
        await self.write(action, None, lambda: self.cluster.evict(key, uid=uid, grace_seconds=grace_seconds))

    async def bind(self, key: Key, node: str, *, uid: str = "") -> None:
        await self.write(Bind(key, node, uid), None, lambda: self.cluster.bind(key, node, uid=uid))

    async def scale(
        self, resource: Resource, key: Key, replicas: int, *, resource_version: str = "", manager: str = FIELD_MANAGER
    ) -> None:
        await self.write(
            Scale(resource, key, replicas, resource_version, manager),
            None,
            lambda: self.cluster.scale(resource, key, replicas, resource_version=resource_version, manager=manager),
        )


class DryRun(Layer):
    """Its answers carry no version, so a key that would write rests as one whose write has not shown yet.

    The same decision comes again whenever something changes, for nothing came of it: each distinct write is said once.
    """

    def __init__(self, cluster: Cluster, say: Say) -> None:
        super().__init__(cluster)
        self._say = say
        self._said: OrderedDict[bytes, None] = OrderedDict()

    async def write(self, action: Action, answer: T, perform: Callable[[], Coroutine[Any, Any, T]]) -> T:
        text = msgspec.json.encode(_identity(action), order="deterministic")
        if text not in self._said:
            self._say(action)
        self._said[text] = None
        self._said.move_to_end(text)
        if len(self._said) > _KEPT:
            self._said.popitem(last=False)
        return answer


class Recording(Layer):
    def __init__(self, cluster: Cluster, record: Record) -> None:
        super().__init__(cluster)
        self._record = record

    async def write(self, action: Action, answer: T, perform: Callable[[], Coroutine[Any, Any, T]]) -> T:
        try:
            result = await perform()
        except ClusterError as error:
            self._record(action, error)
            raise
        self._record(action, None)
        return result


def _build_created(action: Create) -> Document:
    """The object as it would have been created."""
    meta = dict(action.body.get("metadata") or {})
    meta["name"] = meta.get("name") or f"{meta.get('generateName', '')}{GENERATED}"
    if action.namespace:
        meta["namespace"] = action.namespace
    return {**action.body, "metadata": meta}


def _identity(action: Action) -> object:
    """What tells one write from another. An Event has a new name and time whenever it is told."""
    if isinstance(action, Create) and action.resource == EVENTS:
        return [action.body.get(field) for field in ("regarding", "reason", "note")]
    if isinstance(action, Patch) and action.resource == EVENTS:
        return [str(action.key)]
    return action
