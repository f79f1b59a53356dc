"""Metadata servers of clouds on the loopback, with their quirks: they speak HTTP byte by byte, and so can break it.

`CloudServer` is the base: it gets a request and gives the bytes of an answer, or None to cut the connection. The clouds
below hold what a test sets: a notice, an expired token, a fault for the next questions.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, Self
from urllib.parse import parse_qs, urlsplit


class Asked(NamedTuple):
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes


def answer(status: int, body: bytes = b"", **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


GARBAGE: dict[str, bytes | None] = {
    "a server error": answer(500, b"internal error"),
    "overload": answer(503),
    "throttling": answer(429),
    "not HTTP": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "nothing": None,
    "half a head": b"HTTP/1.1 200 OK\r\nContent-Le",
    "half a body": b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"action": "termi',
    "a body without end": b"HTTP/1.1 200 OK\r\n\r\n" + b"[" * 400_000,
    "a huge length": b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n",
    "no length at all": b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n",
    "a line without end": b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000,
    "headers without end": b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 500,
    "chunks that are none": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    "text": answer(200, b"<html>Welcome to the hotel</html>", Metadata_Flavor="Google"),
    "an empty body": answer(200, Metadata_Flavor="Google"),
    "not UTF-8": answer(200, b"\xff\xfe\x00{", Metadata_Flavor="Google"),
    "a list": answer(200, b"[]", Metadata_Flavor="Google"),
    "other types": answer(200, b'{"action": {}, "time": [], "noticeTime": 7, "Events": 5, "name": null}'),
    "too deep": answer(200, b"[" * 100_000, Metadata_Flavor="Google"),
    "a redirect": answer(302, Location="http://127.0.0.1:1/"),
}


class CloudServer:
    """Use it by `running`. `faults` are sent instead of the next answers; `HANG` holds one back until the end."""

    HANG = b"hang"

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.faults: list[bytes | None] = []
        self.url = ""
        self.was_asked = asyncio.Event()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Self]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        try:
            yield self
        finally:
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            first, *lines = head.rstrip().split("\r\n")
            method, target, _ = first.split(" ")
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            address = urlsplit(target)
            query = {name: values[0] for name, values in parse_qs(address.query).items()}
            asked = Asked(method, address.path, query, headers, body)
            self.asked.append(asked)
            self.was_asked.set()
            data = self.faults.pop(0) if self.faults else await self.respond(asked)
            if data == self.HANG:
                await reader.read()  # until the other side gives up
            elif data is not None:
                writer.write(data)
                await writer.drain()
        except (OSError, EOFError):
            pass  # the other side has gone
        finally:
            writer.close()

    async def respond(self, asked: Asked) -> bytes | None:
        raise NotImplementedError

    def paths(self) -> list[str]:
        return [asked.path for asked in self.asked]


class AwsServer(CloudServer):
    """IMDSv2. `token` is the only one that it believes."""

    token = "token-1"
    action: bytes | None = None
    rebalance: bytes | None = None
    header = "x-aws-ec2-metadata-token"
    documents = ("/latest/meta-data/spot/instance-action", "/latest/meta-data/events/recommendations/rebalance")

    async def respond(self, asked: Asked) -> bytes | None:
        if asked.path == "/latest/api/token":
            assert asked.method == "PUT"
            seconds = int(asked.headers[f"{self.header}-ttl-seconds"])
            return answer(200, self.token.encode()) if 1 <= seconds <= 21_600 else answer(400)
        if asked.headers.get(self.header) != self.token:
            return answer(401)
        body = dict(zip(self.documents, (self.action, self.rebalance), strict=True)).get(asked.path)
        return answer(404, b"<html>404 - Not Found</html>") if body is None else answer(200, body)

    def interrupt(self, action: str, time: str) -> None:
        self.action = json.dumps({"action": action, "time": time}).encode()


class AlibabaServer(AwsServer):
    header = "x-aliyun-ecs-metadata-token"
    documents = ("/latest/meta-data/instance/spot/termination-time", "")


class GcpServer(CloudServer):
    """Answers at once without an etag or with an old one; else when something changes, or after `timeout_sec`."""

    def __init__(self) -> None:
        super().__init__()
        self.value, self.version = "FALSE", 1
        self._changed = asyncio.Event()

    def set(self, value: str) -> None:
        self.value, self.version = value, self.version + 1
        self._changed.set()
        self._changed = asyncio.Event()

    async def respond(self, asked: Asked) -> bytes | None:
        if asked.headers.get("metadata-flavor") != "Google":
            return answer(403)
        if asked.query.get("last_etag") == str(self.version):
            try:
                async with asyncio.timeout(float(asked.query["timeout_sec"])):
                    await self._changed.wait()
            except TimeoutError:
                pass
        return answer(200, self.value.encode(), Metadata_Flavor="Google", ETag=str(self.version))


class AzureServer(CloudServer):
    """Scheduled events of a scale set, of which this machine is one. `started` are the events acknowledged."""

    name = "aks-spot-1234-vmss_3"

    def __init__(self) -> None:
        super().__init__()
        self.events: list[Any] = []
        self.started: list[str] = []

    async def respond(self, asked: Asked) -> bytes | None:
        if asked.headers.get("metadata") != "true":
            return answer(400)
        if asked.path == "/metadata/instance/compute":
            return answer(200, json.dumps({"name": self.name, "location": "westeurope"}).encode())
        if asked.method == "POST":
            self.started += [it["EventId"] for it in json.loads(asked.body)["StartRequests"]]
            return answer(200)
        return answer(200, json.dumps({"DocumentIncarnation": 2, "Events": self.events}).encode())

    def schedule(self, event_id: str = "e1", kind: str = "Preempt", **more: Any) -> None:
        event = {"EventId": event_id, "EventType": kind, "ResourceType": "VirtualMachine", "EventStatus": "Scheduled"}
        self.events.append({**event, "Resources": [self.name], "NotBefore": "Wed, 18 Nov 2026 10:02:00 GMT", **more})
