"""The webhooks' own certificates are made, renewed and replaced in time, and never without being believed."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import ClientSession, web
from cryptography import x509

from runtime.virtual import LoopClock, play
from wukong.api.kinds import NAMESPACES, SECRETS
from wukong.api.resources import Key
from wukong.app.components.admission.certificate_keeper import CertificateKeeper
from wukong.app.components.admission.options import AdmissionOptions
from wukong.app.components.admission.rotation import (
    RETIRE_SECONDS,
    Keys,
    RotationTimes,
    Step,
    decide_step,
    decode_keys,
    encode_keys,
    now_of,
    take_step,
)
from wukong.app.install.certificates import Pair
from wukong.embedded.store import Server, Store
from wukong.embedded.world.clock import VirtualClock
from wukong.errors import InputError
from wukong.serve.site import serve
from wukong.serve.tls import CertificateFiles, HeldCertificate

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
TIMES = RotationTimes(lifetime=timedelta(days=90), spread_seconds=60)
HOSTS = ("wukong-admission.wukong-system.svc",)
DAY = timedelta(days=1)


def create(now: datetime = NOW) -> Keys:
    return take_step("create", None, HOSTS, now, TIMES)


def decide(keys: Keys | None, now: datetime, *, is_next_known: bool = True, hosts: tuple[str, ...] = HOSTS) -> Step:
    return decide_step(keys, hosts, is_next_known, now, TIMES)


def test_there_are_none_so_some_are_made_and_kept() -> None:
    assert decide(None, NOW) == "create"
    assert decide(create(), NOW) == "keep"
    assert decide(create(), NOW + 59 * DAY) == "keep"


def test_a_server_is_renewed_in_its_last_third_by_the_same_authority() -> None:
    keys, later = create(), NOW + 61 * DAY
    assert decide(keys, later) == "renew"
    renewed = take_step("renew", keys, HOSTS, later, TIMES)
    assert renewed.authority == keys.authority
    assert renewed.server != keys.server
    assert decide(renewed, later) == "keep"


def test_a_server_of_other_names_is_renewed() -> None:
    assert decide(create(), NOW, hosts=("elsewhere.wukong-system.svc",)) == "renew"


def test_an_authority_near_its_end_has_a_next_one_that_signs_only_when_it_is_known() -> None:
    keys, later = create(), NOW + 241 * DAY
    assert decide(keys, later) == "prepare"
    prepared = take_step("prepare", keys, HOSTS, later, TIMES)
    assert (prepared.authority, prepared.server) == (keys.authority, keys.server)
    assert prepared.next is not None
    assert prepared.bundle == keys.authority.certificate + prepared.next.certificate
    soon = later + timedelta(seconds=TIMES.spread_seconds)
    assert decide(prepared, soon - timedelta(seconds=5)) != "promote"  # API servers may not have heard of it
    assert decide(prepared, soon, is_next_known=False) != "promote"
    assert decide(prepared, soon) == "promote"
    promoted = take_step("promote", prepared, HOSTS, soon, TIMES)
    assert promoted.authority == prepared.next
    assert promoted.bundle == prepared.next.certificate + keys.authority.certificate
    assert decide(promoted, soon) == "keep"
    assert decide(promoted, soon + timedelta(seconds=RETIRE_SECONDS)) == "retire"
    assert take_step("retire", promoted, HOSTS, soon, TIMES).bundle == prepared.next.certificate


def test_an_authority_that_has_expired_is_replaced_at_once() -> None:
    keys, later = create(), NOW + 400 * DAY
    prepared = take_step("prepare", keys, HOSTS, later, TIMES)
    assert decide(prepared, later, is_next_known=False) == "promote"


def test_keys_that_do_not_fit_together_are_made_anew() -> None:
    keys, other = create(), create()
    for broken in (
        msgspec.structs.replace(keys, authority=other.authority),
        msgspec.structs.replace(keys, server=Pair(keys.server.certificate, other.server.key)),
        msgspec.structs.replace(keys, server=Pair(b"nonsense", b"nonsense")),
        msgspec.structs.replace(keys, next=Pair(b"", b"")),
    ):
        assert decide(broken, NOW) == "create"


def test_a_secret_holds_what_was_put_into_it() -> None:
    for keys in (create(), take_step("prepare", create(), HOSTS, NOW, TIMES)):
        data = {name: content for name, content in encode_keys(keys).items() if content is not None}
        assert decode_keys(data) == keys
    bad: list[dict[str, Any]] = [{}, {"ca.crt": "x"}, {**data, "tls.key": "%"}, {**data, "tls.key": 1}]
    assert [decode_keys(entry) for entry in bad] == [None] * 4


@pytest.mark.slow
def test_for_years_what_any_instance_serves_is_believed_by_any_api_server() -> None:
    """Instances are up to 10 s late to serve what is new, API servers up to 60 s to believe it."""
    keys, now = create(), NOW
    secrets: list[tuple[datetime, Keys]] = [(now, keys)]
    steps: list[Step] = []
    while now < NOW + 800 * DAY:
        step = decide(keys, now)
        if step == "keep":
            now += timedelta(hours=12) if keys.next is None else timedelta(seconds=10)
            continue
        steps.append(step)
        keys = take_step(step, keys, HOSTS, now, TIMES)
        secrets.append((now, keys))
        now += timedelta(seconds=10)
    assert {"renew", "prepare", "promote", "retire"} <= set(steps)
    for (_, before), (at, after) in pairwise(secrets):
        # Right after a change: some serve what was there 10 s ago, some API servers believe what was there 60 s ago.
        served = [entry for when, entry in secrets if at - timedelta(seconds=10) <= when <= at] + [before]
        believed = [entry for when, entry in secrets if at - timedelta(seconds=60) < when <= at] + [before]
        for server in (after, *served):
            for authorities in (after, *believed):
                assert is_believed(server, authorities), f"{at}: {steps}"
        assert x509.load_pem_x509_certificate(after.server.certificate).not_valid_after_utc > at


def is_believed(server: Keys, authorities: Keys) -> bool:
    certificate = x509.load_pem_x509_certificate(server.server.certificate)
    for authority in x509.load_pem_x509_certificates(authorities.bundle):
        try:
            certificate.verify_directly_issued_by(authority)
        except Exception:
            continue
        return True
    return False


# Served ------------------------------------------------------------------------------------------------------------


async def test_a_held_certificate_is_served_from_the_next_connection_on() -> None:
    held, first, second = HeldCertificate(), create(), create()
    app = web.Application()

    async def say_ok(_: web.Request) -> web.Response:
        return web.Response(text="ok")

    app.router.add_get("/", say_ok)
    async with AsyncExitStack() as stack:
        port = await serve(stack, app, "127.0.0.1", 0, held.build_context())

        async def ask(keys: Keys) -> str:
            tls = ssl.create_default_context(cadata=keys.authority.certificate.decode())
            async with ClientSession() as session:
                url = f"https://127.0.0.1:{port}/"
                async with session.get(url, ssl=tls, server_hostname=HOSTS[0]) as answer:
                    return await answer.text()

        with pytest.raises(Exception, match=r"(?i)alert|ssl|disconnect|reset"):
            await ask(first)
        held.use(first.server.certificate, first.server.key)
        assert await ask(first) == "ok"
        with pytest.raises(InputError):
            held.use(b"nonsense", b"")
        assert await ask(first) == "ok"
        held.use(second.server.certificate, second.server.key)
        assert await ask(second) == "ok"
        with pytest.raises(Exception, match="CERTIFICATE_VERIFY_FAILED"):
            await ask(first)


def test_files_without_an_authority_of_clients_ask_nobody_for_a_certificate(tmp_path: Path) -> None:
    keys = create()
    (tmp_path / "tls.crt").write_bytes(keys.server.certificate)
    (tmp_path / "tls.key").write_bytes(keys.server.key)
    files = CertificateFiles(tmp_path / "tls.crt", tmp_path / "tls.key", None)
    assert files.build_context().verify_mode == ssl.CERT_NONE
    assert list(files.expiries()) == ["server"]


async def test_who_leads_makes_them_and_the_others_serve_what_they_find() -> None:
    clock = VirtualClock()
    server = Server(clock)
    server.create(NAMESPACES, {"metadata": {"name": "wukong-system"}})
    cluster, options = Store(server=server), AdmissionOptions()
    leads = {"first": False, "second": False}
    first, second = (
        CertificateKeeper(cluster, options, HeldCertificate(), clock, lambda name=name: leads[name])  # type: ignore[misc]
        for name in leads
    )
    await first.look()
    assert first.expires_at() == 0.0
    leads["first"] = True
    await first.look()
    await second.look()
    assert first.expires_at() == second.expires_at() > clock.now()
    secret = server.get(SECRETS, Key("wukong-system", "wukong-admission-certificates"))
    assert set(secret["data"]) == {"ca.crt", "ca.key", "tls.crt", "tls.key"}
    version = secret["metadata"]["resourceVersion"]
    await first.look()
    unchanged = server.get(SECRETS, Key("wukong-system", "wukong-admission-certificates"))
    assert unchanged["metadata"]["resourceVersion"] == version
    clock.move_to(clock.now() + 61 * 86_400)
    await first.look()
    assert first.expires_at() > second.expires_at()
    await second.look()
    assert first.expires_at() == second.expires_at()


def test_who_begins_to_lead_looks_at_once() -> None:
    """In virtual time: nobody waits."""

    async def run() -> float:
        clock = LoopClock()
        server = Server(clock)
        server.create(NAMESPACES, {"metadata": {"name": "wukong-system"}})
        loop, leads_from = asyncio.get_running_loop(), 3.0
        keeper = CertificateKeeper(
            Store(server=server), AdmissionOptions(), HeldCertificate(), clock, lambda: loop.time() >= leads_from
        )
        keys = encode_keys(take_step("create", None, ("elsewhere",), now_of(clock.now()), TIMES))
        secret = {name: content for name, content in keys.items() if content is not None}
        meta = {"name": "wukong-admission-certificates"}
        server.create(SECRETS, {"metadata": meta, "type": "Opaque", "data": secret}, "wukong-system")
        running = asyncio.ensure_future(keeper.run())
        while server.get(SECRETS, Key("wukong-system", meta["name"]))["data"] == secret:
            await asyncio.sleep(0.1)
        running.cancel()
        return loop.time()

    assert 3.0 <= play(run()) < 4.0
