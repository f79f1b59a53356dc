"""An application on a port, plain or with TLS, until its stack is left. app.live and the tests call it."""

from __future__ import annotations

import ssl
from contextlib import AsyncExitStack

from aiohttp import web

from wukong.errors import InputError

KEEP_ALIVE_SECONDS = 120.0  # longer than Go keeps an idle connection (90 s), or it would write into a closing one


async def serve(
    stack: AsyncExitStack, app: web.Application, host: str, port: int, tls: ssl.SSLContext | None = None
) -> int:
    """The port it listens on: a free one where 0 was asked for."""
    # Nobody who asks us compresses; a body that is broken while it is unpacked would upset aiohttp itself.
    runner = web.AppRunner(app, access_log=None, keepalive_timeout=KEEP_ALIVE_SECONDS, auto_decompress=False)
    await runner.setup()
    stack.push_async_callback(runner.cleanup)
    try:
        await web.TCPSite(runner, host, port, ssl_context=tls).start()
    except OSError as error:
        raise InputError(f"{host}:{port}: cannot listen there: {error.strerror or error}.") from None
    listening: int = runner.addresses[0][1]
    return listening
