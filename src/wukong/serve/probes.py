"""/healthz, /readyz and /metrics: the endpoints that Kubernetes and Prometheus call. Started by app.live.

/healthz answers as long as the event loop turns; /readyz once every kind has been listed, and as long as each has been
heard of lately and the ledger, if one is kept, can be read and written. Standing by is being ready: an instance that
does not lead answers 200 as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from aiohttp import web

from wukong.runtime.metrics import CONTENT_TYPE, Metrics


class Status(Protocol):
    """Whether there is anything to answer from: runtime.Loop knows."""

    @property
    def is_synced(self) -> bool: ...


class Readiness(Status, Protocol):
    """What a probe asks: runtime.Loop has it."""

    def describe_unsynced(self) -> Sequence[str]:
        """The kinds that have not been listed yet, each with the reason where one is known."""
        ...

    def list_troubles(self) -> Sequence[str]:
        """The kinds of which nothing was heard for too long, and whatever else is needed and fails."""
        ...


def build_probes_app(status: Readiness, metrics: Metrics) -> web.Application:
    async def healthz(_: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def readyz(_: web.Request) -> web.Response:
        if not status.is_synced:
            reasons = "".join(f"{reason}\n" for reason in status.describe_unsynced())
            return web.Response(status=503, text=f"not every kind has been listed yet\n{reasons}")
        problems = "".join(f"{trouble}\n" for trouble in status.list_troubles())
        return web.Response(status=503, text=problems) if problems else web.Response(text="ok\n")

    async def show_metrics(_: web.Request) -> web.Response:
        return web.Response(body=metrics.text(), headers={"Content-Type": CONTENT_TYPE})

    app = web.Application()
    app.add_routes([web.get("/healthz", healthz), web.get("/readyz", readyz), web.get("/metrics", show_metrics)])
    return app
