"""A connection that posts bodies, one after the other, and no more than that. For tests that send thousands.

The server at its other end is the real one; a real client would take as long as the server itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

HEAD_END = b"\r\n\r\n"


class Answer(NamedTuple):
    status: int
    body: bytes


class PlainClient:
    """One keep-alive connection. An answer without a Content-Length, or a connection that is closed, is an error."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def post(self, path: str, body: bytes) -> Answer:
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
        self.writer.write(head.encode() + body)
        status_line, *fields = (await self.reader.readuntil(HEAD_END))[: -len(HEAD_END)].split(b"\r\n")
        headers = dict(field.lower().split(b": ", 1) for field in fields)
        answer = await self.reader.readexactly(int(headers[b"content-length"]))
        return Answer(int(status_line.split()[1]), answer)


@asynccontextmanager
async def connect(port: int) -> AsyncIterator[PlainClient]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield PlainClient(reader, writer)
    finally:
        writer.close()
        await writer.wait_closed()
