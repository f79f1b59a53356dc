"""Tokens, token files, plugins, certificates: what is shown to the server, and when it is looked up again."""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from scripted_api_server import refuses, says, served
from testbed.certificates import make
from wukong.api.kinds import NODES
from wukong.api.resources import Key
from wukong.cluster.credentials import Credentials, load
from wukong.cluster.kube import Kube
from wukong.cluster.kubeconfig import ClusterEntry, Exec, Login, UserEntry
from wukong.errors import ClusterError, Denied, InputError
from wukong.serve.site import serve

KEY = Key("", "n")
VERSION = "client.authentication.k8s.io/v1"


class Now:
    seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


def login(user: UserEntry, **cluster: Any) -> Login:
    return Login(place="config", cluster=ClusterEntry(server="http://127.0.0.1:1", **cluster), user=user)


def a_plugin(folder: Path, printed: str, code: int = 0, **more: Any) -> UserEntry:
    """A plugin that prints this; it also counts its runs and keeps what it was asked."""
    script = folder / "plugin.py"
    script.write_text(
        "import os, pathlib, sys\n"
        f"folder = pathlib.Path({str(folder)!r})\n"
        "runs = folder / 'runs'\n"
        "count = int(runs.read_text()) + 1 if runs.exists() else 1\n"
        "runs.write_text(str(count))\n"
        "(folder / 'asked').write_text(os.environ['KUBERNETES_EXEC_INFO'])\n"
        "sys.stderr.write('please log in')\n"
        f"print({printed!r}.replace('COUNT', str(count)))\n"
        f"sys.exit({code})\n"
    )
    return UserEntry(exec=Exec(command=sys.executable, args=[str(script)], **more))


def granting(version: str = VERSION, **status: str) -> str:
    return json.dumps({"apiVersion": version, "kind": "ExecCredential", "status": status})


@pytest.mark.parametrize(
    ("user", "headers"),
    [
        (UserEntry(), {}),
        (UserEntry(token="t"), {"Authorization": "Bearer t"}),
        (UserEntry(username="u", password="p"), {"Authorization": "Basic dTpw"}),
        (UserEntry(token="t", as_user="me", as_groups=["g"]), {"Impersonate-User": "me", "Impersonate-Group": "g"}),
    ],
)
async def test_who_we_are_is_in_the_headers(user: UserEntry, headers: dict[str, str]) -> None:
    async with served(says({}), user=user) as (kube, script):
        await kube.get(NODES, KEY, dict)
    headers_sent = script.asked[0].headers
    assert {name: headers_sent[name] for name in headers} == headers
    assert headers or "Authorization" not in headers_sent


async def test_a_token_file_is_read_again_after_a_minute_and_wins_over_the_token(tmp_path: Path) -> None:
    file, now = tmp_path / "token", Now()
    file.write_text("first\n")
    credentials = Credentials(login(UserEntry(token="old", token_file=str(file))), now=now)
    tokens = []
    for step in (0, 30, 31):
        now.seconds += step
        tokens.append((await credentials.headers())[0][1])
        file.write_text("second\n")
    file.unlink()
    now.seconds += 61
    tokens.append((await credentials.headers())[0][1])
    assert tokens == ["Bearer first", "Bearer first", "Bearer second", "Bearer second"]


async def test_a_refused_token_is_looked_up_again_at_once(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("first")
    async with served(says({}), refuses(401), says({}), user=UserEntry(token_file=str(file))) as (kube, script):
        await kube.get(NODES, KEY, dict)
        file.write_text("second")
        await kube.get(NODES, KEY, dict)
    tokens = [request.headers["Authorization"] for request in script.asked]
    assert tokens == ["Bearer first", "Bearer first", "Bearer second"]


async def test_a_401_with_nothing_new_to_show_is_denied() -> None:
    async with served(refuses(401, "Unauthorized"), user=UserEntry(token="t")) as (kube, _):
        with pytest.raises(Denied) as caught:
            await kube.get(NODES, KEY, dict)
    assert caught.value.code == 401


@pytest.mark.parametrize("version", [VERSION, "client.authentication.k8s.io/v1beta1"])
async def test_a_plugin_is_run_once_until_it_expires_or_is_refused(tmp_path: Path, version: str) -> None:
    printed = granting(version, token="token-COUNT", expirationTimestamp="1970-01-01T00:20:00Z")
    user, now = a_plugin(tmp_path, printed, api_version=version, provide_cluster_info=True), Now()
    credentials = Credentials(login(user, tls_server_name="api"), now=now)
    both = await asyncio.gather(credentials.headers(), credentials.headers())
    assert [dict(headers_sent) for headers_sent in both] == [{"Authorization": "Bearer token-1"}] * 2
    request = json.loads((tmp_path / "asked").read_text())
    assert (request["apiVersion"], request["kind"]) == (version, "ExecCredential")
    assert request["spec"]["cluster"] == {"server": "http://127.0.0.1:1", "tls-server-name": "api"}
    assert await credentials.renew(both[0])
    assert await credentials.renew(both[0])  # as a second request refused at the same time: no further run
    assert (tmp_path / "runs").read_text() == "2"
    now.seconds = 1200.0
    assert await credentials.headers() == (("Authorization", "Bearer token-3"),)


@pytest.mark.parametrize(
    ("printed", "code", "expected"),
    [
        ("", 3, "ended with code 3: please log in"),
        ("hello", 0, "expected an ExecCredential as JSON, got 6 bytes that are none"),
        ('{"a":' + "[" * 5000, 0, "expected an ExecCredential as JSON, got 5006 bytes that are none"),
        (granting(token="a\nb"), 0, "$.status.token: expected one line of text"),
        (granting("client.authentication.k8s.io/v1beta1", token="t"), 0, f"expected an ExecCredential of {VERSION}"),
        (granting(), 0, "expected a token, or a client certificate with its key, got neither"),
        (granting(token="t", expirationTimestamp="soon"), 0, "$.status.expirationTimestamp"),
    ],
)
async def test_a_plugin_that_fails_is_named(tmp_path: Path, printed: str, code: int, expected: str) -> None:
    with pytest.raises(Denied) as caught:
        await Credentials(login(a_plugin(tmp_path, printed, code))).headers()
    assert expected in str(caught.value)
    assert str(caught.value).startswith("config: ")


async def test_a_plugin_that_is_not_there_comes_with_its_hint() -> None:
    user = UserEntry(exec=Exec(command="no-such-plugin", install_hint="Get it at example.com."))
    with pytest.raises(InputError, match=r"cannot run no-such-plugin: .* Get it at example\.com\."):
        await Credentials(login(user)).headers()


async def test_a_plugin_may_give_certificates_and_a_new_one_wants_new_connections(tmp_path: Path) -> None:
    make(tmp_path / "keys", "https://127.0.0.1:1", "10.0.0.1")

    def granted(client: str) -> str:
        certificate, key = ((tmp_path / "keys" / f"{client}.{end}").read_text() for end in ("crt", "key"))
        return granting(clientCertificateData=certificate, clientKeyData=key)

    user = a_plugin(tmp_path, granted("admin"))
    credentials = Credentials(Login(place="p", cluster=ClusterEntry(server="https://h"), user=user))
    headers = await credentials.headers()
    assert (headers, credentials.generation) == ((), 0)
    assert not await credentials.renew(headers)  # the same pair again
    a_plugin(tmp_path, granted("scheduler"))
    assert await credentials.renew(headers)
    assert credentials.generation == 1


def connect(client: ssl.SSLContext, server: ssl.SSLContext) -> str:
    """Whom the server saw, by a handshake in memory."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    calling = client.wrap_bio(to_client, to_server)
    answering = server.wrap_bio(to_server, to_client, server_side=True)
    waiting = [calling, answering]
    for side in [calling, answering] * 4:
        if side in waiting:
            try:
                side.do_handshake()
                waiting.remove(side)
            except ssl.SSLWantReadError:
                pass
    assert not waiting
    subject: Any = (answering.getpeercert() or {}).get("subject", ())
    return str(dict(pair for group in subject for pair in group)["commonName"])


@pytest.mark.parametrize("broken", ["cut key", "cut certificate", "other's key", "empty", "gone"])
async def test_a_certificate_caught_half_written_is_read_again(
    tmp_path: Path, broken: str, caplog: pytest.LogCaptureFixture
) -> None:
    make(tmp_path / "keys", "https://127.0.0.1:1", "10.0.0.1")
    certificate, key = tmp_path / "client.crt", tmp_path / "client.key"

    def issue(name: str) -> tuple[bytes, bytes]:
        first, second = ((tmp_path / "keys" / f"{name}.{end}").read_bytes() for end in ("crt", "key"))
        return first, second

    def write(first: bytes, second: bytes) -> None:
        certificate.write_bytes(first)
        key.write_bytes(second)

    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(tmp_path / "keys" / "apiserver.crt", tmp_path / "keys" / "apiserver.key")
    server.load_verify_locations(tmp_path / "keys" / "ca.crt")
    server.verify_mode = ssl.CERT_REQUIRED
    old, new = issue("admin"), issue("scheduler")
    write(*old)
    user = UserEntry(client_certificate=str(certificate), client_key=str(key))
    credentials = Credentials(Login(place="p", cluster=ClusterEntry(server="https://h"), user=user))
    assert credentials.tls is not None
    before = connect(credentials.tls, server)
    write(
        new[0][:300] if broken == "cut certificate" else b"" if broken == "empty" else new[0],
        new[1][:100] if broken == "cut key" else old[1] if broken == "other's key" else new[1],
    )
    if broken == "gone":
        key.unlink()
    assert not await credentials.renew(())
    assert (connect(credentials.tls, server), credentials.generation) == (before, 0)
    write(*new)
    assert await credentials.renew(())
    assert credentials.generation == 1
    assert connect(credentials.tls, server) != before
    assert "PRIVATE" not in caplog.text


async def test_a_replaced_authority_is_trusted_and_the_old_one_no_longer(tmp_path: Path) -> None:
    for name in ("old", "new"):
        make(tmp_path / name, "https://127.0.0.1:1", "10.0.0.1")
    mounted = tmp_path / "ca.crt"
    mounted.write_bytes((tmp_path / "old" / "ca.crt").read_bytes())

    async def serve_as(stack: AsyncExitStack, name: str) -> int:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(tmp_path / name / "apiserver.crt", tmp_path / name / "apiserver.key")
        app = web.Application()
        app.router.add_get("/{path:.*}", answer_with_a_node)
        return await serve(stack, app, "127.0.0.1", 0, tls)

    async with AsyncExitStack() as stack:
        old_port, new_port = await serve_as(stack, "old"), await serve_as(stack, "new")
        cluster = ClusterEntry(server=f"https://127.0.0.1:{old_port}", certificate_authority=str(mounted))
        credentials = Credentials(Login(place="p", cluster=cluster, user=UserEntry(token="t")))
        kube = await stack.enter_async_context(Kube(credentials))
        await kube.get(NODES, KEY, dict)
        credentials.server = f"https://127.0.0.1:{new_port}"
        for content in (b"", b"-----BEGIN CERTIFICATE-----\nhalf", (tmp_path / "new" / "ca.crt").read_bytes()):
            mounted.write_bytes(content)
            with pytest.raises(ClusterError, match="cannot be trusted"):
                await kube.get(NODES, KEY, dict)
        await kube.get(NODES, KEY, dict)
        credentials.server = f"https://127.0.0.1:{old_port}"
        with pytest.raises(ClusterError, match="cannot be trusted"):
            await kube.get(NODES, KEY, dict)


async def answer_with_a_node(_: web.Request) -> web.Response:
    return web.json_response({"metadata": {"name": "n"}})


def test_an_empty_authority_is_not_the_systems(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").touch()
    cluster = ClusterEntry(server="https://h", certificate_authority=str(tmp_path / "ca.crt"))
    with pytest.raises(InputError, match="expected certificates in PEM, got nothing"):
        Credentials(Login(place="p", cluster=cluster))


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"half\nof", b"a\0b"])
async def test_a_token_file_caught_half_written_is_read_again(tmp_path: Path, content: bytes) -> None:
    file, now = tmp_path / "token", Now()
    file.write_text("first")
    credentials = Credentials(login(UserEntry(token_file=str(file))), now=now)
    headers = await credentials.headers()
    file.write_bytes(content)
    now.seconds += 61
    assert await credentials.headers() == headers
    file.write_text("second")
    assert await credentials.renew(headers)
    assert await credentials.headers() == (("Authorization", "Bearer second"),)


@pytest.mark.parametrize("content", [b"\xff\xfe", b"half\nof"])
async def test_a_token_file_that_never_was_one_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "token").write_bytes(content)
    with pytest.raises(InputError, match=r"config: tokenFile: .*token"):
        await Credentials(login(UserEntry(token_file=str(tmp_path / "token")))).headers()


async def test_a_file_that_is_not_there_is_named_with_the_reason_alone(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing")
    reason = rf"cannot read {missing}: No such file or directory\.$"
    with pytest.raises(InputError, match=f"tokenFile: {reason}"):
        await Credentials(login(UserEntry(token_file=missing))).headers()
    cluster = ClusterEntry(server="https://h", certificate_authority=missing)
    with pytest.raises(InputError, match=f"certificate-authority: {reason}"):
        Credentials(Login(place="p", cluster=cluster, user=UserEntry(token="t")))


def test_an_encrypted_key_is_refused_and_nobody_is_asked(tmp_path: Path) -> None:
    locked = serialization.BestAvailableEncryption(b"secret")
    encrypted = ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, locked
    )
    user = UserEntry(client_certificate=str(tmp_path / "c"), client_key=str(tmp_path / "k"))
    make(tmp_path / "keys", "https://127.0.0.1:1", "10.0.0.1")
    (tmp_path / "c").write_bytes((tmp_path / "keys" / "admin.crt").read_bytes())
    (tmp_path / "k").write_bytes(encrypted)
    with pytest.raises(InputError, match="do not work: the key is encrypted"):
        Credentials(Login(place="p", cluster=ClusterEntry(server="https://h"), user=user))


def test_tls_is_verified_unless_the_kubeconfig_says_otherwise() -> None:
    secure = Credentials(Login(place="p", cluster=ClusterEntry(server="https://h")))
    assert secure.tls is not None
    assert (secure.tls.verify_mode, secure.tls.check_hostname) == (ssl.CERT_REQUIRED, True)
    skipping = ClusterEntry(server="https://h", insecure_skip_tls_verify=True)
    insecure = Credentials(Login(place="p", cluster=skipping))
    assert insecure.tls is not None
    assert (insecure.tls.verify_mode, insecure.tls.check_hostname) == (ssl.CERT_NONE, False)


@pytest.mark.parametrize(
    ("cluster", "user", "expected"),
    [
        (ClusterEntry(certificate_authority="/none.pem"), UserEntry(), "certificate-authority: cannot read /none.pem"),
        (ClusterEntry(certificate_authority_data="bm9uZQ=="), UserEntry(), "expected certificates in PEM"),
        (ClusterEntry(), UserEntry(client_certificate_data="eA==", client_key_data="eA=="), "Are they PEM"),
        (ClusterEntry(proxy_url="socks5://p"), UserEntry(), "SOCKS is not supported"),
        (ClusterEntry(proxy_url="socks5://me:pw@p"), UserEntry(), "got 'socks5://***@p'"),
        (ClusterEntry(proxy_url="http://me:pw@[p"), UserEntry(), "got 'http://***@[p'"),
    ],
)
def test_what_cannot_be_used_is_said_with_its_place(cluster: ClusterEntry, user: UserEntry, expected: str) -> None:
    cluster.server = "https://h"
    with pytest.raises(InputError, match=r"^config") as caught:
        Credentials(Login(place="config", cluster=cluster, user=user))
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    ("env", "searched"), [({}, "~/.kube/config"), ({"KUBECONFIG": "/nowhere/config"}, "/nowhere/config")]
)
def test_where_a_kubeconfig_was_looked_for_is_said(env: dict[str, str], searched: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"^{searched}: there is no kubeconfig, and this is no pod"):
        load(env={"HOME": str(tmp_path), **env})
