"""A real API server behind the port `wukong.ports.Cluster`. Speaks JSON through http.py and decodes into structs.

    async with Kube(load()) as kube:
        web = await kube.get(DEPLOYMENTS, Key("shop", "web"), Deployment)

Every method is one request and repeats nothing: what to do about a Conflict, a TooManyRequests or an OutcomeUnknown is
for the caller to decide: list_watch.py for reading, the runtime for writes.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from typing import Any, Generic, Self, TypeVar, cast

import msgspec

from wukong.api.json_text import is_whole, members_of, split_container
from wukong.api.kinds import PODS
from wukong.api.meta import Object
from wukong.api.resources import Key, Resource
from wukong.api.unreadable import (
    READ_ERRORS,
    Unreadable,
    decode_json,
    decoder_of,
    describe_read_error,
    is_too_large,
    read_json,
)
from wukong.cluster.api_status import build_error
from wukong.cluster.credentials import Credentials
from wukong.cluster.http import STALL_SECONDS, Http
from wukong.errors import ClusterError, OutcomeUnknown
from wukong.ports import EVERYTHING, FIELD_MANAGER, Document, Event, EventType, Page, PatchBody, Propagation, Selection

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
    """Without defaults: a text that lacks these is no list, and must not be taken for an empty one."""

    metadata: _ListMeta
    items: list[T] | None  # Go writes null for none


class _Line(msgspec.Struct):
    """One line of a watch. The object stays undecoded at first: an ERROR's is a Status, whose `status` is a string."""

    type: str
    object: msgspec.Raw


class _Meta(msgspec.Struct, rename="camel"):
    resource_version: str = ""


class _Versioned(msgspec.Struct):
    metadata: _Meta


class _HeadMeta(msgspec.Struct, rename="camel", frozen=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class _Head(msgspec.Struct):
    """What is read of a document before anybody looks at the rest."""

    metadata: _HeadMeta = _HeadMeta()


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
        answer = decode(await self._http.send("GET", path), read, path)
        if isinstance(answer, dict):
            _check_head(answer, path)
        return answer

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
        return _decode_page(answer, read, path)

    async def watch(
        self, resource: Resource, read: type[T], selection: Selection = EVERYTHING, *, resource_version: str
    ) -> AsyncGenerator[Event[T] | Event[Unreadable], None]:
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
        params |= {"dryRun": "All"} if patch.is_dry_run else {}
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

    async def scale(
        self, resource: Resource, key: Key, replicas: int, *, resource_version: str = "", manager: str = FIELD_MANAGER
    ) -> None:
        body: Document = {"spec": {"replicas": replicas}}
        body |= {"metadata": {"resourceVersion": resource_version}} if resource_version else {}
        await self.patch(resource, key, PatchBody("merge", body, manager=manager), "scale")

    async def version(self) -> str:
        """Return the server's version, such as v1.35.8."""
        return str(decode(await self._http.send("GET", "/version"), dict, "/version").get("gitVersion", ""))

    async def _write(self, method: str, path: str, body: object, **options: Any) -> Document:
        """The object as written; of one that cannot be read, its metadata: what was asked for has happened.

        Raises OutcomeUnknown where the answer is no object at all: nobody knows who gave it.
        """
        answer = await self._http.send(method, path, body, **options)
        try:
            try:
                document = decode_json(answer, dict)
            except RecursionError:
                document = {"metadata": decode(members_of(answer).get("metadata", b"{}"), dict, path)}
            except READ_ERRORS:
                document = decode(answer, dict, path)  # raises what is wrong
            _check_head(document, path)
        except ClusterError as error:
            raise OutcomeUnknown(str(error), reason="AnswerUnreadable") from None
        return document


def decode(data: bytes | msgspec.Raw, read: type[T], place: str) -> T:
    """Decode an answer into a struct or dict. Raises ClusterError if it cannot be read."""
    try:
        return decode_json(data, read)
    except READ_ERRORS as error:
        if isinstance(error, msgspec.DecodeError) and not isinstance(error, msgspec.ValidationError):
            message = f"the answer for {place} is not JSON: {error}. Is the address an API server's?"
        else:
            message = f"the answer for {place} is not what we expect: {describe_read_error(error, bytes(data))}"
        raise ClusterError(message) from None


def _check_head(document: Document, place: str) -> None:
    """Raises ClusterError if the metadata of a document is none, or its texts are none."""
    try:
        msgspec.convert(document, _Head)
    except msgspec.ValidationError as error:
        message = f"the answer for {place} is not what we expect: {describe_read_error(error)}"
        raise ClusterError(message) from None


_list_decoder = msgspec.json.Decoder(_List[msgspec.Raw])
_line_decoder = msgspec.json.Decoder(_Line)


def _decode_page(data: bytes, read: type[T], place: str) -> Page[T]:
    """Decode a list in one go, or, where one of its items cannot be read, item by item.

    Raises ClusterError where it is no list: taken for an empty one, it would take every object from the mirror.
    """
    return _decode_whole(data, read) or _decode_items(data, read, place)


def _decode_whole(data: bytes, read: type[T]) -> Page[T] | None:
    """None if an item may be unreadable, or too large to be read. Documents are always read one by one: their depth is
    to be bounded."""
    if cast(Any, read) is dict or is_too_large(data, read):
        return None
    try:
        whole = cast("_List[T]", decoder_of(_List[read]).decode(data))  # type: ignore[valid-type]
    except READ_ERRORS:
        return None
    items = whole.items or []
    if any(isinstance(item, Object) and not item.metadata.name for item in items):
        return None
    return Page(items, whole.metadata.resource_version, whole.metadata.token)


def _decode_items(data: bytes, read: type[T], place: str) -> Page[T]:
    envelope = _split_list(data, place)
    page: Page[T] = Page([], envelope.metadata.resource_version, envelope.metadata.token)
    for item in envelope.items or ():
        subject = read_json(item, read)
        if isinstance(subject, Unreadable):
            page.unreadable.append(subject)
        else:
            page.items.append(subject)
    return page


def _split_list(data: bytes, place: str) -> _List[msgspec.Raw]:
    try:
        return _list_decoder.decode(data)
    except RecursionError:  # not even skipping an item succeeds
        return _split_deep_list(data, place)
    except READ_ERRORS:
        return decode(data, _List[msgspec.Raw], place)  # raises what is wrong


def _split_deep_list(data: bytes, place: str) -> _List[msgspec.Raw]:
    """The same for a list with an item that is nested too deeply even to be skipped. As strict about all the rest."""
    members = members_of(data) if is_whole(data) else {}
    if not {"metadata", "items"} <= members.keys():
        raise ClusterError(f"the answer for {place} is no list, or not all of it. Is the address an API server's?")
    items = [msgspec.Raw(item) for item in split_container(members["items"])]
    for item in items:
        try:
            decoder_of(msgspec.Raw).decode(item)
        except RecursionError:
            continue
        except READ_ERRORS:
            decode(item, msgspec.Raw, place)  # raises what is wrong
    return _List(decode(members["metadata"], _ListMeta, place), items)


def _decode_event(line: bytes, read: type[T], resource: Resource) -> Event[T] | Event[Unreadable]:
    place = f"a watch of {resource.plural}"
    watch_line = _decode_line(line, place)
    if watch_line.type == "ERROR":
        raise build_error(0, watch_line.object)
    if watch_line.type == "BOOKMARK":  # its spec is empty, which a struct need not accept
        version = decode(watch_line.object, _Versioned, place).metadata.resource_version
        head = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"resourceVersion": version}}
        return Event("BOOKMARK", msgspec.convert(head, read))
    if watch_line.type not in _CHANGES:
        raise ClusterError(f"{place} said something that is no event: its type is {watch_line.type!r:.100}")
    subject = read_json(watch_line.object, read)
    event_type = cast(EventType, watch_line.type)
    return cast("Event[T] | Event[Unreadable]", Event(event_type, subject))


_CHANGES = ("ADDED", "MODIFIED", "DELETED")
_USUAL_LINE = re.compile(rb'\{"type":"([A-Z]+)","object":(\{.*\})\}\s*', re.DOTALL)  # as every API server writes it


def _decode_line(line: bytes, place: str) -> _Line:
    try:
        try:
            return _line_decoder.decode(line)
        except RecursionError:  # not even skipping the object succeeds
            if match := _USUAL_LINE.fullmatch(line):
                return _Line(match[1].decode(), msgspec.Raw(match[2]))
            members = members_of(line)
            event_type = msgspec.json.decode(members.get("type", b"null"), type=str)
            return _Line(event_type, msgspec.Raw(members.get("object", b"null")))
    except READ_ERRORS as error:
        raise ClusterError(f"{place} said something that is no event: {error}") from None


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
