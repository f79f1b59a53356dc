"""One HTTP request on a connection of its own, within a time and a size. Used by `wukong agent` alone.

aiohttp would be a third of the agent's memory, and on every node. Metadata servers are asked every few seconds, the API
server when something changed: no connection is worth keeping. Whatever comes, an exchange ends in an Answer or in
ExchangeError; nothing is repeated, no redirect followed, no proxy asked.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import NamedTuple
from urllib.parse import urlsplit

from wukong import __version__
from wukong.errors import WukongError

_STATUS_LINE = re.compile(rb"HTTP/1\.[01] (\d{3})(?: .*)?\r?\n")
_MOST_HEADERS = 100
_LONGEST_LINE = 16 << 10
_BODILESS = (204, 304)


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]  # names in lower case; of one that is there twice the last
    body: bytes


class ExchangeError(WukongError):
    """No answer, half of one, one that is no HTTP, or one that is larger than it may be."""


class Request(NamedTuple):
    method: str
    url: str
    headers: Iterable[tuple[str, str]] = ()
    body: bytes | None = None


async def exchange(
    request: Request,
    *,
    seconds: float,
    most_bytes: int,
    tls: ssl.SSLContext | None = None,
    server_name: str = "",
) -> Answer:
    """The whole answer. Raises ExchangeError after `seconds`, or when the body has more than `most_bytes`."""
    try:
        async with asyncio.timeout(seconds):
            return await _exchange(request, most_bytes, tls, server_name)
    except TimeoutError:
        raise ExchangeError(f"no answer within {seconds:g} s") from None
    except (OSError, EOFError, ValueError, asyncio.LimitOverrunError) as error:
        raise ExchangeError(_describe(error)) from None


async def _exchange(request: Request, most_bytes: int, tls: ssl.SSLContext | None, server_name: str) -> Answer:
    address = urlsplit(request.url)
    is_secure = address.scheme == "https"
    host, port = address.hostname or "", address.port or (443 if is_secure else 80)
    context = tls or ssl.create_default_context() if is_secure else None
    name = server_name or host if is_secure else None
    reader, writer = await asyncio.open_connection(host, port, limit=_LONGEST_LINE, ssl=context, server_hostname=name)
    try:
        writer.write(_encode(request, address.netloc.rpartition("@")[2]))
        await writer.drain()
        return await _read_answer(reader, most_bytes)
    finally:
        writer.transport.abort()  # a polite end of TLS would wait for the other side
        with suppress(OSError):
            await writer.wait_closed()


def _encode(request: Request, host: str) -> bytes:
    address = urlsplit(request.url)
    target = (address.path or "/") + (f"?{address.query}" if address.query else "")
    headers = [("Host", host), ("User-Agent", f"wukong/{__version__}"), ("Connection", "close"), *request.headers]
    if request.body is not None or request.method in ("PUT", "POST"):
        headers.append(("Content-Length", str(len(request.body or b""))))
    lines = [f"{request.method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers)]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + (request.body or b"")


async def _read_answer(reader: asyncio.StreamReader, most_bytes: int) -> Answer:
    line = await reader.readline()
    match = _STATUS_LINE.fullmatch(line)
    if match is None:
        raise ValueError(f"expected an HTTP answer, got {line[:60]!r}" if line else "the connection was closed")
    headers: dict[str, str] = {}
    for _ in range(_MOST_HEADERS):
        line = await reader.readline()
        if line in (b"\r\n", b"\n"):
            break
        name, colon, value = line.decode("latin-1").partition(":")
        if not colon:
            raise ValueError("half an answer: its head has no end")
        headers[name.strip().lower()] = value.strip()
    else:
        raise ValueError(f"expected an HTTP answer, got more than {_MOST_HEADERS} headers")
    status = int(match[1])
    body = b"" if status in _BODILESS else await _read_body(reader, headers, most_bytes)
    return Answer(status, headers, body)


async def _read_body(reader: asyncio.StreamReader, headers: Mapping[str, str], most_bytes: int) -> bytes:
    if headers.get("transfer-encoding", "").lower() == "chunked":
        return await _read_chunks(reader, most_bytes)
    length = headers.get("content-length")
    if length is None:
        body = bytearray()
        while piece := await reader.read(_LONGEST_LINE):
            body += piece
            _check_size(len(body), most_bytes)
        return bytes(body)
    _check_size(_read_number(length, 10), most_bytes)
    return await reader.readexactly(_read_number(length, 10))


async def _read_chunks(reader: asyncio.StreamReader, most_bytes: int) -> bytes:
    body = bytearray()
    while size := _read_number((await reader.readline()).partition(b";")[0].strip().decode("latin-1"), 16):
        _check_size(len(body) + size, most_bytes)
        body += await reader.readexactly(size)
        if await reader.readline() not in (b"\r\n", b"\n"):
            raise ValueError("expected the end of a chunk")
    return bytes(body)  # trailers are of no use, and the connection is closed


def _read_number(text: str, base: int) -> int:
    """Raises ValueError for what is no plain number of a size."""
    if not text.isascii() or not text.isalnum() or len(text) > 18:
        raise ValueError(f"expected the length of a body, got {text[:30]!r}")
    return int(text, base)


def _check_size(size: int, most_bytes: int) -> None:
    if size > most_bytes:
        raise ValueError(f"the answer has more than {most_bytes} bytes")


def _describe(error: Exception) -> str:
    if isinstance(error, asyncio.IncompleteReadError):
        return "half an answer: the connection was closed"
    if isinstance(error, OSError):
        return error.strerror or str(error) or type(error).__name__
    return str(error) or type(error).__name__
