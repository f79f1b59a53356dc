"""The hook as `wukong run` starts it, on an embedded cluster: what is sent ends on the Node, or nowhere."""

from __future__ import annotations

import asyncio
import json
import os
import random
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import pytest
from aiohttp import ClientSession

from serve.test_fuzz import ODD_VALUES, encode_oddly, spoiled
from testbed.certificates import Authority
from wukong.api.kinds import NODES
from wukong.api.resources import Key
from wukong.app.component import Context
from wukong.app.components.hook import HOOK
from wukong.app.components.hook import server as hook_server
from wukong.app.components.hook.options import HookOptions, find_problems
from wukong.app.components.hook.server import list_ids
from wukong.app.components.spot import SPOT
from wukong.embedded.store import Server, Store
from wukong.errors import Conflict, InputError, ServerFailed
from wukong.placement.leaving_nodes import NOTICE
from wukong.placement.rules import BUILT_IN
from wukong.ports import Document, PatchBody
from wukong.runtime import Loop, Metrics
from wukong.serve.notices.server import LIMIT_BYTES
from wukong.serve.site import serve
from wukong.state import State

NOW = 1_800_000_000.0
IN_TWO_MINUTES = "2027-01-15T08:02:00Z"
TOKEN = "a-token-of-the-hook-0123"
PROVIDER_ID = "aws:///eu-west-1a/i-0a1b"
REQUESTS = 4000
SEED = int(os.environ.get("FUZZ_SEED", "20261118"))


class Noon:
    seconds = NOW

    def now(self) -> float:
        return self.seconds


class FlakyStore(Store):
    """Conflicts and fails as often as it is told to."""

    conflicts = 0
    fails = False

    async def patch(self, resource: Any, key: Key, patch: PatchBody, subresource: str = "") -> Document:
        if self.fails:
            raise ServerFailed("no quorum")
        if self.conflicts:
            self.conflicts -= 1
            raise Conflict("it changed")
        return await super().patch(resource, key, patch, subresource)


class Site(NamedTuple):
    url: str
    cluster: FlakyStore
    session: ClientSession
    clock: Noon
    metrics: Metrics

    async def send(self, body: object, *, token: str = TOKEN, **options: Any) -> tuple[int, Any]:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        async with self.session.post(f"{self.url}/notices", data=data, headers=headers, **options) as answer:
            return answer.status, json.loads(await answer.read())

    def notice_on(self, node: str) -> Any:
        text = self.cluster.server.get(NODES, Key("", node))["metadata"].get("annotations", {}).get(NOTICE)
        return text and json.loads(text)


RunHook = Callable[[], AbstractAsyncContextManager[Site]]


@pytest.fixture
def hook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunHook:
    (tmp_path / "token").write_text(TOKEN)
    options = HookOptions(address="127.0.0.1:0", token_file=str(tmp_path / "token"), plain_http=True)
    return partial(hook_running, options, monkeypatch)


@asynccontextmanager
async def hook_running(options: HookOptions, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Site]:
    ports: list[int] = []

    async def note_port(*arguments: Any) -> int:
        ports.append(await serve(*arguments))
        return ports[0]

    monkeypatch.setattr(hook_server, "serve", note_port)
    clock, metrics = Noon(), Metrics()
    server = Server(clock)
    for name, provider_id in (("n1", PROVIDER_ID), ("n2", "azure:///vmss/x/3"), ("n3", "azure:///vmss/y/3")):
        server.create(NODES, {"metadata": {"name": name}, "spec": {"providerID": provider_id}})
    cluster = FlakyStore(server=server)
    (hook,) = HOOK.build_servers(options, Context(State(), metrics, clock, BUILT_IN, {}))
    async with AsyncExitStack() as stack:
        beside = asyncio.ensure_future(await hook.start(stack, cast(Loop, SimpleNamespace(cluster=cluster))))
        stack.callback(beside.cancel)
        session = await stack.enter_async_context(ClientSession())
        scheme = "http" if options.plain_http else "https"
        yield Site(f"{scheme}://127.0.0.1:{ports[0]}", cluster, session, clock, metrics)


@pytest.mark.parametrize("machine", [{"node": "n1"}, {"providerID": PROVIDER_ID}, {"instanceID": "i-0a1b"}])
async def test_a_notice_ends_on_its_node_however_that_is_named(hook: RunHook, machine: dict[str, str]) -> None:
    async with hook() as site:
        code, answer = await site.send({**machine, "seconds": 120, "source": "eventbridge"})
        written = {"source": "hook eventbridge", "action": "terminate", "deadline": IN_TWO_MINUTES}
        assert (code, answer["node"], answer["changed"]) == (200, "n1", True)
        assert json.loads(answer["notice"]) == written
        assert site.notice_on("n1") == written


async def test_the_same_notice_again_changes_nothing_and_does_not_postpone_the_end(hook: RunHook) -> None:
    async with hook() as site:
        await site.send({"node": "n1", "seconds": 120})
        version = site.cluster.server.get(NODES, Key("", "n1"))["metadata"]["resourceVersion"]
        site.clock.seconds += 30
        code, answer = await site.send({"node": "n1", "seconds": 120})
        assert (code, answer["changed"]) == (200, False)
        assert site.cluster.server.get(NODES, Key("", "n1"))["metadata"]["resourceVersion"] == version


async def test_a_moment_and_a_recommendation_and_a_withdrawal(hook: RunHook) -> None:
    async with hook() as site:
        await site.send({"node": "n1", "action": "rebalance"})
        assert site.notice_on("n1") == {"source": "hook hook", "course": "Recommend", "action": "rebalance"}
        await site.send({"node": "n1", "deadline": IN_TWO_MINUTES, "action": "stop"})
        assert site.notice_on("n1") == {"source": "hook hook", "action": "stop", "deadline": IN_TWO_MINUTES}
        code, answer = await site.send({"node": "n1", "action": "withdraw", "source": "somebody else"})
        assert (code, answer["changed"]) == (200, False), "only who said it takes it back"
        code, answer = await site.send({"node": "n1", "action": "withdraw"})
        assert (code, answer["changed"], answer["notice"]) == (200, True, None)
        assert site.notice_on("n1") is None


async def test_who_shows_no_token_or_another_learns_and_changes_nothing(hook: RunHook) -> None:
    async with hook() as site:
        for token in ("", "another-token-01234567", TOKEN[:-1]):
            assert (await site.send({"node": "n1", "seconds": 1}, token=token))[0] == 401
            assert (await site.send({"node": "nowhere"}, token=token))[0] == 401
        async with site.session.get(f"{site.url}/notices") as answer:
            assert (answer.status, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
        assert site.notice_on("n1") is None


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"", "broken JSON"),
        (b"{", "broken JSON"),
        (b"\xff", "broken JSON"),
        (b"[]", "the body: "),
        (b'{"node": 7}', "the body: "),
        (b'{"node": ' + b"[" * 1000 + b"]" * 1000 + b"}", "nested too deeply"),
        ({"node": ".."}, "node: expected the name of a Node"),
        ({"node": "n1?x=y"}, "node: expected the name of a Node"),
        (b'{"node": "n1", "node": "n2"}', "twice"),
        ({}, "expected one of node, providerID, instanceID, got none."),
        ({"node": "n1", "instanceID": "i-0a1b"}, "got 2."),
        ({"node": "../pods"}, "node: expected the name of a Node"),
        ({"node": "a b"}, "the machine: expected its name or id"),
        ({"node": "x" * 501}, "the machine: expected its name or id"),
        ({"node": "n1", "second": 5}, "second"),
        ({"node": "n1", "seconds": 5, "deadline": IN_TWO_MINUTES}, "seconds, deadline: expected one of the two"),
        ({"node": "n1", "seconds": -1}, "seconds: expected from 0 to 604800, got -1."),
        ({"node": "n1", "seconds": 604_801}, "seconds: expected from 0"),
        (b'{"node": "n1", "seconds": 1e999}', "number"),
        ({"node": "n1", "deadline": "soon"}, "deadline: expected a moment such as 2026-11-18T10:02:00Z, got 'soon'."),
        ({"node": "n1", "action": "terminat"}, 'Did you mean "terminate"?'),
        ({"node": "n1", "source": ""}, "source: expected a short name"),
        ({"node": "n1", "source": "a\nb"}, "source: expected a short name"),
    ],
)
async def test_what_is_wrong_is_said_and_nothing_is_written(hook: RunHook, body: object, problem: str) -> None:
    async with hook() as site:
        code, answer = await site.send(body)
        assert code == 400
        assert problem.lower() in answer["error"].lower()
        assert site.notice_on("n1") is None


async def test_every_problem_is_said_at_once(hook: RunHook) -> None:
    async with hook() as site:
        _, answer = await site.send({"seconds": -1, "action": "x", "source": "\n"})
        assert len(answer["error"].splitlines()) == 4


async def test_machines_that_are_not_there_or_not_one(hook: RunHook) -> None:
    async with hook() as site:
        assert (await site.send({"node": "n9"}))[0] == 404
        assert (await site.send({"instanceID": "i-9"}))[0] == 404
        assert (await site.send({"instanceID": "3"}))[0] == 409


async def test_a_machine_that_came_after_the_last_look_is_found_some_seconds_later(hook: RunHook) -> None:
    async with hook() as site:
        assert (await site.send({"instanceID": "i-new"}))[0] == 404
        site.cluster.server.create(NODES, {"metadata": {"name": "n4"}, "spec": {"providerID": "aws:///a/i-new"}})
        assert (await site.send({"instanceID": "i-new"}))[0] == 404, "all nodes are not listed for every wrong id"
        site.clock.seconds += 5
        assert (await site.send({"instanceID": "i-new"}))[0] == 200


async def test_a_node_that_changes_meanwhile_is_read_again_and_a_server_that_fails_is_said(hook: RunHook) -> None:
    async with hook() as site:
        site.cluster.conflicts = 4
        assert (await site.send({"node": "n1", "seconds": 1}))[0] == 200
        site.cluster.conflicts = 100
        assert (await site.send({"node": "n2", "seconds": 1}))[0] == 503
        site.cluster.conflicts, site.cluster.fails = 0, True
        code, answer = await site.send({"node": "n2", "seconds": 1})
        assert (code, answer["error"]) == (503, "the API server did not take it; the log says why")
        site.cluster.fails = False
        assert (await site.send({"node": "n2", "seconds": 1}))[0] == 200


async def test_other_paths_methods_sizes_and_encodings_are_refused(hook: RunHook) -> None:
    async with hook() as site:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with site.session.get(f"{site.url}/notices", headers=headers) as answer:
            assert (answer.status, answer.headers["Allow"]) == (405, "POST")
        async with site.session.get(f"{site.url}/healthz") as answer:
            assert answer.status == 200
        async with site.session.post(f"{site.url}/", headers=headers) as answer:
            assert answer.status == 404
        assert (await site.send(b" " * (LIMIT_BYTES + 1)))[0] == 413

        async def pieces() -> AsyncIterator[bytes]:
            for _ in range(LIMIT_BYTES // 1024 + 1):
                yield b" " * 1024

        async with site.session.post(f"{site.url}/notices", headers=headers, data=pieces()) as answer:
            assert answer.status == 413
        async with site.session.post(
            f"{site.url}/notices", headers={**headers, "Content-Encoding": "gzip"}, data=b"{}"
        ) as answer:
            assert answer.status == 415
        assert b'wukong_hook_answers_total{code="413"} 2.0' in site.metrics.text()


@pytest.mark.slow
async def test_whatever_is_sent_the_hook_lives_and_never_answers_5xx(hook: RunHook) -> None:
    """Thousands of bodies, half of them right in form; a failure names its seed: FUZZ_SEED=7 plays it again."""
    async with hook() as site:
        chance = random.Random(SEED)
        good: list[Document] = [
            {"node": "n1", "seconds": 120, "source": "fuzz"},
            {"instanceID": "i-0a1b", "deadline": IN_TWO_MINUTES, "action": "stop"},
            {"providerID": "azure:///vmss/x/3", "action": "rebalance"},
            {"node": "n3", "action": "withdraw", "source": "fuzz"},
        ]
        codes: dict[int, int] = {}
        for number in range(REQUESTS):
            document: Any = dict(chance.choice(good))
            if chance.random() < 0.5:
                document[chance.choice([*document, "extra"])] = chance.choice(ODD_VALUES)
            data = encode_oddly(chance, document)
            if chance.random() < 0.3:
                data = spoiled(chance, data)
            code, _ = await site.send(data)
            assert code < 500, f"FUZZ_SEED={SEED}, number {number}: {data!r}"
            codes[code] = codes.get(code, 0) + 1
        assert codes.keys() >= {200, 400}, codes
        assert min(codes[200], codes[400]) > REQUESTS // 10, codes
        site.clock.seconds += 60
        assert (await site.send({"node": "n1", "seconds": 1}))[0] == 200


# How it starts --------------------------------------------------------------------------------------------------------


async def test_it_speaks_tls_with_the_files_that_it_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "token").write_text(TOKEN)
    Authority(tmp_path, "ca").issue("server", "wukong", addresses=["127.0.0.1"])
    options = HookOptions(
        address="127.0.0.1:0",
        token_file=str(tmp_path / "token"),
        cert=str(tmp_path / "server.crt"),
        key=str(tmp_path / "server.key"),
    )
    tls = ssl.create_default_context(cafile=tmp_path / "ca.crt")
    async with hook_running(options, monkeypatch) as site:
        assert (await site.send({"node": "n1", "seconds": 1}, ssl=tls))[0] == 200
        assert site.url.startswith("https://")


async def test_without_a_token_it_does_not_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = HookOptions(address="127.0.0.1:0", token_file=str(tmp_path / "none"), plain_http=True)
    with pytest.raises(InputError, match=r"--hook-token-file: .*cannot be read"):
        async with hook_running(options, monkeypatch):
            pass


def test_it_comes_with_the_component_spot_and_is_off() -> None:
    assert HOOK in SPOT.needs
    assert HOOK.build_servers(HookOptions(), Context(State(), None, Noon(), BUILT_IN, {})) == ()
    assert HOOK.permissions_of(HookOptions()) == ()
    (permission,) = HOOK.permissions_of(HookOptions(address=":8444"))
    assert (permission.resource, permission.verbs) == ("nodes", ("get", "list", "patch"))


@pytest.mark.parametrize(
    ("options", "problems"),
    [
        (HookOptions(), []),
        (HookOptions(address=":1", token_file="t", cert="c", key="k"), []),
        (HookOptions(address=":1", token_file="t", plain_http=True), []),
        (HookOptions(token_file="t"), ["--token_file: is about the hook, which is off. Say where it listens"]),
        (HookOptions(plain_http=True), ["--plain_http: is about the hook"]),
        (HookOptions(address="x", token_file="t", plain_http=True), ["--address: expected HOST:PORT"]),
        (HookOptions(address=":1", plain_http=True), ["--token_file: expected the file with the token"]),
        (HookOptions(address=":1", token_file="t"), ["--cert: the hook speaks TLS"]),
        (HookOptions(address=":1", token_file="t", cert="c"), ["--key: the hook speaks TLS"]),
        (
            HookOptions(address=":1", token_file="t", cert="c", key="k", plain_http=True),
            ["--plain_http: expected no certificate"],
        ),
    ],
)
def test_options_that_do_not_go_together_are_said(options: HookOptions, problems: list[str]) -> None:
    said = list(find_problems(options, lambda field: f"--{field}"))
    assert len(said) == len(problems)
    assert all(text.startswith(problem) for text, problem in zip(said, problems, strict=True))


@pytest.mark.parametrize(
    ("provider_id", "ids"),
    [
        ("aws:///eu-west-1a/i-0a1b", {"aws:///eu-west-1a/i-0a1b", "i-0a1b"}),
        ("cn-hangzhou.i-bp1", {"cn-hangzhou.i-bp1", "i-bp1"}),
        ("", set()),
    ],
)
def test_a_machine_is_known_by_its_whole_id_and_by_the_last_part(provider_id: str, ids: set[str]) -> None:
    assert list_ids(provider_id) == ids
