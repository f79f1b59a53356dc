"""The hook on a real API server, with exactly its rights: what it is told closes the node, also after a restart."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import signal
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession

from live.accounts import service_account, used_by, when
from live.test_agent import effects_of
from live.test_policies import install, path_of, until_served
from testbed.certificates import Authority
from testbed.pytest_plugin import OwnBed
from wukong.app.component import list_permissions
from wukong.app.components.hook import HOOK
from wukong.app.components.hook.options import HookOptions
from wukong.app.components.spot import SPOT

TOKEN = "a-token-of-the-hook-0123"
ACCOUNT = "system:serviceaccount:default:hooked"
PROVIDER_ID = "aws:///eu-west-1a/i-0a1b"


@pytest.mark.slow(waits=10)
async def test_a_notice_by_the_hook_closes_the_node_and_survives_a_restart(own_bed: OwnBed, tmp_path: Path) -> None:
    bed = own_bed(nodes=1)
    await install(bed)
    (tmp_path / "token").write_text(TOKEN)
    Authority(tmp_path, "ca").issue("server", "wukong", addresses=["127.0.0.1"])
    async with bed.client() as client:
        await until_served(client, path_of("Move", ""))
        rights = list_permissions([SPOT], {HOOK.name: HookOptions(address=":0")})
        kubeconfig = await service_account(client, bed, "default", "hooked", rights, tmp_path)
        (node,) = (await client.get("/api/v1/nodes"))["items"]
        place = f"/api/v1/nodes/{node['metadata']['name']}"
        await client.patch(place, {"spec": {"providerID": PROVIDER_ID}})
        log = tmp_path / "run.log"
        with component_running(kubeconfig, tmp_path, log):
            answer = await send(tmp_path, log, {"instanceID": "i-0a1b", "seconds": 3600, "source": "test"})
            assert answer["changed"] is True
            closed = await client.wait_until(place, lambda it: effects_of(it) == ["NoSchedule"])
            assert closed["spec"]["unschedulable"] is True
        with component_running(kubeconfig, tmp_path, log):
            answer = await send(tmp_path, log, {"instanceID": "i-0a1b", "seconds": 3600, "source": "test"})
            assert answer["changed"] is False, "it was on the Node all the time, and its end is not postponed"
            await send(tmp_path, log, {"providerID": PROVIDER_ID, "action": "withdraw", "source": "test"})
            opened = await client.wait_until(place, lambda it: effects_of(it) == [])
            assert "unschedulable" not in opened["spec"]
    assert used_by(bed, ACCOUNT) >= {("", "nodes", verb) for verb in ("get", "list", "patch")}


async def send(folder: Path, log: Path, body: dict[str, Any]) -> dict[str, Any]:
    """To the port that the log names once it listens."""
    found = re.compile(r"the hook listens.*port=(\d+)")
    await when(lambda: found.search(log.read_text()) is not None, log.read_text)
    port = found.findall(log.read_text())[-1]
    tls = ssl.create_default_context(cafile=folder / "ca.crt")
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with (
        asyncio.timeout(30),
        ClientSession() as session,
        session.post(f"https://127.0.0.1:{port}/notices", json=body, headers=headers, ssl=tls) as answer,
    ):
        text = await answer.text()
        assert answer.status == 200, text
        decoded: dict[str, Any] = json.loads(text)
        return decoded


@contextlib.contextmanager
def component_running(kubeconfig: Path, folder: Path, log: Path) -> Iterator[None]:
    words = ["run", "--components", "spot", "--kubeconfig", str(kubeconfig), "--lease", "default/wukong"]
    words += ["--hook", "127.0.0.1:0", "--hook-token-file", str(folder / "token")]
    words += ["--hook-cert", str(folder / "server.crt"), "--hook-key", str(folder / "server.key")]
    with log.open("wb") as output:
        process = subprocess.Popen([sys.executable, "-m", "wukong", *words], stdout=output, stderr=output)
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        code = process.wait(30)
    assert code == 0, log.read_text()
