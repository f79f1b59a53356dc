"""How much memory the bodies of requests may take: each of them, and all that are there at once.

Used by the servers of the extender and of the webhooks. Without the sum, a bound on one body would be multiplied by the
number of connections.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from aiohttp import StreamReader

LIMIT_BYTES = 128 << 20  # of one body; 5,000 nodes in full are about 20 MB
TOTAL_BYTES = 192 << 20  # of all bodies at once


class BodyLimits:
    """How large a body may be, and all of them together. What is taken is given back when its request is over."""

    def __init__(self, limit_bytes: int = LIMIT_BYTES, total_bytes: int = TOTAL_BYTES) -> None:
        self.limit_bytes, self.total_bytes = limit_bytes, total_bytes
        self.taken_bytes = 0

    @contextmanager
    def reserve(self) -> Iterator[BodyReservation]:
        reservation = BodyReservation(self)
        try:
            yield reservation
        finally:
            self.taken_bytes -= reservation.size


class BodyReservation:
    """What one request has taken so far."""

    def __init__(self, limits: BodyLimits) -> None:
        self._limits, self.size = limits, 0

    def take(self, count: int) -> None:
        """Raises BodyTooLargeError or TooManyBodiesError if there is no room for so many bytes more."""
        self.size += count
        self._limits.taken_bytes += count
        if self.size > self._limits.limit_bytes:
            raise BodyTooLargeError
        if self._limits.taken_bytes > self._limits.total_bytes:
            raise TooManyBodiesError


async def read_body(content: StreamReader, reservation: BodyReservation) -> bytes:
    """As request.read() does it, but copied once: it may be tens of megabytes."""
    chunks: list[bytes] = []
    while chunk := await content.readany():
        chunks.append(chunk)
        reservation.take(len(chunk))
    return b"".join(chunks)


class BodyTooLargeError(Exception):
    """One body is larger than any may be."""


class TooManyBodiesError(Exception):
    """All bodies together are larger than they may be."""
