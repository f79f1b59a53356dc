"""An application on a port, plain or with TLS, until its stack is left. app.live and the tests call it.

Whoever calls costs a bounded amount: connections are counted, a handshake has seconds to end, and what is not asked for
by our own clients (compressed bodies) is refused.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from collections.abc import Callable
from contextlib import AsyncExitStack

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from wukong.errors import InputError
from wukong.serve.connections import Connections, Listener
from wukong.serve.direct import HANDLERS, DirectServer

KEEP_ALIVE_SECONDS = 120.0  # longer than Go keeps an idle connection (90 s), or it would write into a closing one
HANDSHAKE_SECONDS = 10.0
SHUTDOWN_SECONDS = 10.0  # for requests in flight; the kubelet waits for 30
CONNECTIONS = 256  # a scheduler has one or a few
_BACKLOG = 64  # connections accepted at once: there may be so many more for a moment
_EVERYWHERE = ("", "::")


async def serve(
    stack: AsyncExitStack,
    app: web.Application,
    host: str,
    port: int,
    tls: ssl.SSLContext | None = None,
    connections: Connections | None = None,
) -> int:
    """Return the port it listens on: a free one where 0 was asked for. The host "" means every address, IPv6 or not."""
    if connections is None:
        connections = Connections(CONNECTIONS)
    app.middlewares.append(_record_requests(connections))
    # Nobody who asks us compresses; a body that is broken while it is unpacked would upset aiohttp itself.
    runner = web.AppRunner(
        app,
        access_log=None,
        keepalive_timeout=KEEP_ALIVE_SECONDS,
        auto_decompress=False,
        shutdown_timeout=SHUTDOWN_SECONDS,
    )
    await runner.setup()
    stack.push_async_callback(runner.cleanup)
    assert runner.server is not None
    build_connection: Callable[[], asyncio.BaseProtocol] = runner.server
    if handlers := app.get(HANDLERS):
        direct = DirectServer(handlers, runner.server, connections, KEEP_ALIVE_SECONDS)
        stack.push_async_callback(direct.shut_down, SHUTDOWN_SECONDS)
        build_connection = direct
    loop = asyncio.get_running_loop()
    listening = port
    try:
        for listener in await _open_listeners(host, port, connections):
            stack.callback(listener.close)
            handshake_seconds = HANDSHAKE_SECONDS if tls else None
            server = await loop.create_server(
                build_connection, sock=listener, ssl=tls, ssl_handshake_timeout=handshake_seconds, backlog=_BACKLOG
            )
            stack.callback(server.close)
            listening = listener.getsockname()[1]
    except OSError as error:
        raise InputError(f"{format_address(host, port)}: cannot listen there: {error.strerror or error}.") from None
    return listening


def format_address(host: str, port: int) -> str:
    """HOST:PORT, with brackets around an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _record_requests(connections: Connections) -> Middleware:
    @web.middleware
    async def record(request: web.Request, handler: Handler) -> web.StreamResponse:
        connection = request.get_extra_info("socket")
        if connection is not None:
            connections.record_request(connection.fileno())
        return await handler(request)

    return record


async def _open_listeners(host: str, port: int, connections: Connections) -> list[Listener]:
    """Bound sockets: one for both families where the host is "" or ::, else one for each address of the host."""
    if host in _EVERYWHERE:
        return [_listen_everywhere(port, connections)]
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    listeners: list[Listener] = []
    for family, _, _, _, address in dict.fromkeys(found):
        try:
            listeners.append(_listen(family, address, connections))
        except OSError as error:
            # localhost may have an address of a family that this machine does not have
            if error.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT) or not listeners:
                for listener in listeners:
                    listener.close()
                raise
    return listeners


def _listen_everywhere(port: int, connections: Connections) -> Listener:
    try:
        return _listen(socket.AF_INET6, ("::", port), connections, is_dual=True)
    except OSError as error:
        if error.errno not in (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL):
            raise
        return _listen(socket.AF_INET, ("0.0.0.0", port), connections)  # a kernel without IPv6


def _listen(family: int, address: tuple[object, ...], connections: Connections, *, is_dual: bool = False) -> Listener:
    listener = Listener(connections, family)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, not is_dual)
        listener.bind(address)
    except OSError:
        listener.close()
        raise
    return listener
