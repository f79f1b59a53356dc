"""`wukong run` put together, against an API server of the test's own: it measures, writes, is probed, and stops."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from aiohttp import ClientSession, web
from aiohttp.test_utils import TestServer

from wukong.app import live
from wukong.cli.verbs.run import command, read_options
from wukong.cluster.credentials import Credentials
from wukong.cluster.kubeconfig import ClusterEntry, Login, UserEntry
from wukong.errors import InputError
from wukong.serve.site import serve

NODE = {
    "metadata": {"name": "a", "uid": "uid-a", "resourceVersion": "5"},
    "status": {"allocatable": {"cpu": "4", "memory": "8Gi"}},
}
METRICS = {"metadata": {"name": "a"}, "usage": {"cpu": "1", "memory": "2Gi"}}  # without a time: now
SAMPLE = {"metric": {"node": "a"}, "value": [9e9, "75"]}


class SmallApiServer:
    """Has one node, its metrics, and whatever is written to it."""

    def __init__(self) -> None:
        self.over, self.has_written = asyncio.Event(), asyncio.Event()
        self.patches: list[tuple[str, Any]] = []
        self.leases: dict[str, Any] = {}

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if request.path == "/api/v1/query":
            return web.json_response({"status": "success", "data": {"result": [SAMPLE]}})
        if "leases" in request.path:
            return await self._keep_lease(request)
        if request.method == "PATCH":
            self.patches.append((request.path, msgspec.json.decode(await request.read())))
            self.has_written.set()
            return web.json_response(NODE)
        if request.query.get("watch"):
            response = web.StreamResponse()
            await response.prepare(request)
            await self.over.wait()
            return response
        items = {"/api/v1/nodes": [NODE], "/apis/metrics.k8s.io/v1beta1/nodes": [METRICS]}.get(request.path, [])
        return web.json_response({"metadata": {"resourceVersion": "7"}, "items": items})

    async def _keep_lease(self, request: web.Request) -> web.StreamResponse:
        if request.method == "GET" and not self.leases:
            return web.json_response({"kind": "Status", "reason": "NotFound", "code": 404}, status=404)
        if request.method != "GET":
            self.leases = {**self.leases, **msgspec.json.decode(await request.read())}
            self.leases["metadata"] = {**self.leases.get("metadata", {}), "resourceVersion": "1"}
        return web.json_response(self.leases)


@asynccontextmanager
async def running(*words: str) -> AsyncIterator[SmallApiServer]:
    """`wukong run` with these words beside a small API server; %s in them is its address."""
    api_server = SmallApiServer()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", api_server.answer)
    async with TestServer(app) as server:
        address = str(server.make_url("")).rstrip("/")
        login = Login(place="test", cluster=ClusterEntry(server=address), user=UserEntry())
        config = read_options(command.make_context("run", [word.replace("%s", address) for word in words]), None)
        stop = asyncio.Event()
        task = asyncio.create_task(live.run(Credentials(login), config, "one", stop))
        try:
            yield api_server
        finally:
            stop.set()
            api_server.over.set()
            await task


@pytest.mark.parametrize(
    ("words", "cpu"), [((), "25"), (("--prometheus=%s",), "75")], ids=["metrics.k8s.io", "Prometheus"]
)
async def test_what_a_meter_says_is_written_on_the_node(words: tuple[str, ...], cpu: str) -> None:
    async with running("--components=load", "--measure-seconds=0.1", *words) as api_server, asyncio.timeout(60):
        await api_server.has_written.wait()
        path, body = api_server.patches[0]
        assert path == "/api/v1/nodes/a"
        assert body["metadata"]["labels"]["usage.novasphere.dev/cpu"] == cpu
        assert api_server.leases["spec"]["holderIdentity"] == "one"


async def test_a_dry_run_measures_and_writes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    async with running("--components=load", "--measure-seconds=0.1", "--dry-run") as api_server, asyncio.timeout(60):
        while not any(record.message == "dry run: would write" for record in caplog.records):
            await asyncio.sleep(0.01)
        assert api_server.patches == []
    messages = [record.message for record in caplog.records]
    assert messages.index("started") < messages.index("stopped")
    assert caplog.records[messages.index("started")].__dict__["components"] == ["load"]


async def test_it_is_probed_at_the_address_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    ports: list[int] = []

    async def note_port(*arguments: Any, **more: Any) -> int:
        ports.append(await serve(*arguments, **more))
        return ports[-1]

    monkeypatch.setattr(live, "serve", note_port)
    async with (
        running("--components=load", "--measure-seconds=0.1", "--probes=127.0.0.1:0") as api_server,
        asyncio.timeout(60),
    ):
        await api_server.has_written.wait()
        async with ClientSession() as session:
            for path in ("healthz", "readyz"):
                async with session.get(f"http://127.0.0.1:{ports[0]}/{path}") as answer:
                    assert answer.status == 200
            async with session.get(f"http://127.0.0.1:{ports[0]}/metrics") as answer:
                assert "wukong_" in await answer.text()
            taken = f"127.0.0.1:{ports[0]}"
            with pytest.raises(InputError, match=rf"^--probes {taken}: cannot listen there"):
                async with running("--components=load", f"--probes={taken}"):
                    pass
