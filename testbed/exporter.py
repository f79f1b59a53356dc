"""What node_exporter would say of hollow Nodes: numbers a test sets, in the metrics a real one has.

async with Exporter() as exporter:
    exporter.usage["node-1"] = {"cpu": 80, "memory": 40, "storage": 10}      percent
    exporter.address                                                       for Prometheus to scrape
"""

from __future__ import annotations

import time
from typing import Self

from aiohttp import web

CORES = 2
MEMORY = DISK = 100_000_000_000


class Exporter:
    def __init__(self) -> None:
        self.usage: dict[str, dict[str, float]] = {}
        self._idle: dict[str, float] = {}  # seconds of idle processor so far, per node
        self._read_at: dict[str, float] = {}
        self._runner = web.AppRunner(self._app())
        self.address = ""

    def _app(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/metrics", self._metrics)
        return app

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.address = f"{host}:{port}"
        return self

    async def __aexit__(self, *why: object) -> None:
        await self._runner.cleanup()

    async def _metrics(self, request: web.Request) -> web.Response:
        return web.Response(text="".join(f"{line}\n" for line in self._lines(time.monotonic())))

    def _lines(self, now: float) -> list[str]:
        lines: list[str] = []
        for node, used in sorted(self.usage.items()):
            if "cpu" in used:
                idle = self._idle_seconds(node, used["cpu"], now)
                lines += [
                    f'node_cpu_seconds_total{{node="{node}",cpu="{core}",mode="idle"}} {idle:.6f}'
                    for core in range(CORES)
                ]
            if "memory" in used:
                lines.append(f'node_memory_MemTotal_bytes{{node="{node}"}} {MEMORY}')
                lines.append(
                    f'node_memory_MemAvailable_bytes{{node="{node}"}} {MEMORY * (1 - used["memory"] / 100):.0f}'
                )
            if "storage" in used:
                lines.append(f'node_filesystem_size_bytes{{node="{node}",mountpoint="/"}} {DISK}')
                free = DISK * (1 - used["storage"] / 100)
                lines.append(f'node_filesystem_avail_bytes{{node="{node}",mountpoint="/"}} {free:.0f}')
        return lines

    def _idle_seconds(self, node: str, percent: float, now: float) -> float:
        """A counter that grows by the idle share of the time since it was last read."""
        passed = now - self._read_at.get(node, now)
        self._read_at[node] = now
        self._idle[node] = self._idle.get(node, 1000.0) + passed * (1 - percent / 100)
        return self._idle[node]
