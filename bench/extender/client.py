"""The client of the extender's benchmark: bare sockets, the same for all who are compared."""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

_BUFFER = 64 << 20


class Figures(NamedTuple):
    seconds: list[float]  # of each request
    elapsed: float


class Connection:
    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._view = memoryview(bytearray(_BUFFER))

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send(self, path: str, body: bytes, method: str = "POST") -> bytes:
        """The body of the answer, which has to be 200."""
        head = f"{method} {path} HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n"
        self._socket.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        have = start = 0
        while not start:
            have += self._more(have)
            start = bytes(self._view[: min(have, 4096)]).find(b"\r\n\r\n") + 4
            start = 0 if start == 3 else start
        headers = bytes(self._view[:start]).lower()
        assert headers.startswith(b"http/1.1 200"), bytes(self._view[:have])
        if b"chunked" in headers:  # JSON has no line ends of its own
            while bytes(self._view[have - 5 : have]) != b"0\r\n\r\n":
                have += self._more(have)
        else:
            end = start + int(headers.split(b"content-length:")[1].split(b"\r\n")[0])
            while have < end:
                have += self._more(have)
        return bytes(self._view[start:have])

    def _more(self, have: int) -> int:
        count = self._socket.recv_into(self._view[have:])
        assert count, "the server closed the connection"
        return count


def measure(port: int, path: str, bodies: Sequence[bytes], count: int, connections: int) -> Figures:
    """`count` requests, shared by so many connections at once; one each before that does not count."""

    def ask(connection: Connection, first: int) -> list[float]:
        took = []
        for number in range(first, count, connections):
            began = time.perf_counter()
            connection.send(path, bodies[number % len(bodies)])
            took.append(time.perf_counter() - began)
        return took

    opened = [Connection(port) for _ in range(connections)]
    with ThreadPoolExecutor(connections) as threads:
        list(threads.map(lambda connection: connection.send(path, bodies[-1]), opened))
        began = time.perf_counter()
        found = list(threads.map(ask, opened, range(connections)))
        elapsed = time.perf_counter() - began
    for connection in opened:
        connection.__exit__()
    return Figures([seconds for part in found for seconds in part], elapsed)
