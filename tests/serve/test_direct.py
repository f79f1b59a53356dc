"""Plain requests are answered without aiohttp, all others by it, and nobody can tell by the answers."""

from __future__ import annotations

import asyncio
import json
import random
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from aiohttp import web

from serve.test_tls import Party
from wukong.placement.slices import Slices
from wukong.serve import site
from wukong.serve.connections import Connections
from wukong.serve.direct import HANDLERS, MOST_BODY_BYTES, Answer, DirectHandler
from wukong.serve.site import serve
from wukong.serve.tls import CertificateFiles
from wukong.serve.turns import take_turns


class Echo:
    """Answers what it is sent. A body of "wait" is answered when `go_on` is set, "broken" never."""

    def __init__(self, body_seconds: float) -> None:
        self.body_seconds = body_seconds
        self.go_on = asyncio.Event()
        self.waits = asyncio.Event()

    def answer_in_slices(self, body: bytes, began: float) -> Slices[Answer]:
        while body == b"wait" and not self.go_on.is_set():
            self.waits.set()
            yield
        if body == b"broken":
            for _ in self._ponder():
                yield
            raise ZeroDivisionError("a mistake of ours")
        return Answer(200, json.dumps({"got": body.decode("latin-1")}).encode())

    def _ponder(self) -> Iterator[None]:
        self.waits.set()
        while not self.go_on.is_set():
            yield

    def answer_unsent(self, began: float) -> Answer:
        return Answer(408, b'{"error":"late"}')

    async def handle(self, request: web.Request) -> web.Response:
        answer = await take_turns(self.answer_in_slices(await request.read(), 0.0))
        return web.Response(status=answer.status, body=answer.body, content_type="application/json")


class Reply(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def is_direct(self) -> bool:
        """aiohttp says who it is."""
        return "server" not in self.headers


class Site:
    def __init__(self, port: int, echo: Echo, connections: Connections, tls: ssl.SSLContext | None) -> None:
        self.port, self.echo, self.connections, self._tls = port, echo, connections, tls

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, ssl=self._tls)
        try:
            yield reader, writer
        finally:
            writer.close()

    async def send(self, *pieces: bytes) -> Reply:
        async with self.connect() as (reader, writer):
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
            return await read_reply(reader)


@asynccontextmanager
async def a_site(
    body_seconds: float = 10.0, tls: ssl.SSLContext | None = None, client_tls: ssl.SSLContext | None = None
) -> AsyncIterator[Site]:
    echo, connections = Echo(body_seconds), Connections(64)
    app = web.Application(client_max_size=1 << 20)
    app.router.add_post("/echo", echo.handle)
    handlers: dict[str, DirectHandler] = {"/echo": echo}
    app[HANDLERS] = handlers
    async with AsyncExitStack() as stack:
        yield Site(await serve(stack, app, "127.0.0.1", 0, tls, connections), echo, connections, client_tls)


def a_request(body: bytes = b"hello", *headers: str, path: str = "/echo", length: str | None = None) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: x", f"Content-Length: {len(body) if length is None else length}", *headers]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


async def read_reply(reader: asyncio.StreamReader) -> Reply:
    async with asyncio.timeout(60):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        first, *lines = head.strip().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        return Reply(int(first.split()[1]), headers, await reader.readexactly(int(headers["content-length"])))


@pytest.mark.parametrize(
    "request_",
    [
        a_request(),
        a_request(b""),
        a_request(b"x" * MOST_BODY_BYTES),
        a_request(b"hello", path="/echo?timeout=2s"),
        a_request(b"hello", "Accept: application/json, */*", "Accept-Encoding: gzip", "User-Agent: kube-apiserver"),
        a_request(b"hello", "X-Empty:", "X-Spaces: \t a \t "),
    ],
)
async def test_plain_requests_are_answered_directly_as_aiohttp_would(request_: bytes) -> None:
    async with a_site() as echo:
        direct = await echo.send(request_)
        other = await echo.send(request_.replace(b"Host: x\r\n", b"Host: x\r\nConnection: keep-alive\r\n"))
        assert (direct.is_direct, other.is_direct) == (True, False)
        assert (direct.status, direct.body) == (other.status, other.body)
        assert direct.headers["content-type"] == other.headers["content-type"]
        assert direct.headers["date"]


CHUNKED = b"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (CHUNKED, 200),
        (a_request(b"x" * (MOST_BODY_BYTES + 1)), 200),
        (a_request(b"hello", "X-Long: " + "x" * 5000), 200),
        (a_request().replace(b"HTTP/1.1", b"HTTP/1.0"), 200),
        (a_request(b"hello", "X-Other: \xe9"), 200),
        (a_request(b"", path="/other"), 404),
        (a_request(b"", path="/Echo"), 404),
        (a_request(b"").replace(b"POST", b"GET"), 405),
        (a_request(b"hello", "Content-Length: 5"), 400),
        (a_request(b"hello", "Content-Length: 4"), 400),
        (a_request(b"hello", "Transfer-Encoding: chunked"), 400),
        (a_request(b"hello", length="+5"), 400),
        (a_request(b"hello", length="-5"), 400),
        (a_request(b"hello", length="5 5"), 400),
        (a_request(b"hello", length="x"), 400),
        (a_request(b"hello", "X-Fold: a\r\n b"), 400),
        (a_request(b"hello", "X Space: a"), 400),
        (a_request(b"hello", "X-Nul: \0"), 400),
        (a_request(b"hello", "no colon"), 400),
        (b"nonsense\r\n\r\n", 400),
    ],
)
async def test_all_others_are_aiohttps(request_: bytes, status: int) -> None:
    async with a_site() as echo:
        reply = await echo.send(request_)
        assert (reply.status, reply.is_direct) == (status, False)
        assert (await echo.send(a_request())).is_direct, "other connections go on"


async def test_who_asks_whether_to_send_the_body_is_told() -> None:
    async with a_site() as echo, echo.connect() as (reader, writer):
        head, _, body = a_request(b"hello", "Expect: 100-continue").partition(b"\r\n\r\n")
        writer.write(head + b"\r\n\r\n")
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100")
        writer.write(body)
        assert (await read_reply(reader)).status == 200


@pytest.mark.parametrize("seed", range(8))
async def test_requests_come_in_any_pieces_and_are_answered_in_order(seed: int) -> None:
    rng = random.Random(seed)
    bodies = [rng.randbytes(rng.choice((0, 1, 7, 4000, 60_000))).hex().encode()[:60_000] for _ in range(12)]
    data = b"".join(map(a_request, bodies)) + CHUNKED + a_request(b"last")
    async with a_site() as echo, echo.connect() as (reader, writer):

        async def write() -> None:
            start = 0
            while start < len(data):
                end = start + rng.choice((1, 50, 3000, 40_000, 200_000))
                writer.write(data[start:end])
                await writer.drain()
                if rng.random() < 0.5:
                    await asyncio.sleep(0)
                start = end

        writing = asyncio.create_task(write())
        answers = [json.loads((await read_reply(reader)).body)["got"].encode() for _ in range(len(bodies) + 2)]
        await writing
        assert answers == [*bodies, b"hello", b"last"]


async def test_a_body_that_does_not_come_is_given_up_and_the_connection_closed() -> None:
    async with a_site(body_seconds=0.05) as echo, echo.connect() as (reader, writer):
        writer.write(a_request(b"hello")[:-1])
        assert (await read_reply(reader)).status == 408
        assert await reader.read() == b""


async def test_a_long_decision_lets_others_be_answered_and_what_was_sent_behind_it_waits() -> None:
    async with a_site() as echo, echo.connect() as (reader, writer):
        writer.write(a_request(b"wait") + a_request(b"behind"))
        await echo.echo.waits.wait()
        assert (await echo.send(a_request())).status == 200
        echo.echo.go_on.set()
        assert [json.loads((await read_reply(reader)).body)["got"] for _ in range(2)] == ["wait", "behind"]


async def test_who_hangs_up_during_a_long_decision_hurts_nobody() -> None:
    async with a_site() as echo:
        async with echo.connect() as (_, writer):
            writer.write(a_request(b"wait"))
            await echo.echo.waits.wait()
        assert (await echo.send(a_request())).status == 200
        echo.echo.go_on.set()
        assert (await echo.send(a_request())).status == 200


async def test_a_mistake_of_ours_closes_the_connection_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async with a_site() as echo, echo.connect() as (reader, writer):
        writer.write(a_request(b"broken"))
        await echo.echo.waits.wait()
        echo.echo.go_on.set()
        assert await reader.read() == b""
        assert "a request failed" in caplog.text
        assert (await echo.send(a_request())).status == 200


async def test_who_reads_no_answers_is_asked_nothing_more_and_loses_none() -> None:
    count, body = 400, b"x" * 60_000
    async with a_site() as echo, echo.connect() as (reader, writer):

        async def write() -> None:
            for _ in range(count):
                writer.write(a_request(body))
                await writer.drain()

        writing = asyncio.create_task(write())
        assert (await echo.send(a_request())).status == 200
        assert not writing.done(), "24 MB do not fit between the two"
        for _ in range(count):
            assert len((await read_reply(reader)).body) == len(b'{"got": ""}') + len(body)
        await writing


async def test_a_connection_that_is_not_used_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site, "KEEP_ALIVE_SECONDS", 0.05)
    async with a_site() as echo, echo.connect() as (reader, writer):
        writer.write(a_request())
        assert (await read_reply(reader)).status == 200
        assert await asyncio.wait_for(reader.read(), 30) == b""


async def test_at_the_end_what_is_under_way_is_answered_and_what_is_idle_closed() -> None:
    async with AsyncExitStack() as outside:
        async with a_site() as echo:
            idle, busy, sending = [await outside.enter_async_context(echo.connect()) for _ in range(3)]
            idle[1].write(a_request())
            assert (await read_reply(idle[0])).status == 200
            sending[1].write(a_request(b"half")[:-2])
            busy[1].write(a_request(b"wait"))
            await echo.echo.waits.wait()
            asyncio.get_running_loop().call_later(0.05, echo.echo.go_on.set)
            asyncio.get_running_loop().call_later(0.05, sending[1].write, b"lf")
        assert json.loads((await read_reply(busy[0])).body)["got"] == "wait"
        assert json.loads((await read_reply(sending[0])).body)["got"] == "half"
        for reader, _ in (idle, busy, sending):
            assert await reader.read() == b""


async def test_both_ways_work_over_tls(tmp_path: Path) -> None:
    ours = Party(tmp_path / "ours")
    tls = CertificateFiles(*(ours.folder / name for name in ("server.crt", "server.key", "ca.crt"))).build_context()
    async with a_site(tls=tls, client_tls=ours.client(believes=ours)) as echo, echo.connect() as (reader, writer):
        request = a_request(b"y" * 60_000)
        writer.write(request[:100])
        await writer.drain()
        writer.write(request[100:] + a_request(b"more") + CHUNKED)
        replies = [await read_reply(reader) for _ in range(3)]
        assert [reply.is_direct for reply in replies] == [True, True, False]
        assert len(replies[0].body) > 60_000


async def test_a_request_counts_for_its_connection() -> None:
    async with a_site() as echo, echo.connect() as (reader, writer):
        writer.write(a_request())
        await read_reply(reader)
        assert len(echo.connections._used) == 1
        assert len(echo.connections._silent) == 0
