"""Plain requests, answered without aiohttp: what an API server or a scheduler sends on a connection that it keeps.

serve.site makes one of every connection whose application has DirectHandlers. A request is plain if it is
a POST over HTTP/1.1 to one of their paths with a Content-Length of at most 64 KiB, nothing unusual in its head, and a
head that came whole. Plain requests are read and answered here, one after the other. With the first that is anything
else, the connection is aiohttp's for good, which then sees that request from its first byte: no rule of HTTP is known
twice. Both ways call the same handler.

What a connection holds is bounded: one plain request, and what was read beyond it.
"""

from __future__ import annotations

import asyncio
import logging
import re
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from email.utils import formatdate
from typing import NamedTuple, Protocol

from aiohttp import web

from wukong.placement.slices import Slices
from wukong.serve.connections import Connections
from wukong.serve.turns import Unfinished, take_turns, work_for_a_turn

MOST_BODY_BYTES = 64 << 10
_READ_BYTES = 64 << 10  # at a time
_MOST_HEAD_BYTES = 4 << 10
_MOST_HEADS = 1024  # remembered: those of one client differ in the length of the body
_HEAD = re.compile(rb"POST (/[a-z]+)(?:\?[!-~]*)? HTTP/1\.1\r\n((?:[A-Za-z0-9-]+:[\t -~]*\r\n)+)\r\n")
# Who has one of these wants something that is not plain.
_UNUSUAL = frozenset(
    (b"connection", b"content-encoding", b"expect", b"keep-alive", b"te", b"trailer", b"transfer-encoding", b"upgrade")
)
_REASONS = {200: b"OK", 400: b"Bad Request", 408: b"Request Timeout"}
log = logging.getLogger(__name__)


class Answer(NamedTuple):
    status: int
    body: bytes  # JSON


class DirectHandler(Protocol):
    """Who answers the requests for one path."""

    body_seconds: float  # for a body to come, once its head is there

    def answer_in_slices(self, body: bytes, began: float) -> Slices[Answer]:
        """The answer to this body, whose head came when time.perf_counter() was `began`."""
        ...

    def answer_unsent(self, began: float) -> Answer:
        """The answer to a request whose body did not come in time."""
        ...


HANDLERS: web.AppKey[dict[str, DirectHandler]] = web.AppKey("direct_handlers", dict)


class _Head(NamedTuple):
    handler: DirectHandler
    size: int  # of the head
    length: int  # of the body


class DirectServer:
    """What the connections of one server have in common. Called for each of them, as asyncio's servers do."""

    def __init__(
        self,
        handlers: Mapping[str, DirectHandler],
        build_other: Callable[[], asyncio.Protocol],
        connections: Connections,
        keep_alive_seconds: float,
    ) -> None:
        """`build_other` gives what takes a connection over; `connections` hears of every request."""
        self._handlers = {path.encode(): handler for path, handler in handlers.items()}
        self.build_other, self.connections, self.keep_alive_seconds = build_other, connections, keep_alive_seconds
        self.view = memoryview(bytearray(_READ_BYTES))  # what is read is taken out of it at once
        self.open: set[DirectConnection] = set()
        self.is_closing = False
        self.all_closed = asyncio.Event()  # once it is closing
        self._heads: dict[bytes, _Head | None] = {}
        self._date_second, self._date = -1, b""

    def __call__(self) -> DirectConnection:
        return DirectConnection(self)

    def read_head(self, head: bytes) -> _Head | None:
        """None if the request is not plain."""
        try:
            return self._heads[head]
        except KeyError:
            if len(self._heads) >= _MOST_HEADS:
                self._heads.clear()
            known = self._heads[head] = self._parse_head(head)
            return known

    def format_head(self, status: int, length: int) -> bytes:
        second = int(time.time())
        if second != self._date_second:
            self._date_second, self._date = second, formatdate(second, usegmt=True).encode()
        reason = _REASONS.get(status, b"Unknown")
        return b"HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nDate: %s\r\n\r\n" % (
            status,
            reason,
            length,
            self._date,
        )

    async def shut_down(self, seconds: float) -> None:
        """Close what is idle, and the rest once it is answered, for which there are so many seconds."""
        self.is_closing = True
        for connection in tuple(self.open):
            connection.close_if_idle()
        if self.open:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self.all_closed.wait()
        for connection in tuple(self.open):
            connection.abort()

    def _parse_head(self, head: bytes) -> _Head | None:
        request = _HEAD.fullmatch(head)
        handler = None if request is None else self._handlers.get(request[1])
        if request is None or handler is None:
            return None
        headers: dict[bytes, bytes] = {}
        lines = request[2].split(b"\r\n")[:-1]
        for line in lines:
            name, _, value = line.partition(b":")
            headers[name.lower()] = value.strip(b" \t")
        length = headers.get(b"content-length", b"")
        is_repeated = len(headers) < len(lines)
        if is_repeated or b"host" not in headers or not _UNUSUAL.isdisjoint(headers):
            return None
        if not length.isdigit() or len(length) > 7 or int(length) > MOST_BODY_BYTES:
            return None
        return _Head(handler, len(head), int(length))


class DirectConnection(asyncio.BufferedProtocol):
    """One connection, as long as its requests are plain."""

    def __init__(self, server: DirectServer) -> None:
        self._server, self._loop = server, asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._descriptor = -1
        self._unread = b""  # what came and is not answered yet
        self._head: _Head | None = None  # of the request that is under way
        self._began = 0.0
        self._body_timer: asyncio.TimerHandle | None = None
        self._idle_timer: asyncio.TimerHandle | None = None
        self._used_at = 0.0
        self._is_writing_paused = False
        self._task: asyncio.Task[None] | None = None  # which decides, where that takes long

    # ---- called by asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        connection = transport.get_extra_info("socket")
        if connection is not None:
            self._descriptor = connection.fileno()
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._server.open.add(self)
        self._used_at = self._loop.time()
        self._idle_timer = self._loop.call_later(self._server.keep_alive_seconds, self._close_if_unused)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._server.view

    def buffer_updated(self, nbytes: int) -> None:
        data = bytes(self._server.view[:nbytes])
        self._unread = self._unread + data if self._unread else data
        self._advance()

    def pause_writing(self) -> None:
        """Who does not take answers is asked nothing more."""
        self._is_writing_paused = True
        self._set_reading()

    def resume_writing(self) -> None:
        self._is_writing_paused = False
        self._set_reading()
        self._advance()

    def connection_lost(self, exc: Exception | None) -> None:
        self._leave()
        self._unread = b""

    # ---- requests

    def _advance(self) -> None:
        """Answer what is there and whole."""
        while self._unread and self._transport is not None and self._task is None and not self._is_writing_paused:
            if self._head is None:
                end = self._unread.find(b"\r\n\r\n", 0, _MOST_HEAD_BYTES) + 4
                self._head = self._server.read_head(self._unread[:end]) if end > 3 else None
                self._began = time.perf_counter()
            if self._head is None:
                self._hand_over()
                return
            handler, size, length = self._head
            if len(self._unread) < size + length:
                if self._body_timer is None:
                    self._body_timer = self._loop.call_later(handler.body_seconds, self._give_up)
                return
            body, self._unread = self._unread[size : size + length], self._unread[size + length :]
            self._head = None
            self._begin(handler, body)

    def _begin(self, handler: DirectHandler, body: bytes) -> None:
        self._stop_body_timer()
        self._used_at = self._loop.time()
        self._server.connections.record_request(self._descriptor)
        slices = handler.answer_in_slices(body, self._began)
        answer = work_for_a_turn(slices)
        if isinstance(answer, Unfinished):
            self._task = self._loop.create_task(self._finish(slices))
            self._set_reading()
        else:
            self._write(answer)

    async def _finish(self, slices: Slices[Answer]) -> None:
        try:
            await asyncio.sleep(0)
            answer = await take_turns(slices)
        except Exception:
            log.exception("a request failed")
            self.abort()
            return
        self._task = None
        self._write(answer)
        self._set_reading()
        self._advance()

    def _write(self, answer: Answer) -> None:
        if self._transport is None:
            return
        self._transport.write(self._server.format_head(answer.status, len(answer.body)) + answer.body)
        if self._server.is_closing:
            self._transport.close()

    def _give_up(self) -> None:
        """The rest of a body did not come: answer, and read no more."""
        self._body_timer = None
        if self._head is not None and self._transport is not None:
            self._write(self._head.handler.answer_unsent(self._began))
            self._transport.close()

    def _hand_over(self) -> None:
        """To aiohttp, for good, with all that is not answered yet."""
        transport, data = self._transport, self._unread
        assert transport is not None
        self._leave()
        other = self._server.build_other()
        other.connection_made(transport)
        transport.set_protocol(other)
        other.data_received(data)

    # ---- the connection

    def _set_reading(self) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        if self._task is not None or self._is_writing_paused:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def _close_if_unused(self) -> None:
        left = self._used_at + self._server.keep_alive_seconds - self._loop.time()
        if left <= 0 and self._task is None and self._transport is not None:
            self._transport.close()
            return
        self._idle_timer = self._loop.call_later(left if left > 0 else 1.0, self._close_if_unused)

    def close_if_idle(self) -> None:
        if self._transport is not None and self._task is None and self._head is None:
            self._transport.close()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _leave(self) -> None:
        """The transport is lost, or somebody else's from now on."""
        self._transport = None
        self._stop_body_timer()
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        self._server.open.discard(self)
        if self._server.is_closing and not self._server.open:
            self._server.all_closed.set()

    def _stop_body_timer(self) -> None:
        if self._body_timer is not None:
            self._body_timer.cancel()
            self._body_timer = None
