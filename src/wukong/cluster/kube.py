"""A real API server behind the port `wukong.ports.Cluster`. Speaks JSON through http.py and decodes into structs.

    async with Kube(load()) as kube:
        web = await kube.get(DEPLOYMENTS, Key("shop", "web"), Deployment)

Every method is one request and repeats nothing: what to do about a Conflict, a TooManyRequests or an OutcomeUnknown is
for the caller to decide: list_watch.py for reading, the runtime for writes.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any, Generic, Self, TypeVar, cast

import msgspec

from wukong.api.decode import readable
from wukong.api.documents import without_nulls
from wukong.api.kinds import PODS
from wukong.api.resources import Key, Resource
from wukong.cluster.api_status import build_error
from wukong.cluster.credentials import Credentials
from wukong.cluster.http import STALL_SECONDS, Http
from wukong.errors import ClusterError
from wukong.ports import EVERYTHING, Document, Event, EventType, Page, PatchBody, Propagation, Selection

T = TypeVar("T")

PATCH_TYPES = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",  # JSON is YAML
}


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    token: str = msgspec.field(default="", name="continue")


class _List(msgspec.Struct, Generic[T]):
    metadata: _ListMeta = msgspec.field(default_factory=_ListMeta)
    items: list[T] | None = None  # Go writes null for none


class _Line(msgspec.Struct):
    """One line of a watch. The object stays undecoded at first: an ERROR's is a Status, whose `status` is a string."""

    type: str
    object: msgspec.Raw


class _Meta(msgspec.Struct, rename="camel"):
    resource_version: str = ""


class _Versioned(msgspec.Struct):
    metadata: _Meta


class Kube:
    """Use it in an `async with`. `watch_seconds` bounds each watch; 0 leaves that to the server (30 to 60 minutes).

    A watch on which nothing came for `stall_seconds` is cut and ends in Stalled.
    """

    def __init__(
        self, credentials: Credentials, *, watch_seconds: int = 0, stall_seconds: float = STALL_SECONDS
    ) -> None:
        self.credentials = credentials
        self._http, self._watch_seconds = Http(credentials, stall_seconds=stall_seconds), watch_seconds

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.__aexit__()

    async def get(self, resource: Resource, key: Key, read: type[T]) -> T:
        path = resource.path(key.namespace, key.name)
        return decode(await self._http.send("GET", path), read, path)

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
        path = resource.path(selection.namespace)
        params = _build_selector_params(selection)
        params |= {"limit": str(limit)} if limit else {}
        # A token carries its version; the API server refuses both together.
        params |= {"continue": token} if token else _build_version_params(resource_version)
        answer = await self._http.send("GET", path, params=params)
        response = cast("_List[T]", decode(answer, _List[read], path))  # type: ignore[valid-type]
        return Page(response.items or [], response.metadata.resource_version, response.metadata.token)

    async def watch(
        self, resource: Resource, read: type[T], selection: Selection = EVERYTHING, *, resource_version: str
    ) -> AsyncGenerator[Event[T], None]:
        path = resource.path(selection.namespace)
        params = {"watch": "true", "allowWatchBookmarks": "true", "resourceVersion": resource_version}
        params |= {"timeoutSeconds": str(self._watch_seconds)} if self._watch_seconds else {}
        lines = self._http.read_lines(path, _build_selector_params(selection) | params)
        try:
            async for line in lines:
                if line.strip():
                    yield _decode_event(line, read, resource)
        finally:
            await lines.aclose()  # now, not when the collector finds it: it holds a connection

    async def create(self, resource: Resource, body: Document, namespace: str = "") -> Document:
        whole = {"apiVersion": resource.api_version, "kind": resource.kind, **body}
        return await self._write("POST", resource.path(namespace), whole, params={"fieldManager": "wukong"})

    async def patch(self, resource: Resource, key: Key, patch: PatchBody, subresource: str = "") -> Document:
        path = resource.path(key.namespace, key.name, subresource)
        params = {"fieldManager": patch.manager} | ({"force": "true"} if patch.force else {})
        body = patch.body
        if patch.type == "apply":
            body = {"apiVersion": resource.api_version, "kind": resource.kind, **body}
        return await self._write("PATCH", path, body, params=params, content_type=PATCH_TYPES[patch.type])

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
        options = _build_delete_options(uid, resource_version, grace_seconds)
        options |= {"propagationPolicy": propagation} if propagation else {}
        await self._http.send("DELETE", resource.path(key.namespace, key.name), options)

    async def evict(self, key: Key, *, uid: str = "", grace_seconds: int | None = None) -> None:
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": key.name, "namespace": key.namespace},
            "deleteOptions": _build_delete_options(uid, "", grace_seconds),
        }
        await self._write("POST", PODS.path(key.namespace, key.name, "eviction"), body)

    async def bind(self, key: Key, node: str, *, uid: str = "") -> None:
        meta = {"name": key.name, "namespace": key.namespace} | ({"uid": uid} if uid else {})
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": meta, "target": target}
        await self._write("POST", PODS.path(key.namespace, key.name, "binding"), body)

    async def scale(self, resource: Resource, key: Key, replicas: int, *, resource_version: str = "") -> None:
        body: Document = {"spec": {"replicas": replicas}}
        body |= {"metadata": {"resourceVersion": resource_version}} if resource_version else {}
        await self.patch(resource, key, PatchBody("merge", body), "scale")

    async def version(self) -> str:
        """Return the server's version, such as v1.35.8."""
        return str(decode(await self._http.send("GET", "/version"), dict, "/version").get("gitVersion", ""))

    async def _write(self, method: str, path: str, body: object, **options: Any) -> Document:
        return decode(await self._http.send(method, path, body, **options), dict, path)


def decode(data: bytes | msgspec.Raw, read: type[T], place: str) -> T:
    """Decode into a struct or dict. Null lists, which Go writes, are read as absent."""
    try:
        try:
            return cast(T, (_decoders.get(read) or _decoders.setdefault(read, msgspec.json.Decoder(read))).decode(data))
        except msgspec.ValidationError:
            return msgspec.convert(without_nulls(msgspec.json.decode(data)), read)
    except msgspec.ValidationError as error:
        raise ClusterError(f"the answer for {place} is not what we expect: {readable(error)}") from None
    except msgspec.DecodeError as error:
        raise ClusterError(f"the answer for {place} is not JSON: {error}. Is the address an API server's?") from None


_decoders: dict[Any, msgspec.json.Decoder[Any]] = {}  # one per struct ever read
_line_decoder = msgspec.json.Decoder(_Line)
_version_decoder = msgspec.json.Decoder(_Versioned)


def _decode_event(line: bytes, read: type[T], resource: Resource) -> Event[T]:
    place = f"a watch of {resource.plural}"
    try:
        watch_line = _line_decoder.decode(line)
    except msgspec.DecodeError as error:
        raise ClusterError(f"{place} said something that is no event: {error}") from None
    if watch_line.type == "ERROR":
        raise build_error(0, watch_line.object)
    if watch_line.type == "BOOKMARK":  # its spec is empty, which a struct need not accept
        version = _version_decoder.decode(watch_line.object).metadata.resource_version
        head = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"resourceVersion": version}}
        return Event("BOOKMARK", msgspec.convert(head, read))
    return Event(cast(EventType, watch_line.type), decode(watch_line.object, read, place))


def _build_selector_params(selection: Selection) -> dict[str, str]:
    params = {"labelSelector": selection.labels, "fieldSelector": selection.fields}
    return {name: value for name, value in params.items() if value}


def _build_version_params(version: str | None) -> dict[str, str]:
    return {} if version is None else {"resourceVersion": version}


def _build_delete_options(uid: str, resource_version: str, grace_seconds: int | None) -> Document:
    expected = {"uid": uid, "resourceVersion": resource_version}
    preconditions = {name: value for name, value in expected.items() if value}
    options: Document = {"apiVersion": "v1", "kind": "DeleteOptions"}
    options |= {"preconditions": preconditions} if preconditions else {}
    return options | ({} if grace_seconds is None else {"gracePeriodSeconds": grace_seconds})
