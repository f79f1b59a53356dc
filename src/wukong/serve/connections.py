"""At most so many connections: a listening socket that makes room for a new one by closing the one worth least.

Used by serve.site. A connection counts from the moment it is accepted, long before TLS knows who calls. Whoever has
asked nothing yet goes first, the oldest of them; then whoever has asked nothing for the longest time. So somebody who
opens connections without end closes their own, and neither a scheduler that asks nor the kubelet's probes are kept out.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from wukong.runtime.metrics import Metrics


class Connections:
    """The open connections of one server. `on_drop` hears of each that was closed to make room."""

    def __init__(self, most: int, on_drop: Callable[[], None] = lambda: None) -> None:
        self.most, self._on_drop = most, on_drop
        self._silent: dict[int, _Connection] = {}  # by file descriptor, the oldest first: asked nothing yet
        self._used: dict[int, _Connection] = {}  # the least recently used first

    def __len__(self) -> int:
        return len(self._silent) + len(self._used)

    def add(self, connection: _Connection) -> None:
        while len(self) >= self.most:
            self._drop_one()
        self._silent[connection.fileno()] = connection

    def record_request(self, descriptor: int) -> None:
        """A request came on the connection of this file descriptor."""
        connection = self._silent.pop(descriptor, None) or self._used.pop(descriptor, None)
        if connection is not None:
            self._used[descriptor] = connection

    def remove(self, connection: _Connection) -> None:
        """It is about to be closed."""
        for connections in (self._silent, self._used):
            if connections.get(connection.fileno()) is connection:
                del connections[connection.fileno()]

    def _drop_one(self) -> None:
        connections = self._silent or self._used
        connection = connections.pop(next(iter(connections)))
        with suppress(OSError):  # its transport, or the handshake, sees the end and closes it
            connection.shutdown(socket.SHUT_RDWR)
        self._on_drop()


def count_connections(metrics: Metrics, server: str, most: int) -> Connections:
    """Connections that are counted for Prometheus under this name."""
    connections = Connections(most, metrics.connections_dropped.labels(server).inc)
    metrics.connections.labels(server).set_function(lambda: len(connections))
    return connections


class Listener(socket.socket):
    """A listening socket whose connections are counted."""

    def __init__(self, connections: Connections, family: int) -> None:
        super().__init__(family, socket.SOCK_STREAM)
        self._connections = connections

    def accept(self) -> tuple[socket.socket, Any]:
        plain, address = super().accept()
        connection = _Connection(self._connections, plain)
        self._connections.add(connection)
        return connection, address


class _Connection(socket.socket):
    def __init__(self, connections: Connections, plain: socket.socket) -> None:
        super().__init__(plain.family, plain.type, plain.proto, plain.detach())
        self._connections = connections

    def close(self) -> None:
        if self.fileno() >= 0:
            self._connections.remove(self)
        super().close()
