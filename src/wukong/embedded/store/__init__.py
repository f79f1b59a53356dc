"""The API server of the embedded cluster: `Store` is the port; `Server` the same, synchronous, for actors and tests."""

from __future__ import annotations

from wukong.embedded.store.server import Server
from wukong.embedded.store.store import Store

__all__ = ["Server", "Store"]
