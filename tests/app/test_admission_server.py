"""The webhooks as `wukong run` starts them: with files that somebody keeps, or a certificate of their own."""

from __future__ import annotations

import asyncio
import base64
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import pytest
from aiohttp import ClientConnectorCertificateError, ClientSession

from admission_reviews import a_new_pod, a_review, encode, read_answer
from wukong.api.kinds import NAMESPACES, SECRETS
from wukong.api.resources import Key
from wukong.app.component import Context
from wukong.app.components.admission import ADMISSION, AdmissionOptions
from wukong.app.components.admission import server as admission_server
from wukong.app.components.admission.rotation import RotationTimes, now_of, take_step
from wukong.app.live import WallClock
from wukong.embedded.store import Server, Store
from wukong.errors import InputError
from wukong.placement.rules import BUILT_IN
from wukong.runtime import Loop, Metrics
from wukong.serve.site import serve
from wukong.state import State

HOST = "wukong-admission.wukong-system.svc"
EXPIRY = "wukong_admission_certificate_expiry_timestamp_seconds"


class Site(NamedTuple):
    port: int
    metrics: Metrics
    server: Server

    async def review(self, authority: bytes) -> dict[str, Any]:
        tls = ssl.create_default_context(cadata=authority.decode())
        async with ClientSession() as session:
            url = f"https://127.0.0.1:{self.port}/mutate"
            async with session.post(url, data=encode(a_review(a_new_pod())), ssl=tls, server_hostname=HOST) as answer:
                assert answer.status == 200
                return read_answer(await answer.read())


@asynccontextmanager
async def running(options: AdmissionOptions, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Site]:
    ports: list[int] = []

    async def note_port(*arguments: Any) -> int:
        ports.append(await serve(*arguments))
        return ports[0]

    monkeypatch.setattr(admission_server, "serve", note_port)
    clock = WallClock()
    server = Server(clock)
    server.create(NAMESPACES, {"metadata": {"name": "wukong-system"}})
    metrics, state = Metrics(), State()
    loop = cast(Loop, SimpleNamespace(cluster=Store(server=server), is_leading=True, is_synced=True))
    (webhooks,) = ADMISSION.build_servers(options, Context(state, metrics, clock, BUILT_IN, {}))
    async with AsyncExitStack() as stack:
        beside = asyncio.ensure_future(await webhooks.start(stack, loop))
        stack.callback(beside.cancel)
        yield Site(ports[0], metrics, server)


async def test_it_serves_the_files_it_is_given_and_makes_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = take_step("create", None, (HOST,), now_of(time.time()), RotationTimes())
    (tmp_path / "tls.crt").write_bytes(keys.server.certificate)
    (tmp_path / "tls.key").write_bytes(keys.server.key)
    options = AdmissionOptions(address="127.0.0.1:0", cert=str(tmp_path / "tls.crt"), key=str(tmp_path / "tls.key"))
    async with running(options, monkeypatch) as site:
        assert (await site.review(keys.bundle))["allowed"] is True
        assert site.server.list(SECRETS).items == []
        assert (site.metrics.registry.get_sample_value(EXPIRY) or 0) > 0


async def test_without_files_it_makes_a_certificate_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(AdmissionOptions(address="127.0.0.1:0"), monkeypatch) as site:
        async with asyncio.timeout(60):
            while not site.metrics.registry.get_sample_value(EXPIRY):
                await asyncio.sleep(0.01)
        data = site.server.get(SECRETS, Key("wukong-system", "wukong-admission-certificates"))["data"]
        assert (await site.review(base64.b64decode(data["ca.crt"])))["allowed"] is True
        other = take_step("create", None, (HOST,), now_of(time.time()), RotationTimes())
        with pytest.raises(ClientConnectorCertificateError):
            await site.review(other.bundle)


async def test_a_port_that_is_taken_is_told_by_its_option(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(AdmissionOptions(address="127.0.0.1:0"), monkeypatch) as site:
        with pytest.raises(InputError, match=r"--admission: 127\.0\.0\.1"):
            async with running(AdmissionOptions(address=f"127.0.0.1:{site.port}"), monkeypatch):
                pass
