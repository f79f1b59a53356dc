"""The extender listens with mutual TLS where it has certificates, and in plain HTTP where it is told to."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import AsyncExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiohttp import ClientError, ClientSession, TCPConnector

from testbed import connections
from testbed.certificates import Authority
from wukong.actions import Note
from wukong.api.kinds import PODS
from wukong.api.resources import Key
from wukong.app.component import Context
from wukong.app.components.extender import server
from wukong.app.components.extender.options import ExtenderOptions
from wukong.app.components.extender.server import ExtenderServer
from wukong.app.own_pod import find_own_pod
from wukong.placement.rules import BUILT_IN
from wukong.replies.extender.verbs import Extender
from wukong.runtime import Loop
from wukong.runtime.metrics import Metrics
from wukong.runtime.performer import Performer
from wukong.serve.site import serve
from wukong.serve.tls import CertificateFiles
from wukong.state import State


class Hand:
    def __init__(self, seconds: float = 1000.0) -> None:
        self.seconds = seconds

    def now(self) -> float:
        return self.seconds


class Recorder:
    """A performer that only notes what it is given."""

    def __init__(self) -> None:
        self.notes: asyncio.Queue[Note] = asyncio.Queue()

    async def perform(self, note: Note, now: float) -> None:
        self.notes.put_nowait(note)


async def start(stack: AsyncExitStack, options: ExtenderOptions, monkeypatch: pytest.MonkeyPatch) -> int:
    """Start the extender as `wukong run` does, with what it needs of a loop. Returns its port."""
    ports: list[int] = []

    async def note_port(*arguments: Any) -> int:
        ports.append(await serve(*arguments))
        return ports[0]

    monkeypatch.setattr(server, "serve", note_port)
    state = State()
    mirror = SimpleNamespace(ages=SimpleNamespace(staleness_of=lambda kind, now: 0.0))
    loop = cast(Loop, SimpleNamespace(mirror=mirror, performer=None, state=state, is_ready=True))
    context = Context(state, Metrics(), Hand(), BUILT_IN, {})
    closing = await stack.enter_async_context(AsyncExitStack())
    beside = await ExtenderServer(lambda _: Extender(state), options, context).start(stack, loop)
    beside.close()
    closing.push_async_callback(connections.cut, ports[0])  # closed after the server
    return ports[0]


async def request_status(url: str, tls: ssl.SSLContext | bool) -> int:
    """The status, 0 if the connection is refused."""
    async with ClientSession(connector=TCPConnector(ssl=tls)) as session:
        try:
            async with session.get(url) as answer:
                return answer.status
        except (ClientError, ssl.SSLError):
            return 0


async def test_with_certificates_it_speaks_tls_to_who_has_one_and_to_nobody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = Authority(tmp_path, "ca")
    authority.issue("server", "wukong", addresses=["127.0.0.1"])
    authority.issue("client", "kube-scheduler")
    options = ExtenderOptions(
        address="127.0.0.1:0",
        cert=str(tmp_path / "server.crt"),
        key=str(tmp_path / "server.key"),
        client_ca=str(tmp_path / "ca.crt"),
    )
    unknown = ssl.create_default_context(cafile=tmp_path / "ca.crt")
    known = ssl.create_default_context(cafile=tmp_path / "ca.crt")
    known.load_cert_chain(tmp_path / "client.crt", tmp_path / "client.key")
    async with AsyncExitStack() as stack:
        port = await start(stack, options, monkeypatch)
        assert await request_status(f"https://127.0.0.1:{port}/healthz", known) == 200
        assert await request_status(f"https://127.0.0.1:{port}/healthz", unknown) == 0
        assert await request_status(f"http://127.0.0.1:{port}/healthz", True) in (0, 400)


async def test_plain_http_is_spoken_only_where_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    options = ExtenderOptions(address="127.0.0.1:0", plain_http=True)
    async with AsyncExitStack() as stack:
        port = await start(stack, options, monkeypatch)
        assert await request_status(f"http://127.0.0.1:{port}/healthz", True) == 200


@pytest.mark.parametrize(("variables", "expected"), [
    ({"POD_NAMESPACE": "wukong", "POD_NAME": "wukong-1"}, Key("wukong", "wukong-1")),
    ({"POD_NAMESPACE": "wukong"}, None),
    ({"POD_NAME": "wukong-1"}, None),
    ({}, None),
])  # fmt: skip
def test_its_own_pod_is_known_by_both_variables(variables: dict[str, str], expected: Key | None) -> None:
    assert find_own_pod(variables) == expected


async def test_beside_it_certificates_are_watched_and_the_notes_of_answers_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = Authority(tmp_path, "ca")
    authority.issue("server", "wukong", addresses=["127.0.0.1"])
    files = CertificateFiles(*(tmp_path / name for name in ("server.crt", "server.key", "ca.crt")))
    monkeypatch.setenv("POD_NAMESPACE", "wukong")
    monkeypatch.setenv("POD_NAME", "wukong-1")
    recorder, metrics, clock = Recorder(), Metrics(), Hand(max(files.expiries().values()))
    context = Context(State(), metrics, clock, BUILT_IN, {})
    answering = server.CountingExtender(Extender(State()), metrics, clock)
    starting = ExtenderServer(lambda _: Extender(State()), ExtenderOptions(address="127.0.0.1:0"), context)
    beside = asyncio.create_task(starting._run_beside(answering, files, cast(Performer, recorder)))
    async with asyncio.timeout(60):
        warning = await recorder.notes.get()
        assert (warning.reason, warning.key, warning.is_warning) == (
            "CertificateExpires",
            Key("wukong", "wukong-1"),
            True,
        )
        answering.notes.append(Note(PODS, Key("shop", "web"), "CapacityFallback", "so it was"))
        answering.has_notes.set()
        assert (await recorder.notes.get()).reason == "CapacityFallback"
    beside.cancel()
