"""One request: what each answer, and each missing answer, becomes; what is sent for each method of the port."""

from __future__ import annotations

import asyncio
import gzip
import socket
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any

import msgspec
import pytest

from scripted_api_server import a_line, a_list, hangs_up, refuses, says, served, streams, waits
from wukong.api.core import Node, Pod
from wukong.api.kinds import NODES, PODS
from wukong.api.resources import Key
from wukong.api.unreadable import Unreadable
from wukong.cluster import http
from wukong.cluster.credentials import Credentials
from wukong.cluster.http import Http
from wukong.cluster.kube import Kube
from wukong.cluster.kubeconfig import ClusterEntry, Login
from wukong.errors import (
    AlreadyExists,
    ClusterError,
    Conflict,
    Denied,
    Gone,
    Invalid,
    NotFound,
    OutcomeUnknown,
    ServerFailed,
    Stalled,
    TooManyRequests,
)
from wukong.ports import PatchBody, Selection

KEY = Key("shop", "web")
PAGE = b"<html>502 Bad Gateway</html>"


@pytest.mark.parametrize(
    ("code", "reason", "read", "write"),
    [
        (400, "BadRequest", Invalid, Invalid),
        (401, "Unauthorized", Denied, Denied),
        (403, "Forbidden", Denied, Denied),
        (404, "NotFound", NotFound, NotFound),
        (405, "MethodNotAllowed", Invalid, Invalid),
        (409, "AlreadyExists", AlreadyExists, AlreadyExists),
        (409, "Conflict", Conflict, Conflict),
        (410, "Expired", Gone, Gone),
        (413, "RequestEntityTooLarge", Invalid, Invalid),
        (415, "UnsupportedMediaType", Invalid, Invalid),
        (422, "Invalid", Invalid, Invalid),
        (429, "TooManyRequests", TooManyRequests, TooManyRequests),
        (500, "InternalError", ServerFailed, ServerFailed),
        (500, "ServerTimeout", ServerFailed, OutcomeUnknown),
        (503, "ServiceUnavailable", ServerFailed, ServerFailed),
        (504, "Timeout", ServerFailed, OutcomeUnknown),
    ],
)
async def test_a_status_becomes_an_error(
    code: int, reason: str, read: type[ClusterError], write: type[ClusterError]
) -> None:
    async with served(*[refuses(code, reason, "because")] * 2) as (kube, _):
        with pytest.raises(ClusterError, match="because") as reading:
            await kube.get(PODS, KEY, dict)
        with pytest.raises(ClusterError) as writing:
            await kube.create(PODS, {}, "shop")
    assert (type(reading.value), type(writing.value)) == (read, write)
    assert (reading.value.code, reading.value.reason) == (code, reason)


@pytest.mark.parametrize(
    ("body", "code", "expected"),
    [
        (PAGE, 502, OutcomeUnknown),
        (PAGE, 503, OutcomeUnknown),
        (PAGE, 404, NotFound),
        (b"Unauthorized", 403, Denied),
        (b"Too many requests, please try again later.", 429, TooManyRequests),
        ({"kind": "Status", "message": "etcdserver: request timed out", "code": 500}, 500, OutcomeUnknown),
        (b"", 307, Invalid),
    ],
)
async def test_who_else_answers_a_write(body: object, code: int, expected: type[ClusterError]) -> None:
    async with served(says(body, code)) as (kube, _):
        with pytest.raises(ClusterError) as caught:
            await kube.delete(PODS, KEY)
    assert type(caught.value) is expected


async def test_how_long_to_wait_and_why_is_kept() -> None:
    status = {"kind": "Status", "reason": "TooManyRequests", "message": "budget", "code": 429}
    causes = [{"reason": "DisruptionBudget", "message": "needs 1 healthy pods"}]
    answers = [
        says({**status, "details": {"causes": causes, "retryAfterSeconds": 10}}, 429),
        says({**status, "details": {"retryAfterSeconds": 10}}, 429, Retry_After="3"),
        says({**status, "details": {"causes": None}}, 429),
    ]
    heard = []
    async with served(*answers) as (kube, _):
        for _unused in answers:
            with pytest.raises(TooManyRequests) as caught:
                await kube.evict(KEY)
            heard.append((caught.value.retry_after, caught.value.cause))
    assert heard == [(10.0, "DisruptionBudget"), (3.0, ""), (None, "")]


@pytest.mark.parametrize(
    ("header", "said", "expected"),
    [
        ("3", 0, 3.0),
        (" 7 ", 0, 7.0),
        ("86400", 0, 60.0),
        ("9" * 4000, 0, 60.0),
        ("-5", 0, 0.0),
        ("0", 10, 0.0),
        ("²", 10, 10.0),
        ("soon", 0, None),
        ("nan", 0, None),
        ("inf", 0, None),
        ("Wed, 21 Oct 2026 07:28:05 GMT", 0, 5.0),
        ("Wed, 21 Oct 2099 07:28:05 GMT", 0, 60.0),
        ("Wed, 21 Oct 1999 07:28:05 GMT", 0, 0.0),
        ("Wed, 99 Oct 2026 07:28:05 GMT", 0, None),
        ("", -10, 0.0),
        ("", 1e300, 60.0),
        ("", "long", None),
    ],
)
async def test_nobody_keeps_us_waiting_for_long(header: str, said: object, expected: float | None) -> None:
    status = {"kind": "Status", "reason": "TooManyRequests", "message": "no", "code": 429}
    details = {"details": {"retryAfterSeconds": said}}
    headers = {"Retry_After": header, "Date": "Wed, 21 Oct 2026 07:28:00 GMT"}
    async with served(says({**status, **details}, 429, **headers)) as (kube, _):
        with pytest.raises(TooManyRequests) as caught:
            await kube.evict(KEY)
    assert caught.value.retry_after == expected


async def test_an_error_nested_too_deeply_is_an_error_like_any_other() -> None:
    async with served(says(b'{"message": ' + b"[" * 20_000, 500)) as (kube, _):
        with pytest.raises(ServerFailed):
            await kube.get(PODS, KEY, dict)


async def test_a_line_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "LONGEST_LINE", 1000)
    async with served(streams(*[b"x" * 600] * 2)) as (kube, _):
        with pytest.raises(ServerFailed, match="a line of more than 1000 bytes"):
            await anext(kube.watch(PODS, Pod, resource_version="5"))


WRITES: list[Callable[[Kube], Awaitable[Any]]] = [
    lambda kube: kube.create(PODS, {}, "shop"),
    lambda kube: kube.patch(PODS, KEY, PatchBody("merge", {})),
    lambda kube: kube.delete(PODS, KEY),
    lambda kube: kube.evict(KEY),
    lambda kube: kube.bind(KEY, "n"),
    lambda kube: kube.scale(PODS, KEY, 1),
]


@pytest.mark.parametrize("write", WRITES)
async def test_a_write_whose_answer_is_lost_is_sent_once_and_its_outcome_unknown(
    write: Callable[[Kube], Awaitable[Any]],
) -> None:
    async with served(says({}), hangs_up) as (kube, script):
        await kube.get(PODS, KEY, dict)  # so that the connection is a used one, which aiohttp trusts less
        with pytest.raises(OutcomeUnknown):
            await write(kube)
    assert len(script.asked) == 2


async def test_a_read_whose_answer_is_lost_failed() -> None:
    async with served(hangs_up, hangs_up) as (kube, _):
        with pytest.raises(ServerFailed):
            await kube.get(PODS, KEY, dict)


async def test_where_nobody_listens_nothing_was_sent() -> None:
    with socket.socket() as taken:  # bound, and not listening
        taken.bind(("127.0.0.1", 0))
        server = f"http://127.0.0.1:{taken.getsockname()[1]}"
        async with Kube(Credentials(Login(place="p", cluster=ClusterEntry(server=server)))) as kube:
            with pytest.raises(ServerFailed, match="cannot be reached"):
                await kube.create(PODS, {}, "shop")


async def test_an_answer_that_does_not_come_in_time_leaves_a_write_open() -> None:
    over = asyncio.Event()
    async with served(waits(over), waits(over)) as (kube, script):
        async with Http(kube.credentials, answer_seconds=0.05) as http:
            with pytest.raises(OutcomeUnknown):
                await http.send("POST", "/api/v1/nodes", {})
            with pytest.raises(ServerFailed):
                await http.send("GET", "/api/v1/nodes")
        over.set()
    assert len(script.asked) == 2


async def test_a_watch_that_is_silent_for_too_long_is_cut() -> None:
    over = asyncio.Event()
    async with served(streams(a_line("ADDED", "a", 6), until=over), stall_seconds=0.05) as (kube, _):
        watch = kube.watch(PODS, Pod, resource_version="5")
        assert (await anext(watch)).type == "ADDED"
        with pytest.raises(Stalled, match=r"said nothing on a watch for 0.05 s"):
            await anext(watch)
        over.set()


DEEP = b'{"metadata":{"name":"deep"},"spec":' + b'{"a":' * 20_000 + b"1" + b"}" * 20_001


async def test_an_item_too_deep_to_be_skipped_leaves_the_rest_of_its_list() -> None:
    head = b'{"metadata":{"resourceVersion":"7","continue":"t"},"items":['
    async with served(says(head + b'{"metadata":{"name":"a"}},' + DEEP + b"]}")) as (kube, _):
        page = await kube.list(PODS, Pod)
    assert ([pod.metadata.name for pod in page.items], page.resource_version, page.token) == (["a"], "7", "t")
    assert [unreadable.metadata.name for unreadable in page.unreadable] == ["deep"]


@pytest.mark.parametrize(
    ("line", "type_"),
    [
        (b'{"type":"ADDED","object":' + DEEP + b"}\n", "ADDED"),
        (b'{"object": ' + DEEP + b', "type": "MODIFIED"}\n', "MODIFIED"),
    ],
    ids=["usual", "unusual"],
)
async def test_a_change_too_deep_to_be_skipped_is_an_unreadable_object(line: bytes, type_: str) -> None:
    async with served(streams(line)) as (kube, _):
        event = await anext(kube.watch(PODS, Pod, resource_version="5"))
    assert (event.type, type(event.object), event.object.metadata.name) == (type_, Unreadable, "deep")


async def test_a_bookmark_is_a_version_and_no_object() -> None:
    line = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "9"}, "spec": {"containers": None}}}
    async with served(*[streams(msgspec.json.encode(line) + b"\n")] * 2) as (kube, _):
        event: Any = await anext(kube.watch(PODS, dict, resource_version="5"))
        assert (event.type, event.object) == (
            "BOOKMARK",
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"resourceVersion": "9"}},
        )
        event = await anext(kube.watch(PODS, Pod, resource_version="5"))
        assert (event.object.kind, event.object.metadata.resource_version) == ("Pod", "9")


async def test_a_watch_and_a_list_whose_answers_never_begin_are_cut_as_well() -> None:
    over = asyncio.Event()
    async with served(waits(over), waits(over), stall_seconds=0.05) as (kube, _):
        with pytest.raises(Stalled):
            await anext(kube.watch(PODS, Pod, resource_version="5"))
        with pytest.raises(ServerFailed, match="was lost before it answered"):
            await kube.list(PODS, Pod)
        over.set()


async def test_a_proxy_is_asked_for_the_server() -> None:
    async with served(says({"metadata": {"resourceVersion": "7"}, "items": []})) as (direct, script):
        cluster = ClusterEntry(server="http://api.example:6443", proxy_url=direct.credentials.server)
        async with Kube(Credentials(Login(place="p", cluster=cluster))) as kube:
            assert (await kube.list(NODES, Node)).items == []
    assert (script.asked[0].headers["Host"], script.asked[0].path) == ("api.example:6443", "/api/v1/nodes")


async def test_gzip_is_unpacked_and_null_lists_are_empty() -> None:
    listed = {"metadata": {"resourceVersion": "7"}, "items": [{"metadata": {"name": "n"}, "spec": {"taints": None}}]}
    packed = gzip.compress(msgspec.json.encode(listed))
    none = {"metadata": {"resourceVersion": "8"}, "items": None}
    async with served(says(packed, Content_Encoding="gzip"), says(none)) as (kube, script):
        page = await kube.list(NODES, Node)
        assert [node.metadata.name for node in page.items] == ["n"]
        assert (await kube.list(NODES, Node)).items == []
    assert "gzip" in script.asked[0].headers["Accept-Encoding"]


@pytest.mark.parametrize("body", [b"<html>Welcome</html>", {"items": "none"}])
async def test_what_is_no_answer_of_an_api_server_is_said_so(body: object) -> None:
    async with served(says(body)) as (kube, _):
        with pytest.raises(ClusterError, match="the answer for /api/v1/nodes is not"):
            await kube.list(NODES, Node)


async def test_a_list_asks_for_what_it_is_told() -> None:
    async with served(*[says(a_list("a", version=7, token="more"))] * 2) as (kube, script):
        page = await kube.list(
            PODS, Pod, Selection("shop", "app=web", "spec.nodeName=n"), limit=5, resource_version="0"
        )
        await kube.list(PODS, Pod, Selection("shop"), limit=5, token=page.token, resource_version="0")
    assert (page.resource_version, page.token) == ("7", "more")
    assert [each.path for each in script.asked] == ["/api/v1/namespaces/shop/pods"] * 2
    selecting = {"labelSelector": "app=web", "fieldSelector": "spec.nodeName=n"}
    assert script.asked[0].query == {**selecting, "limit": "5", "resourceVersion": "0"}
    assert script.asked[1].query == {"limit": "5", "continue": "more"}  # the server refuses a version beside it


# Watches ----------------------------------------------------------------------------------------------------------


async def watched(*pieces: bytes, cut: bool = False) -> list[tuple[str, str]]:
    seen: list[tuple[str, str]] = []
    async with (
        served(streams(*pieces, cut=cut)) as (kube, script),
        aclosing(kube.watch(PODS, Pod, resource_version="5")) as events,
    ):
        try:
            async for event in events:
                seen.append((event.type, event.object.metadata.name or event.object.metadata.resource_version))
        except ClusterError as error:
            seen.append((type(error).__name__, error.reason))
    assert script.asked[0].query["resourceVersion"] == "5"
    assert script.asked[0].query["allowWatchBookmarks"] == "true"
    return seen


async def test_lines_may_come_in_any_pieces() -> None:
    text = a_line("ADDED", "a", 6) + a_line("MODIFIED", "b", 7) + a_line("DELETED", "c", 8)
    expected = [("ADDED", "a"), ("MODIFIED", "b"), ("DELETED", "c")]
    assert await watched(text) == expected
    assert await watched(*(text[at : at + 7] for at in range(0, len(text), 7))) == expected


async def test_a_line_may_be_as_large_as_an_object() -> None:
    big = a_line("ADDED", "a", 6, data={"x": "y" * 3_000_000})
    assert await watched(big) == [("ADDED", "a")]


async def test_a_bookmark_has_only_a_version() -> None:
    assert await watched(a_line("BOOKMARK", "", 9, spec={"containers": None})) == [("BOOKMARK", "9")]


@pytest.mark.parametrize("cut", [True, False])
async def test_a_watch_that_breaks_within_a_line_failed_after_the_lines_before(cut: bool) -> None:
    seen = await watched(a_line("ADDED", "a", 6), a_line("ADDED", "b", 7)[:20], cut=cut)
    assert [what for what, _ in seen] == ["ADDED", "ServerFailed"]


async def test_an_error_event_is_raised() -> None:
    status = {"kind": "Status", "status": "Failure", "reason": "Expired", "message": "too old", "code": 410}
    line = msgspec.json.encode({"type": "ERROR", "object": status}) + b"\n"
    assert await watched(a_line("ADDED", "a", 6), line) == [("ADDED", "a"), ("Gone", "Expired")]


async def test_a_watch_that_is_refused_raises_at_the_first_event() -> None:
    async with served(refuses(410, "Expired")) as (kube, _):
        with pytest.raises(Gone):
            await anext(kube.watch(PODS, Pod, resource_version="5"))
