"""A small asynchronous client of the API server, for the hollow kubelets and the tests of the test bed only.

It is not what Wukong speaks to a cluster with: that is under test here, so nothing of it is used.
"""

from __future__ import annotations

import asyncio
import base64
import ssl
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any, Self

import aiohttp
import msgspec
import yaml

from testbed.errors import TestbedError

Json = dict[str, Any]

PATCHES = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
}
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast, and every test has its clients
PAGE = 500
CONNECTIONS = 64
RETRY_SECONDS = 0.5
DEADLINE_SECONDS = (
    120.0  # of what must come: only where it does not is so long waited, and a busy machine takes its time
)
UNREACHABLE = (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError, TimeoutError)


class ApiError(TestbedError):
    """The API server said no. `status` is the HTTP code, `reason` the Kubernetes word for it."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        self.status, self.reason = status, reason
        super().__init__(f"{status} {reason}: {message}")


class Event(msgspec.Struct):
    """One line of a watch, its object not yet decoded: ERROR lines carry a Status instead."""

    type: str
    object: msgspec.Raw


class Listed(msgspec.Struct):
    """A complete list: whatever is not in it does not exist any more."""

    items: list[msgspec.Raw]


class ListMeta(msgspec.Struct):
    resource_version: str = msgspec.field(name="resourceVersion", default="")
    more: str = msgspec.field(name="continue", default="")


class Page(msgspec.Struct):
    metadata: ListMeta
    items: list[msgspec.Raw] | None = None


class Versioned(msgspec.Struct):
    metadata: ListMeta


class Client:
    """One API server, one identity. Paths are written out: `/api/v1/namespaces/default/pods`."""

    def __init__(self, server: str, context: ssl.SSLContext) -> None:
        self.server = server
        self.context = context
        self.session: aiohttp.ClientSession | None = None

    @classmethod
    def of(cls, kubeconfig: Path) -> Client:
        """As the current context of a kubeconfig whose data is inline, such as the test bed writes."""
        config = yaml.load(kubeconfig.read_text("utf-8"), Loader=LOADER)
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        context = ssl.create_default_context(cadata=authority)
        with tempfile.NamedTemporaryFile() as pair:  # Python reads a client's certificate only from a file
            pair.write(base64.b64decode(user["client-certificate-data"]) + base64.b64decode(user["client-key-data"]))
            pair.flush()
            context.load_cert_chain(pair.name)
        return cls(cluster["server"], context)

    async def __aenter__(self) -> Self:
        connector = aiohttp.TCPConnector(ssl=self.context, limit=CONNECTIONS)
        self.session = aiohttp.ClientSession(self.server, connector=connector)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self.session is not None
        await self.session.close()

    async def get(self, path: str, **params: str) -> Json:
        return as_json(await self.send("GET", path, params=params))

    async def create(self, path: str, body: object) -> Json:
        return as_json(await self.send("POST", path, body))

    async def replace(self, path: str, body: object) -> Json:
        return as_json(await self.send("PUT", path, body))

    async def patch(self, path: str, body: object, kind: str = "merge") -> Json:
        return as_json(await self.send("PATCH", path, body, content_type=PATCHES[kind]))

    async def delete(self, path: str, *, grace_seconds: int | None = None, uid: str | None = None) -> None:
        """Delete it; with a `uid` only that object and not its successor of the same name."""
        options: Json = {"apiVersion": "v1", "kind": "DeleteOptions"}
        options |= {} if grace_seconds is None else {"gracePeriodSeconds": grace_seconds}
        options |= {} if uid is None else {"preconditions": {"uid": uid}}
        await self.send("DELETE", path, options)

    async def send(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        params: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> bytes:
        assert self.session is not None, "use the client in an `async with`"
        data = None if body is None else msgspec.json.encode(body)
        headers = {"Content-Type": content_type}
        async with self.session.request(method, path, data=data, params=params, headers=headers) as response:
            answer = await response.read()
        if response.status >= 400:
            raise refusal(response.status, answer)
        return answer

    async def list_all(self, path: str, **params: str) -> tuple[list[msgspec.Raw], str]:
        """Everything there is, page by page, and the resourceVersion from which a watch goes on."""
        items: list[msgspec.Raw] = []
        more = {"limit": str(PAGE)}
        while True:
            page = msgspec.json.decode(await self.send("GET", path, params={**params, **more}), type=Page)
            items += page.items or []
            if not page.metadata.more:
                return items, page.metadata.resource_version
            more["continue"] = page.metadata.more

    async def watch(self, path: str, version: str, **params: str) -> AsyncIterator[Event]:
        """Events after `version` until the server ends the watch. An ERROR event is raised."""
        assert self.session is not None, "use the client in an `async with`"
        query = {**params, "watch": "1", "allowWatchBookmarks": "1", "resourceVersion": version}
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=10)
        async with self.session.get(path, params=query, timeout=timeout) as response:
            if response.status >= 400:
                raise refusal(response.status, await response.read())
            rest = b""
            async for piece in response.content.iter_any():
                *lines, rest = (rest + piece).split(b"\n")
                for line in lines:
                    event = msgspec.json.decode(line, type=Event)
                    if event.type == "ERROR":
                        raise refusal(int(msgspec.json.decode(event.object).get("code", 500)), bytes(event.object))
                    yield event

    async def follow(self, path: str, **params: str) -> AsyncIterator[Listed | Event]:
        """The list, then every change, for ever: survives a restart of the server and a version grown too old."""
        version = ""
        while True:
            try:
                if not version:
                    items, version = await self.list_all(path, **params)
                    yield Listed(items)
                async for event in self.watch(path, version, **params):
                    version = msgspec.json.decode(event.object, type=Versioned).metadata.resource_version
                    if event.type != "BOOKMARK":
                        yield event
            except ApiError as error:
                if error.status not in (410, 429) and error.status < 500:
                    raise
                version = "" if error.status == 410 else version
                await asyncio.sleep(RETRY_SECONDS)
            except UNREACHABLE:
                await asyncio.sleep(RETRY_SECONDS)

    async def wait_until(self, path: str, is_so: Callable[[Json], bool], seconds: float = DEADLINE_SECONDS) -> Json:
        """The object at `path` once it is as wanted; it may not exist yet. Nothing is polled."""
        folder, _, name = path.rpartition("/")
        last: Json = {}
        try:
            async with asyncio.timeout(seconds):
                async for change in self.follow(folder, fieldSelector=f"metadata.name={name}"):
                    for raw in change.items if isinstance(change, Listed) else [change.object]:
                        last = as_json(raw)
                        if is_so(last) and not (isinstance(change, Event) and change.type == "DELETED"):
                            return last
        except TimeoutError:
            shown = msgspec.json.encode(last.get("status") or last).decode()
            raise TestbedError(f"{path} was not as expected within {seconds:.0f} s; last seen: {shown}") from None
        raise AssertionError("follow never ends")

    async def wait_until_gone(self, path: str, seconds: float = DEADLINE_SECONDS) -> None:
        folder, _, name = path.rpartition("/")
        try:
            async with asyncio.timeout(seconds):
                async for change in self.follow(folder, fieldSelector=f"metadata.name={name}"):
                    if change.items == [] if isinstance(change, Listed) else change.type == "DELETED":
                        return
        except TimeoutError:
            raise TestbedError(f"{path} was still there after {seconds:.0f} s") from None


def as_json(answer: bytes | msgspec.Raw) -> Json:
    decoded: Json = msgspec.json.decode(answer)
    return decoded


def refusal(status: int, answer: bytes) -> ApiError:
    try:
        said = as_json(answer)
    except msgspec.DecodeError:
        return ApiError(status, "", answer[:500].decode(errors="replace"))
    return ApiError(status, str(said.get("reason", "")), str(said.get("message", "")))
