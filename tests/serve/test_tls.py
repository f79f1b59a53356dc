"""Mutual TLS: who has no certificate of ours is not listened to, and certificates are renewed without a restart."""

from __future__ import annotations

import asyncio
import os
import ssl
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from aiohttp import ClientConnectionError, ClientSession, TCPConnector
from cryptography.hazmat.primitives import serialization

from serve.deciding import Extender
from serve.test_extender import Noon
from testbed import connections
from testbed.certificates import Authority
from wukong.app.install.certificates import issue
from wukong.errors import InputError
from wukong.runtime.metrics import ExtenderMetrics, Metrics
from wukong.serve.extender.server import build_extender_app
from wukong.serve.site import serve
from wukong.serve.tls import CertificateFiles

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)


class Party:
    """An authority, a server it vouches for and a client."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder
        authority = Authority(folder, "ca")
        authority.issue("server", "wukong", addresses=["127.0.0.1"])
        authority.issue("client", "kube-scheduler")

    def client(self, believes: Party) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=believes.folder / "ca.crt")
        context.load_cert_chain(self.folder / "client.crt", self.folder / "client.key")
        return context

    def give(self, folder: Path) -> None:
        """Put the server's files where it reads them, the way kubelet does: others take their place at once."""
        for name in ("server.crt", "server.key", "ca.crt"):
            fresh = folder / f"{name}.new"
            fresh.write_bytes((self.folder / name).read_bytes())
            os.replace(fresh, folder / name)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "mounted"
    folder.mkdir()
    return folder


def context_of(files: Path) -> ssl.SSLContext:
    return CertificateFiles(files / "server.crt", files / "server.key", files / "ca.crt").build_context()


async def started(stack: AsyncExitStack, files: Path) -> str:
    app = build_extender_app(Extender(["a"]), Noon(), ExtenderMetrics(Metrics()), Noon())
    closing = await stack.enter_async_context(AsyncExitStack())
    port = await serve(stack, app, "127.0.0.1", 0, context_of(files))
    closing.push_async_callback(connections.cut, port)  # closed after the server
    return f"https://127.0.0.1:{port}/healthz"


async def request_status(url: str, tls: ssl.SSLContext) -> int:
    """The status, 0 if the connection is refused."""
    async with ClientSession(connector=TCPConnector(ssl=tls)) as session:
        try:
            async with session.get(url) as answer:
                return answer.status
        except (ClientConnectionError, ssl.SSLError):
            return 0


def test_only_a_client_with_a_certificate_of_ours_is_answered(tmp_path: Path, files: Path) -> None:
    async def story() -> None:
        ours, theirs = Party(tmp_path / "ours"), Party(tmp_path / "theirs")
        ours.give(files)
        async with AsyncExitStack() as stack:
            url = await started(stack, files)
            assert await request_status(url, ours.client(believes=ours)) == 200
            assert await request_status(url, theirs.client(believes=ours)) == 0
            assert await request_status(url, ssl.create_default_context(cafile=files / "ca.crt")) == 0

    asyncio.run(story())


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_new_files_hold_for_the_next_connection(tmp_path: Path, files: Path, version: ssl.TLSVersion) -> None:
    async def story() -> None:
        before, after = Party(tmp_path / "before"), Party(tmp_path / "after")
        before.give(files)
        async with AsyncExitStack() as stack:
            url = await started(stack, files)
            clients = [before.client(believes=before), after.client(believes=after), before.client(believes=after)]
            for client in clients:
                client.maximum_version = version
            assert [await request_status(url, client) for client in clients] == [200, 0, 0]
            after.give(files)
            assert [await request_status(url, client) for client in clients] == [0, 200, 0]

    asyncio.run(story())


def test_files_that_cannot_be_used_leave_the_last_good_ones(
    tmp_path: Path, files: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        ours = Party(tmp_path / "ours")
        ours.give(files)
        async with AsyncExitStack() as stack:
            url = await started(stack, files)
            (files / "server.crt").write_text("half a certif")
            assert await request_status(url, ours.client(believes=ours)) == 200
            (files / "server.key").unlink()
            assert await request_status(url, ours.client(believes=ours)) == 200
            ours.give(files)
            assert await request_status(url, ours.client(believes=ours)) == 200

    asyncio.run(story())
    assert caplog.text.count("certificates not reloaded") == 2


def test_expiry_follows_the_files_without_a_connection(
    tmp_path: Path, files: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def write(days: int) -> None:
        issued = issue("wukong", ["127.0.0.1"], NOW, days)
        for name, content in (
            ("server.crt", issued.server.certificate),
            ("server.key", issued.server.key),
            ("ca.crt", issued.authority),
        ):
            (files / name).write_bytes(content)
            os.utime(files / name, (days, days))

    def after(days: int) -> dict[str, float]:
        return dict.fromkeys(("server", "client-ca"), (NOW + timedelta(days=days)).timestamp())

    write(10)
    certificates = CertificateFiles(files / "server.crt", files / "server.key", files / "ca.crt")
    assert certificates.expiries() == after(10)
    (files / "server.crt").write_text("half a certif")
    for _ in range(3):
        assert certificates.expiries() == after(10)
    assert caplog.text.count("certificates not reloaded") == 1
    write(400)
    assert certificates.expiries() == after(400)


def test_of_authorities_one_suffices_and_of_a_chain_all_are_needed(files: Path) -> None:
    first, second = (issue("wukong", ["127.0.0.1"], NOW, days) for days in (10, 20))
    (files / "server.crt").write_bytes(second.server.certificate + first.authority)
    (files / "server.key").write_bytes(second.server.key)
    (files / "ca.crt").write_bytes(first.authority + second.authority)
    certificates = CertificateFiles(files / "server.crt", files / "server.key", files / "ca.crt")
    assert certificates.expiries() == {
        "server": (NOW + timedelta(days=10)).timestamp(),
        "client-ca": (NOW + timedelta(days=20)).timestamp(),
    }


def test_old_versions_of_tls_are_refused(tmp_path: Path, files: Path) -> None:
    Party(tmp_path / "ours").give(files)
    assert context_of(files).minimum_version is ssl.TLSVersion.TLSv1_2


@pytest.mark.parametrize("wrong", ["server.crt", "server.key", "ca.crt"])
@pytest.mark.parametrize("is_there", [True, False])
def test_a_wrong_file_is_named(tmp_path: Path, files: Path, wrong: str, is_there: bool) -> None:
    Party(tmp_path / "ours").give(files)
    if is_there:
        (files / wrong).write_text("no PEM")
    else:
        (files / wrong).unlink()
    with pytest.raises(InputError, match=str(files / wrong)):
        context_of(files)


def test_a_key_of_another_certificate_is_refused(tmp_path: Path, files: Path) -> None:
    Party(tmp_path / "ours").give(files)
    other = Party(tmp_path / "other")
    (files / "server.key").write_bytes((other.folder / "server.key").read_bytes())
    with pytest.raises(InputError, match="private key"):
        context_of(files)


def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    async def story() -> None:
        app = build_extender_app(Extender([]), Noon(), ExtenderMetrics(Metrics()), Noon())
        other = build_extender_app(Extender([]), Noon(), ExtenderMetrics(Metrics()), Noon())
        async with AsyncExitStack() as stack:
            port = await serve(stack, app, "127.0.0.1", 0)
            with pytest.raises(InputError, match=f"127.0.0.1:{port}: cannot listen there"):
                await serve(stack, other, "127.0.0.1", port)

    asyncio.run(story())


def test_an_encrypted_key_is_refused_and_nobody_is_asked(tmp_path: Path) -> None:
    issued = issue("wukong", ["127.0.0.1"], datetime.now(UTC), 10)
    key = serialization.load_pem_private_key(issued.server.key, None)
    locked = serialization.BestAvailableEncryption(b"secret")
    encrypted = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, locked)
    (tmp_path / "cert").write_bytes(issued.server.certificate)
    (tmp_path / "key").write_bytes(encrypted)
    with pytest.raises(InputError, match="the key is encrypted"):
        CertificateFiles(tmp_path / "cert", tmp_path / "key", None).build_context()
