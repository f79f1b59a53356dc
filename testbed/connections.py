"""Cuts what is left of connections when an event loop is about to end.

asyncio forgets connections whose TLS handshake, or whose polite TLS ending, is not over: aiohttp's clients and servers
close theirs without waiting for it. Left alone, such a connection is reported as a leak when its memory is reclaimed,
in the middle of another test. pytest_plugin.py calls it after every `async def` test.
"""

from __future__ import annotations

import asyncio
from typing import Any


async def cut(port: int | None = None) -> None:
    """All connections of the running loop, or those to its own server on this port."""
    transports: dict[int, Any] = getattr(asyncio.get_running_loop(), "_transports", {})  # nothing public tells
    for transport in list(transports.values()):
        if port in (None, (transport.get_extra_info("sockname") or ("", 0))[1]):
            transport.abort()
    await asyncio.sleep(0)  # sockets are closed in the loop's next turn
