"""One request on a connection of its own: bodies in every form HTTP has, TLS, and nothing sent that was not meant."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest

from metadata_server import Asked, CloudServer, answer
from testbed.certificates import Authority
from wukong.cluster.single_exchange import Answer, ExchangeError, Request, exchange


class Echo(CloudServer):
    data: bytes = b""

    async def respond(self, asked: Asked) -> bytes | None:
        return self.data


async def ask(server: CloudServer, request: Request | None = None, most_bytes: int = 1000) -> Answer:
    return await exchange(request or Request("GET", f"{server.url}/a?b=c"), seconds=30, most_bytes=most_bytes)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (answer(200, b"abc"), b"abc"),
        (b"HTTP/1.0 200\r\n\r\nuntil the end", b"until the end"),
        (b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok", b"ok"),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n",
            b"abc0123456789",
        ),
        (b"HTTP/1.1 204 No Content\r\nContent-Length: 7\r\n\r\n", b""),
        (answer(404, b"x" * 1000), b"x" * 1000),
    ],
)
async def test_a_body_is_read_however_its_end_is_told(data: bytes, expected: bytes) -> None:
    async with Echo().running() as server:
        server.data = data
        assert (await ask(server)).body == expected


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (answer(200, b"x" * 1001), "more than 1000 bytes"),
        (b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 1001, "more than 1000 bytes"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3E9\r\n" + b"x" * 1001, "more than 1000 bytes"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n", "the end of a chunk"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", "half an answer"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "the length of a body"),
        (b"HTTP/2 200\r\n\r\n", "expected an HTTP answer"),
        (b"", "closed"),
    ],
)
async def test_what_is_too_large_or_broken_is_an_error(data: bytes, problem: str) -> None:
    async with Echo().running() as server:
        server.data = data
        with pytest.raises(ExchangeError, match=problem):
            await ask(server)


async def test_a_request_is_sent_as_it_was_written_down() -> None:
    async with Echo().running() as server:
        server.data = answer(200, b"", X_Name="Value")
        request = Request("PUT", f"{server.url}/a/b?c=d", [("X-One", "1")], b"body")
        assert (await ask(server, request)).headers["x-name"] == "Value"
    (asked,) = server.asked
    assert (asked.method, asked.path, asked.query, asked.body) == ("PUT", "/a/b", {"c": "d"}, b"body")
    assert asked.headers["host"] == server.url.removeprefix("http://")
    assert (asked.headers["x-one"], asked.headers["connection"]) == ("1", "close")


async def test_a_server_that_drips_is_given_up_on_in_time() -> None:
    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n")
        await reader.read()  # its head, and that is all
        writer.close()

    async with await asyncio.start_server(drip, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(ExchangeError, match=r"no answer within 0\.1 s"):
            await exchange(Request("GET", f"http://127.0.0.1:{port}/"), seconds=0.1, most_bytes=10)


async def test_tls_is_spoken_with_whom_the_authority_vouches_for_and_with_nobody_else(tmp_path: Path) -> None:
    for name in ("ours", "theirs"):
        (tmp_path / name).mkdir()
        Authority(tmp_path / name, "ca").issue("server", "wukong", addresses=["127.0.0.1"])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "ours" / "server.crt", tmp_path / "ours" / "server.key")

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer(200, b"secret"))
        writer.close()

    async with await asyncio.start_server(respond, "127.0.0.1", 0, ssl=context) as server:
        request = Request("GET", f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/")
        ours, theirs = (ssl.create_default_context(cafile=tmp_path / name / "ca.crt") for name in ("ours", "theirs"))
        assert (await exchange(request, seconds=30, most_bytes=10, tls=ours)).body == b"secret"
        with pytest.raises(ExchangeError, match="certificate"):
            await exchange(request, seconds=30, most_bytes=10, tls=theirs)
        with pytest.raises(ExchangeError, match="certificate"):
            await exchange(request, seconds=30, most_bytes=10, tls=None)
