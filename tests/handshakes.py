"""Ends connections whose TLS handshake is not over: asyncio's servers forget them when they close.

Left alone, such a connection is reported as a leak when its memory is reclaimed, in the middle of another test.
"""

from __future__ import annotations

import asyncio
from typing import Any


async def cut(port: int) -> None:
    """All that is still connected to a server of this event loop. Call it after the server was closed."""
    transports: dict[int, Any] = getattr(asyncio.get_running_loop(), "_transports", {})  # nothing public tells
    for transport in list(transports.values()):
        if (transport.get_extra_info("sockname") or ("", 0))[1] == port:
            transport.abort()
    await asyncio.sleep(0)  # sockets are closed in the loop's next turn
