"""/healthz, /readyz and /metrics: the endpoints that Kubernetes and Prometheus call. Started by app.live.

/healthz answers as long as the event loop turns; /readyz once every kind has been listed. Standing by is being ready:
an instance that does not lead answers 200 as well.
"""

from __future__ import annotations

from typing import Protocol

from aiohttp import web

from wukong.runtime.metrics import CONTENT_TYPE, Metrics


class Status(Protocol):
    """What a probe asks: runtime.Loop has it."""

    @property
    def is_synced(self) -> bool: ...


def build_probes_app(status: Status, metrics: Metrics) -> web.Application:
    async def healthz(_: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def readyz(_: web.Request) -> web.Response:
        if status.is_synced:
            return web.Response(text="ok\n")
        return web.Response(status=503, text="not every kind has been listed yet\n")

    async def show_metrics(_: web.Request) -> web.Response:
        return web.Response(body=metrics.text(), headers={"Content-Type": CONTENT_TYPE})

    app = web.Application()
    app.add_routes([web.get("/healthz", healthz), web.get("/readyz", readyz), web.get("/metrics", show_metrics)])
    return app
