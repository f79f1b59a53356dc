"""The extender loses sight of a real API server: it says so, trusts no spot node, and recovers."""

from __future__ import annotations

import asyncio
import contextlib
import re
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

import aiohttp
import pytest

from live.extending import CAPACITY, NODES, ask, counted, extender_running, free_port, install_policies
from live.faulty import Line, port_of
from testbed import nodes
from testbed.client import Client
from testbed.control_plane import ControlPlane
from wukong.app.live import STALL_SHARE

pytestmark = pytest.mark.slow
LIMIT_SECONDS = 5.0  # the shorter it is, the shorter the outage, and the pauses between tries afterwards
STALL_SECONDS = LIMIT_SECONDS * STALL_SHARE
DEADLINE_SECONDS = 120.0
POD = {"metadata": {"name": "web", "namespace": "default"}}
OLD = re.compile(rf"the watch of (\w+) is (\d+) s old \(limit {LIMIT_SECONDS:g} s\)")
WRITE_SECONDS = 0.2


class Ports(NamedTuple):
    extender: int
    probes: int

    async def is_ready(self) -> bool:
        return (await self.probe("readyz"))[0] == 200

    async def probe(self, path: str) -> tuple[int, str]:
        url = f"http://127.0.0.1:{self.probes}/{path}"
        async with aiohttp.ClientSession() as session, session.get(url) as answer:
            return answer.status, await answer.text()

    async def kept(self) -> list[str]:
        """Of a spot and an on-demand node, those a pod without any policy, hence spot-first, may have."""
        answer = await ask(self.extender, "filter", POD, ["one", "two"])
        return list(answer["NodeNames"] or ())

    async def keeps_spot(self) -> bool:
        return await self.is_ready() and not await self.is_stale() and await self.kept() == ["one"]

    async def restarts(self, kind: str) -> float:
        return await counted(self.probes, "wukong_watch_restarts_total", kind=kind)

    async def is_stale(self) -> bool:
        return bool(await counted(self.probes, "wukong_extender_stale_mirror"))


@pytest.mark.slow(waits=40)
async def test_an_api_server_that_is_away_and_comes_back(lone_api_server: ControlPlane, tmp_path: Path) -> None:
    await furnish(lone_api_server)
    async with extending(lone_api_server.kubeconfig, tmp_path) as ports:
        await when(ports.keeps_spot, "it is ready, and trusts the spot node")
        lone_api_server.kill("apiserver")
        await when(ports.is_stale, "it knows that its nodes are old")
        code, text = await ports.probe("readyz")
        ages = {kind: int(seconds) for kind, seconds in OLD.findall(text)}
        assert code == 503
        assert ages["Node"] > LIMIT_SECONDS
        assert (await ports.probe("healthz"))[0] == 200
        assert await counted(ports.probes, "wukong_mirror_age_seconds", kind="Node") > LIMIT_SECONDS
        assert await ports.restarts("Node") > 0
        labels = {"reason": "stale-mirror", "mode": "enforce"}
        refusals = await counted(ports.probes, "wukong_extender_nodes_refused_total", **labels)
        answer = await ask(ports.extender, "filter", POD, ["one", "two"])
        assert answer["NodeNames"] == ["two"]
        [reason] = answer["FailedAndUnresolvableNodes"].values()
        assert re.fullmatch(r"spot, and the node watch is \d+ s old: spot-first \(no policy\)", reason)
        assert await counted(ports.probes, "wukong_extender_nodes_refused_total", **labels) == refusals + 1
        lone_api_server.launch("apiserver")
        await asyncio.to_thread(lone_api_server.await_ready, "apiserver")
        await when(ports.keeps_spot, "it is ready again, and trusts the spot node")
    assert "watch broke kind=Node error=" in (tmp_path / "extender.log").read_text()


async def test_a_connection_that_swallows_everything(lone_api_server: ControlPlane, tmp_path: Path) -> None:
    await furnish(lone_api_server)
    line = Line(port_of(lone_api_server))
    async with (
        line.kubeconfig(lone_api_server.kubeconfig, tmp_path) as kubeconfig,
        Client.of(lone_api_server.kubeconfig) as client,
        extending(kubeconfig, tmp_path) as ports,
        restless(client),
    ):
        await when(ports.keeps_spot, "it is ready, and trusts the spot node")
        before = await ports.restarts("Node")
        line.hold()

        async def is_noticed() -> bool:
            return await ports.restarts("Node") > before

        await when(is_noticed, "the stall is noticed")
        await label(client, one="on-demand", two="spot")
        await when(ports.is_stale, "it knows that its nodes are old")
        code, text = await ports.probe("readyz")
        assert code == 503
        assert "Node" in dict(OLD.findall(text))
        assert await ports.kept() == ["two"]  # on-demand, as far as it knows
        line.release()
        await when(ports.is_ready, "it is ready again")

        async def has_caught_up() -> bool:
            return not await ports.is_stale() and await ports.kept() == ["two"]

        await when(has_caught_up, "it has seen what changed meanwhile")
    assert f"said nothing on a watch for {STALL_SECONDS:g} s" in (tmp_path / "extender.log").read_text()


async def furnish(plane: ControlPlane) -> None:
    """A spot and an on-demand node, and our kinds, which stay for the next test."""
    async with Client.of(plane.kubeconfig) as client:
        if not (await client.get("/apis/apiextensions.k8s.io/v1/customresourcedefinitions"))["items"]:
            await install_policies(client)
        made = [
            nodes.a_node(name, now=time.time(), labels={CAPACITY: kind})
            for name, kind in (("one", "spot"), ("two", "on-demand"))
        ]
        await nodes.create(client, made)


async def label(client: Client, **kinds: str) -> None:
    for name, kind in kinds.items():
        await client.patch(f"{NODES}/{name}", {"metadata": {"labels": {CAPACITY: kind}}})


@contextlib.asynccontextmanager
async def extending(kubeconfig: Path, folder: Path) -> AsyncIterator[Ports]:
    """The extender as a process. It is waited for in a thread: a Line needs this one."""
    ports = Ports(free_port(), free_port())
    options = ("--probes", f"127.0.0.1:{ports.probes}", "--mirror-age-limit", str(LIMIT_SECONDS))
    process = extender_running(kubeconfig, ports.extender, folder / "extender.log", *options)
    await asyncio.to_thread(process.__enter__)
    try:
        yield ports
    finally:
        await asyncio.to_thread(process.__exit__, *sys.exc_info())


@contextlib.asynccontextmanager
async def restless(client: Client) -> AsyncIterator[None]:
    """Nodes change all the time, so that their watch is never silent."""

    async def write() -> None:
        for number in range(1 << 30):
            await client.patch(f"{NODES}/two", {"metadata": {"annotations": {"number": str(number)}}})
            await asyncio.sleep(WRITE_SECONDS)

    task = asyncio.create_task(write())
    try:
        yield
        assert not task.done()
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def when(is_so: Callable[[], Awaitable[bool]], what: str) -> None:
    try:
        async with asyncio.timeout(DEADLINE_SECONDS):
            while not await is_so():
                await asyncio.sleep(0.05)
    except TimeoutError:
        pytest.fail(f"after {DEADLINE_SECONDS:.0f} s it is still not so that {what}")
