"""A second kube-controller-manager or virt-controller, whose watches a test can hold: a leader that is behind and does
not know it.

`BindingGate` does the same to the bindings of a scheduler: one that comes second, for certain.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import ssl
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import aiohttp
import yaml
from aiohttp import web

from testbed import components, processes
from testbed.client import Client, Json
from testbed.control_plane import ControlPlane
from testbed.kubevirt.installation import virt_controller
from testbed.ports import free_ports
from testbed.pytest_plugin import Bed

HOP_BY_HOP = {"connection", "content-length", "host", "keep-alive", "transfer-encoding", "upgrade"}


class HoldingProxy:
    """Passes everything to an API server as the admin, but holds the watches of the kinds that it is told to."""

    def __init__(self, original: Path) -> None:
        self.original = original  # a kubeconfig of that API server
        self._held: set[str] = set()
        self._watched: set[str] = set()
        self._changed = asyncio.Condition()  # notified when something is released or watched
        self._session: aiohttp.ClientSession

    def hold(self, plural: str) -> None:
        """Nothing more arrives of this kind. Watches stay open."""
        self._held.add(plural)

    async def release(self, plural: str) -> None:
        """What was held arrives now."""
        self._held.discard(plural)
        async with self._changed:
            self._changed.notify_all()

    async def wait_for_watch(self, plural: str) -> None:
        """Until this kind is watched by whoever uses the proxy, who has listed it before."""
        async with self._changed:
            await self._changed.wait_for(lambda: plural in self._watched)

    @contextlib.asynccontextmanager
    async def kubeconfig(self, folder: Path) -> AsyncIterator[Path]:
        """A kubeconfig that leads through this proxy, while it is served."""
        server, context, user = self._identity()
        connector = aiohttp.TCPConnector(ssl=context, limit=0)
        forever = aiohttp.ClientTimeout(total=None)
        async with aiohttp.ClientSession(
            server, connector=connector, auto_decompress=False, timeout=forever
        ) as self._session:
            app = web.Application(client_max_size=1 << 24)
            app.router.add_route("*", "/{path:.*}", self._pass_on)
            runner = web.AppRunner(app, shutdown_timeout=0.1)
            await runner.setup()
            (port,) = free_ports(1)
            await web.TCPSite(runner, "127.0.0.1", port).start()
            try:
                yield _write_kubeconfig(folder, f"http://127.0.0.1:{port}", user)
            finally:
                await runner.cleanup()

    def _identity(self) -> tuple[str, ssl.SSLContext, Json]:
        """The API server, as whom it is asked, and what a user of the proxy has to say of itself."""
        admin = Client.of(self.original)
        return admin.server, admin.context, {}

    async def _pass_on(self, request: web.Request) -> web.StreamResponse:
        headers = {name: value for name, value in request.headers.items() if name.lower() not in HOP_BY_HOP}
        async with self._session.request(
            request.method, request.raw_path, headers=headers, data=await request.read() or None
        ) as answer:
            passed = {name: value for name, value in answer.headers.items() if name.lower() not in HOP_BY_HOP}
            response = web.StreamResponse(status=answer.status, headers=passed)
            await response.prepare(request)
            plural = request.path.rpartition("/")[2] if "watch" in request.query else ""
            await self._note_watch(plural)
            with contextlib.suppress(ConnectionResetError):  # who asked has ended
                async for piece in answer.content.iter_any():
                    await self._wait_for_release(plural)
                    await response.write(piece)
            return response

    async def _note_watch(self, plural: str) -> None:
        async with self._changed:
            self._watched.add(plural)
            self._changed.notify_all()

    async def _wait_for_release(self, plural: str) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: plural not in self._held)


class LeaseKeeper(HoldingProxy):
    """Answers whoever asks for a lease by itself: its user leads, although somebody else does, too."""

    def __init__(self, original: Path) -> None:
        super().__init__(original)
        self._lease = b""  # as its holder wrote it last

    async def _pass_on(self, request: web.Request) -> web.StreamResponse:
        if "/leases" not in request.path:
            return await super()._pass_on(request)
        self._lease = await request.read() or self._lease
        if not self._lease:
            status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}
            return web.json_response(status, status=404)
        return web.Response(body=self._lease, content_type="application/json")


class BindingGate(HoldingProxy):
    """Passes everything on as whoever asks with a token, but holds every binding until it is opened."""

    def __init__(self, original: Path) -> None:
        super().__init__(original)
        self.has_held, self._opened = asyncio.Event(), asyncio.Event()

    def open(self) -> None:
        self._opened.set()

    def _identity(self) -> tuple[str, ssl.SSLContext, Json]:
        config = yaml.safe_load(self.original.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        return cluster["server"], ssl.create_default_context(cadata=authority), user

    async def _pass_on(self, request: web.Request) -> web.StreamResponse:
        if request.method == "POST" and request.path.endswith("/binding"):
            self.has_held.set()
            await self._opened.wait()
        return await super()._pass_on(request)


@contextlib.contextmanager
def second_controller_manager(plane: ControlPlane, kubeconfig: Path, controllers: str) -> Iterator[None]:
    """Runs these controllers, through this kubeconfig."""
    (port,) = free_ports(1)
    argv = [
        *plane.programs.argv["controller-manager"],
        *components.controller_manager(plane.layout),
        f"--secure-port={port}",
        f"--cert-dir={plane.layout.keys / 'second-controller-manager-serving'}",
        f"--kubeconfig={kubeconfig}",
        "--use-service-account-credentials=false",
        f"--controllers={controllers}",
    ]
    with _running(argv, plane.log("second-controller-manager")):
        yield


@contextlib.contextmanager
def second_virt_controller(bed: Bed, kubeconfig: Path, program: Path, log: Path) -> Iterator[None]:
    """Runs virt-controller through this kubeconfig. It takes a while until it leads."""
    (port,) = free_ports(1)
    with _running(virt_controller(bed.kubeconfig.parent, kubeconfig, program, port).argv, log):
        yield


@contextlib.contextmanager
def _running(argv: list[str], log: Path) -> Iterator[None]:
    process = processes.spawn(argv, log)
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(processes.TERM_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _write_kubeconfig(folder: Path, server: str, user: Json) -> Path:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "held", "cluster": {"server": server}}],
        "users": [{"name": "held", "user": user}],
        "contexts": [{"name": "held", "context": {"cluster": "held", "user": "held"}}],
        "current-context": "held",
    }
    path = folder / "held.kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return path
