"""A scripted API server on the loopback: gives a Kube the answers of a test, in order, and records its requests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from aiohttp import web
from aiohttp.test_utils import TestServer

from wukong.cluster.credentials import Credentials
from wukong.cluster.http import STALL_SECONDS
from wukong.cluster.kube import Kube
from wukong.cluster.kubeconfig import ClusterEntry, Login, UserEntry

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Asked(msgspec.Struct):
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any = None


class Script:
    def __init__(self, *answers: Answer) -> None:
        self.answers, self.asked = list(answers), list[Asked]()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        data = await request.read()
        body = msgspec.json.decode(data) if data else None
        self.asked.append(Asked(request.method, request.path, dict(request.query), dict(request.headers), body))
        assert self.answers, f"one request too many: {self.asked[-1]}"
        return await self.answers.pop(0)(request)


@asynccontextmanager
async def served(
    *answers: Answer, user: UserEntry | None = None, stall_seconds: float = STALL_SECONDS
) -> AsyncIterator[tuple[Kube, Script]]:
    """A Kube that speaks to a server with this script."""
    script = Script(*answers)
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", script.answer)
    async with TestServer(app) as server:
        cluster = ClusterEntry(server=str(server.make_url("/")))
        login = Login(place="test", cluster=cluster, user=user or UserEntry())
        async with Kube(Credentials(login), stall_seconds=stall_seconds) as kube:
            yield kube, script


def says(body: object, code: int = 200, **headers: str) -> Answer:
    """`body` as JSON, or as it is if it is bytes."""
    data = body if isinstance(body, bytes) else msgspec.json.encode(body)

    async def answer(request: web.Request) -> web.StreamResponse:
        header_fields = {name.replace("_", "-"): value for name, value in headers.items()}
        return web.Response(body=data, status=code, headers=header_fields, content_type="application/json")

    return answer


def refuses(code: int, reason: str = "", message: str = "no", **details: Any) -> Answer:
    status = {"kind": "Status", "status": "Failure", "reason": reason, "message": message, "code": code}
    return says({**status, "details": details}, code)


async def hangs_up(request: web.Request) -> web.StreamResponse:
    """The request arrived, the answer never does."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


def waits(over: asyncio.Event) -> Answer:
    """Answers when the event is set."""

    async def answer(request: web.Request) -> web.StreamResponse:
        await over.wait()
        return web.Response()

    return answer


def streams(*pieces: bytes, cut: bool = False, until: asyncio.Event | None = None) -> Answer:
    """The pieces of a watch; then it ends, at once or when told to, or the connection breaks."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        response.enable_chunked_encoding()
        await response.prepare(request)
        for piece in pieces:
            await response.write(piece)
        if until:
            await until.wait()
        if cut:
            assert request.transport is not None
            request.transport.close()
            return response
        await response.write_eof()
        return response

    return answer


def a_line(kind: str, name: str, version: int, **more: Any) -> bytes:
    subject = {"metadata": {"name": name, "resourceVersion": str(version)}, **more}
    return msgspec.json.encode({"type": kind, "object": subject}) + b"\n"


def a_list(*names: str, version: int, token: str = "") -> dict[str, Any]:
    items = [{"metadata": {"name": name, "resourceVersion": str(version)}} for name in names]
    return {"metadata": {"resourceVersion": str(version), "continue": token}, "items": items}
