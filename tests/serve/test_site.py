"""Where a server listens, and what its callers can cost: connections are bounded, and whoever asks gets in."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import ClientSession, TCPConnector, web

from serve.test_tls import Party
from testbed import connections as testbed_connections
from wukong.app.addresses import find_address_problem, read_address
from wukong.errors import InputError
from wukong.serve import site
from wukong.serve.connections import Connections, Listener
from wukong.serve.site import format_address, serve
from wukong.serve.tls import CertificateFiles


def an_app() -> web.Application:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(text="ok")

    app = web.Application()
    app.router.add_get("/healthz", answer)
    return app


@asynccontextmanager
async def served(
    host: str = "127.0.0.1", most: int = 256, tls: ssl.SSLContext | None = None
) -> AsyncIterator[tuple[int, Connections, list[int]]]:
    dropped: list[int] = []
    connections = Connections(most, lambda: dropped.append(1))
    async with AsyncExitStack() as stack:
        closing = await stack.enter_async_context(AsyncExitStack())
        port = await serve(stack, an_app(), host, 0, tls, connections)
        closing.push_async_callback(testbed_connections.cut, port)
        yield port, connections, dropped


async def ask(host: str, port: int, tls: ssl.SSLContext | None = None) -> int:
    url = f"{'https' if tls else 'http'}://{format_address(host, port)}/healthz"
    async with ClientSession(connector=TCPConnector(ssl=tls or False)) as session, session.get(url) as response:
        return response.status


async def until(count: int, connections: Connections) -> None:
    async with asyncio.timeout(60):
        while len(connections) != count:
            await asyncio.sleep(0.005)


has_ipv6 = pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this machine has no IPv6")


@has_ipv6
@pytest.mark.parametrize("host", ["", "::"])
async def test_everywhere_is_both_families_on_one_port(host: str) -> None:
    async with served(host) as (port, _, _):
        assert [await ask("127.0.0.1", port), await ask("::1", port)] == [200, 200]


def test_a_connection_of_a_process_without_standard_input_is_forgotten_too() -> None:
    """Its descriptor may be 0."""
    connections = Connections(4)
    with Listener(connections, socket.AF_INET) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        with socket.create_connection(listener.getsockname()):
            standard_input = os.dup(0)
            os.close(0)
            try:
                connection, _ = listener.accept()
                assert (connection.fileno(), len(connections)) == (0, 1)
                connection.close()
                connection.close()
                assert len(connections) == 0
            finally:
                os.dup2(standard_input, 0)
                os.close(standard_input)


@has_ipv6
async def test_an_address_of_ipv6_can_be_named() -> None:
    async with served("::1") as (port, _, _):
        assert await ask("::1", port) == 200


async def test_a_machine_without_ipv6_listens_on_what_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    listen = site._listen

    def without_ipv6(family: int, *rest: object, **options: bool) -> object:
        if family == socket.AF_INET6:
            raise OSError(97, "Address family not supported by protocol")
        return listen(family, *rest, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(site, "_listen", without_ipv6)
    async with served("") as (port, _, _):
        assert await ask("127.0.0.1", port) == 200


@has_ipv6
async def test_a_port_in_use_is_told_with_brackets() -> None:
    async with served("::1") as (port, _, _), AsyncExitStack() as stack:
        with pytest.raises(InputError, match=rf"^\[::1\]:{port}: cannot listen there"):
            await serve(stack, an_app(), "::1", port)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:8080", ("127.0.0.1", 8080)),
        (":8080", ("", 8080)),
        ("8080", ("", 8080)),
        ("[::1]:8080", ("::1", 8080)),
        ("[::]:0", ("::", 0)),
        ("name:80", ("name", 80)),
        ("name:65535", ("name", 65535)),
    ],
)
def test_an_address_is_read_as_it_is_written(text: str, address: tuple[str, int]) -> None:
    assert find_address_problem(text) == ""
    assert read_address(text) == address


@pytest.mark.parametrize(
    "text",
    [
        "",
        ":",
        "here",
        "a:b",
        "a:65536",
        "a:99999",
        "a:000080",
        "a:-1",
        "a:²",
        "a:٣",
        "a:" + "9" * 5000,
        "::1:80",
        "fd00::5:8443",
    ],
)
def test_an_address_that_is_none_is_refused(text: str) -> None:
    assert "expected" in find_address_problem(text)


async def test_connections_that_ask_nothing_make_room_for_one_that_does() -> None:
    async with served(most=8) as (port, connections, dropped):
        streams = [await asyncio.open_connection("127.0.0.1", port) for _ in range(40)]
        assert await ask("127.0.0.1", port) == 200
        assert len(connections) <= 8
        assert len(dropped) >= 32
        assert [await reader.read() for reader, _ in streams[:30]] == [
            b""
        ] * 30  # closed by the server, the oldest first
        for _, writer in streams:
            writer.close()
        await until(0, connections)


async def test_whoever_asks_keeps_its_connection_while_others_come_and_say_nothing() -> None:
    async with served(most=8) as (port, _, dropped):
        connector = TCPConnector(limit=1)
        async with ClientSession(f"http://127.0.0.1:{port}", connector=connector) as session:
            assert (await session.get("/healthz")).status == 200
            used = [entry for idle in connector._conns.values() for entry in idle]
            silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(30)]
            for _ in range(3):
                assert (await session.get("/healthz")).status == 200
            assert len(dropped) >= 20
            assert [entry[0] for idle in connector._conns.values() for entry in idle] == [entry[0] for entry in used]
            for _, writer in silent:
                writer.close()


async def test_among_those_that_ask_the_one_silent_for_longest_goes() -> None:
    request = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
    async with served(most=3) as (port, _, dropped):
        streams = []
        for _ in range(4):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(request)
            assert (await reader.readline()).startswith(b"HTTP/1.1 200")
            streams.append((reader, writer))
        assert len(dropped) == 1
        assert (await asyncio.wait_for(streams[0][0].read(), 10)).endswith(b"ok")  # the end of the first
        assert not streams[1][0].at_eof()
        for _, writer in streams:
            writer.close()


async def test_handshakes_that_never_end_keep_no_client_out_and_are_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site, "HANDSHAKE_SECONDS", 0.5)
    ours = Party(tmp_path / "ours")
    tls = CertificateFiles(*(ours.folder / name for name in ("server.crt", "server.key", "ca.crt"))).build_context()
    async with served(most=4, tls=tls) as (port, connections, dropped):
        streams = [await asyncio.open_connection("127.0.0.1", port) for _ in range(20)]
        assert await ask("127.0.0.1", port, ours.client(believes=ours)) == 200
        assert len(dropped) >= 16
        await until(0, connections)
        for _, writer in streams:
            writer.close()
