"""The extender's handler: whatever form a request has, a strict client finds nothing wrong with the answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, cast

import pytest
from aiohttp import ClientSession, TCPConnector
from hypothesis import given, settings
from hypothesis import strategies as st

from serve.deciding import BUSY, LEAVING, Extender
from serve.strict import check_filter, check_preempt, check_prioritize
from wukong.errors import InputError
from wukong.placement.slices import Slices, finish
from wukong.runtime.metrics import ExtenderMetrics, Metrics
from wukong.serve.connections import Connections
from wukong.serve.extender import server
from wukong.serve.extender.server import Decision, RequestHandler, build_extender_app
from wukong.serve.site import serve

# "nnn" is kept, "n1nnn" is busy, "nn" leaves: see deciding.py
KEPT, BUSY_ONE, LEAVING_ONE, NEW = "nnn", "n1nnn", "nn", "nnnn-new"
KNOWN = [KEPT, BUSY_ONE, LEAVING_ONE, "node-1.example", "名前", 'quo"te,d']
POD = {"metadata": {"name": "web-1", "namespace": "shop", "uid": "u1"}, "spec": {"containers": [{"name": "main"}]}}
ANY = {"metadata": {"name": "any-1"}, "spec": {"containers": None}, "status": None}


@dataclass
class Noon:
    is_synced: bool = True

    def now(self) -> float:
        return 43200.0


def a_node(name: str, **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "annotations": {"big": '1e400 \u00e9 \\ "'}}, "status": {"x": 1.50}, **more}


def a_handler() -> RequestHandler:
    return RequestHandler(Extender(KNOWN), Noon())


def answer(slices: Slices[Decision]) -> bytes:
    """What a request is answered, without a pause."""
    return finish(finish(slices))


def encode(sent: Any, *, compact: bool = True, ascii_only: bool = True) -> bytes:
    separators = (",", ":") if compact else None
    return json.dumps(sent, separators=separators, ensure_ascii=ascii_only).encode()


def check_filtered(sent: dict[str, Any], **form: bool) -> tuple[list[str], dict[str, str], dict[str, str]]:
    return check_filter(sent, answer(a_handler().filter(encode(sent, **form))))


# Filter and prioritize ------------------------------------------------------------------------------------------------


def test_names_are_kept_or_refused_with_their_reasons() -> None:
    kept, failed, final = check_filtered({"Pod": POD, "Nodes": None, "NodeNames": [LEAVING_ONE, KEPT, BUSY_ONE]})
    assert (kept, failed, final) == ([KEPT], {BUSY_ONE: BUSY}, {LEAVING_ONE: LEAVING})


def test_nodes_are_echoed_byte_for_byte() -> None:
    kept, other = encode(a_node(KEPT), compact=False), encode(a_node(BUSY_ONE))
    body = b'{"Pod":%b,"Nodes":{"items":[%b, %b]},"NodeNames":null}' % (encode(POD), other, kept)
    answered = answer(a_handler().filter(body))
    check_filter(json.loads(body), answered)
    assert kept in answered
    assert other not in answered


@pytest.mark.parametrize("pod", [POD, ANY])
@pytest.mark.parametrize(
    "names", [[], [KEPT], KNOWN, KNOWN[::-1], [NEW], [KEPT, NEW], [KEPT, KEPT], [NEW, KEPT, NEW], [""]]
)
def test_every_list_of_nodes_is_accounted_for(pod: dict[str, Any], names: list[str]) -> None:
    handler = a_handler()
    items = [a_node(name) for name in names]
    for sent in (
        {"Pod": pod, "NodeNames": names},
        {"pod": pod, "nodenames": names},
        {"POD": pod, "nodeNames": names, "nodes": None},
        {"Pod": pod, "Nodes": {"metadata": {}, "items": items}, "NodeNames": None},
        {"pod": pod, "nodes": {"Items": items}},
        {"Pod": pod, "Nodes": {"items": [{"kind": "Node", "apiVersion": "v1", **item} for item in items]}},
        {"Pod": pod, "Nodes": {"items": [{"spec": {}, **item} for item in items]}},
    ):
        for form in ({}, {"compact": False}, {"ascii_only": False}):
            body = encode(sent, **form)
            check_filter(_items_spelled(sent), answer(handler.filter(body)))
            check_prioritize(_items_spelled(sent), answer(handler.prioritize(body)))


def _items_spelled(sent: dict[str, Any]) -> dict[str, Any]:
    return {**sent, "nodes": {"items": sent["nodes"]["Items"]}} if "Items" in (sent.get("nodes") or {}) else sent


def test_a_list_of_no_nodes_written_as_null_is_empty() -> None:
    sent = {"Pod": POD, "Nodes": {"metadata": {}, "items": None}, "NodeNames": None}
    assert check_filtered(sent) == ([], {}, {})


def test_scores_are_those_given_and_unknown_nodes_have_the_neutral_one() -> None:
    sent = {"Pod": POD, "NodeNames": [NEW, KEPT, "node-1.example"]}
    answered = answer(a_handler().prioritize(encode(sent)))
    assert check_prioritize(sent, answered) == {NEW: 5, KEPT: 3, "node-1.example": 3}


def test_nodes_the_mirror_does_not_know_are_read_from_the_request() -> None:
    extender = Extender(KNOWN)
    handler = RequestHandler(extender, Noon())
    for names, asked_of in (([KEPT], []), ([KEPT, "new-2", KEPT], [2])):
        sent = {"Pod": POD, "Nodes": {"items": [a_node(name) for name in names]}}
        check_filter(sent, answer(handler.filter(encode(sent))))
        assert extender.asked_of == asked_of
    sent = {"Pod": POD, "Nodes": {"items": [a_node("new-2")]}}
    assert check_prioritize(sent, answer(handler.prioritize(encode(sent)))) == {"new-2": 5}


def test_another_fleet_has_other_rows() -> None:
    extender = Extender(KNOWN)
    handler = RequestHandler(extender, Noon())
    sent = {"Pod": POD, "NodeNames": KNOWN}
    before = check_prioritize(sent, answer(handler.prioritize(encode(sent))))
    extender.known = Extender([NEW, *KNOWN[::-1]]).known
    assert check_prioritize(sent, answer(handler.prioritize(encode(sent)))) == before


names = st.one_of(st.sampled_from(KNOWN), st.text(st.characters(exclude_categories=["Cs"]), max_size=8))


@pytest.mark.slow
@given(st.lists(names, max_size=12), st.booleans(), st.booleans(), st.sampled_from([POD, ANY]), st.booleans())
@settings(max_examples=300)
def test_any_names_in_any_form(given: list[str], full: bool, compact: bool, pod: dict[str, Any], plain: bool) -> None:
    offered = {"Nodes": {"items": [a_node(name) for name in given]}} if full else {"NodeNames": given}
    sent, handler = {"Pod": pod, **offered}, a_handler()
    body = encode(sent, compact=compact, ascii_only=plain)
    check_filter(sent, answer(handler.filter(body)))
    check_prioritize(sent, answer(handler.prioritize(body)))


# Preempt --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lower", [False, True])
def test_victims_come_back_as_uids_whichever_way_they_were_sent(lower: bool) -> None:
    meta = {KEPT: {"Pods": [{"UID": "a"}, {"UID": "b"}], "NumPDBViolations": 1}, "even": {"Pods": None}, "odd": None}
    pods = [{"metadata": {"name": name, "uid": name}, "spec": {"containers": None}} for name in "ab"]
    full = {KEPT: {"Pods": pods, "NumPDBViolations": 2}, "even": {"Pods": pods}}
    for field, victims in (("NodeNameToMetaVictims", meta), ("NodeNameToVictims", full)):
        sent = {"Pod": POD, field.lower() if lower else field: victims}
        remaining = check_preempt(sent, answer(a_handler().preempt(encode(sent))))
        assert remaining == {KEPT: ["a", "b"], **({"odd": []} if "odd" in victims else {})}


def test_no_candidates_are_no_candidates() -> None:
    for nothing in cast("list[object]", [None, {}]):
        sent = {"Pod": POD, "NodeNameToVictims": None, "NodeNameToMetaVictims": nothing}
        assert check_preempt(sent, answer(a_handler().preempt(encode(sent)))) == {}


# Bad requests ---------------------------------------------------------------------------------------------------------

OFFER = b'"NodeNames":["nnn"]'


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "truncated"),
        (b"[]", "Expected `object`"),
        (b'{"Pod":{},' + OFFER, "truncated"),
        (b"{" + OFFER + b"}", "Pod: expected a pod"),
        (b'{"Pod":null,' + OFFER + b"}", "Pod: expected a pod"),
        (b'{"Pod":7,' + OFFER + b"}", "Pod"),
        (b'{"Pod":{"metadata":{"name":7}},' + OFFER + b"}", "$.metadata.name"),
        (b'{"Pod":{"spec":{"priority":%b}},%b}' % (b"9" * 5000, OFFER), "Pod"),
        (b'{"Pod":{}}', "either Nodes or NodeNames"),
        (b'{"Pod":{},"Nodes":{"items":[]},' + OFFER + b"}", "either Nodes or NodeNames"),
        (b'{"Pod":{},"NodeNames":{"a":1}}', "NodeNames: expected a list"),
        (b'{"Pod":{},"NodeNames":["a",null]}', "NodeNames: expected a list"),
        (b'{"Pod":{},"NodeNames":["a",7]}', "NodeNames: expected a list"),
        (b'{"Pod":{},"Nodes":[]}', "Nodes"),
        (b'{"Pod":{},"Nodes":{"items":[null]}}', "Nodes.items[0]"),
        (b'{"Pod":{},"Nodes":{"items":[{"metadata":{}}]}}', "Nodes.items[0]"),
        (b'{"Pod":{},"Nodes":{"items":[{"metadata":{"name":"x"},"spec":7}]}}', "Nodes.items[0]"),
        (b'{"Pod":{"x":"\xff"},' + OFFER + b"}", "not UTF-8"),
        (b'{"Pod":{"x":' + b"[" * 99_999 + b"]" * 99_999 + b"}," + OFFER + b"}", "too deeply"),
        (b'{"Pod":{"spec":' + b'{"a":' * 900 + b"null" + b"}" * 900 + b',"priority":null},"x":', "broken JSON"),
    ],
)  # fmt: skip
def test_a_body_that_cannot_be_read_says_where(body: bytes, said: str) -> None:
    for verb in (a_handler().filter, a_handler().prioritize):
        with pytest.raises(InputError) as caught:
            finish(verb(body))
        assert said in str(caught.value)


@pytest.mark.parametrize(
    "victims",
    [b"7", b'{"n":7}', b'{"n":{"Pods":7}}', b'{"n":{"Pods":[7]}}', b'{"n":{"NumPDBViolations":9223372036854775808}}'],
)
def test_victims_that_cannot_be_read_are_named(victims: bytes) -> None:
    for field in (b"NodeNameToVictims", b"NodeNameToMetaVictims"):
        with pytest.raises(InputError, match=field.decode()):
            finish(a_handler().preempt(b'{"Pod":{},"%b":%b}' % (field, victims)))


# Over HTTP ------------------------------------------------------------------------------------------------------------

Story = Callable[[ClientSession, Noon, Metrics], Awaitable[None]]


def play(story: Story, **options: int) -> None:
    asyncio.run(_told(story, **options))


async def _told(story: Story, **options: int) -> None:
    async with served(**options) as (client, noon, metrics):
        await story(client, noon, metrics)


@asynccontextmanager
async def served(**options: int) -> AsyncIterator[tuple[ClientSession, Noon, Metrics]]:
    noon, metrics = Noon(), Metrics()
    app = build_extender_app(Extender(KNOWN), noon, ExtenderMetrics(metrics), noon, **options)
    async with AsyncExitStack() as stack:
        port = await serve(stack, app, "127.0.0.1", 0)
        async with ClientSession(f"http://127.0.0.1:{port}") as client:
            yield client, noon, metrics


ASK = {"Pod": POD, "NodeNames": KNOWN}


def test_requests_over_one_connection_are_answered_and_counted() -> None:
    async def story(client: ClientSession, _: Noon, metrics: Metrics) -> None:
        for _turn in range(3):
            check_filter(ASK, await (await client.post("/filter", data=encode(ASK))).read())
            check_prioritize(ASK, await (await client.post("/prioritize", data=encode(ASK))).read())
        assert (await client.get("/healthz")).status == 200
        assert isinstance(client.connector, TCPConnector)
        assert [len(idle) for idle in client.connector._conns.values()] == [1]
        text = metrics.text().decode()
        assert 'wukong_extender_requests_total{code="200",verb="filter"} 3.0' in text
        assert 'wukong_extender_seconds_bucket{le="0.0005",verb="prioritize"}' in text

    play(story)


def test_answers_to_what_is_wrong_are_json_with_a_reason() -> None:
    async def story(client: ClientSession, noon: Noon, _: Metrics) -> None:
        async def answer(method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, str]:
            response = await client.request(method, path, data=body, headers=headers)
            return response.status, (await response.json())["error"]

        assert await answer("GET", "/filter") == (405, "/filter answers POST, not GET")
        assert (await answer("POST", "/bind"))[0] == 404
        assert (await answer("POST", "/preempt", b"{"))[0] == 400
        assert (await answer("POST", "/filter", b"{}", **{"Content-Encoding": "gzip"}))[0] == 415
        assert (await answer("POST", "/filter", b"x" * 2001))[0] == 413
        noon.is_synced = False
        assert await answer("POST", "/filter", encode(ASK)) == (503, "not every kind has been listed yet")

    play(story, limit_bytes=2000)


def test_a_chunked_body_over_the_limit_is_refused() -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(3):
            yield b"x" * 1000

    async def story(client: ClientSession, _: Noon, __: Metrics) -> None:
        assert (await client.post("/filter", data=chunks())).status == 413

    play(story, limit_bytes=2000)


async def send_half_a_body(port: int, size: int) -> asyncio.StreamWriter:
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"POST /filter HTTP/1.1\r\nHost: x\r\nContent-Length: {2 * size}\r\n\r\n".encode() + b" " * size)
    await writer.drain()
    return writer


def test_all_bodies_together_are_bounded_and_what_is_over_is_given_back() -> None:
    async def story(client: ClientSession, _: Noon, __: Metrics) -> None:
        assert client._base_url is not None
        port = client._base_url.port
        assert port is not None
        writers = [await send_half_a_body(port, 1500) for _ in range(2)]
        body = encode(ASK).ljust(1900)
        statuses = [(await client.post("/filter", data=body)).status for _ in range(3)]
        assert statuses == [503] * 3
        for writer in writers:
            writer.transport.abort()
        async with asyncio.timeout(60):
            while (await client.post("/filter", data=body)).status != 200:
                await asyncio.sleep(0.01)

    play(story, limit_bytes=4000, total_bytes=4000)


def test_a_body_that_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "BODY_SECONDS", 0.05)

    async def endless() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.Event().wait()

    async def story(client: ClientSession, _: Noon, __: Metrics) -> None:
        response = await client.post("/filter", data=endless())
        assert (response.status, (await response.json())["error"]) == (408, "the body did not come within 0.05 s")

    play(story)


@pytest.mark.slow
def test_whoever_does_not_read_a_large_answer_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "BODY_SECONDS", 0.3)
    body = encode({"Pod": POD, "NodeNames": [f"node-{number:09}" for number in range(400_000)]})

    async def story() -> None:
        app = build_extender_app(Extender(KNOWN), Noon(), ExtenderMetrics(Metrics()), Noon())
        connections = Connections(8)
        async with AsyncExitStack() as stack, asyncio.timeout(60):
            port = await serve(stack, app, "127.0.0.1", 0, None, connections)
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
            writer.write(f"POST /prioritize HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
            await writer.drain()
            assert len(connections) == 1
            while len(connections):
                await asyncio.sleep(0.01)
            with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
                await reader.readexactly(15_000_000)
            writer.close()

    asyncio.run(story())


def test_a_mistake_of_ours_lets_scheduling_go_on_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def story(client: ClientSession, _: Noon, metrics: Metrics) -> None:
        body = encode({"Pod": {"metadata": {"name": "broken"}}, "NodeNames": [KEPT]})
        assert (await client.post("/filter", data=body)).status == 503
        assert 'wukong_extender_requests_total{code="503",verb="filter"} 1.0' in metrics.text().decode()

    play(story)
    assert "a mistake of ours" in caplog.text
