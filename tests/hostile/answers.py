"""Answers that no API server should give: broken lists and watches, errors, pages of proxies, nonsense in headers.

draw_answer(grammar, good)    the status, headers and body of an answer, made of what should have been answered
SickHttp                      an API server of a few good objects that falls sick, in the place of cluster.http.Http
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Mapping
from typing import Any, NamedTuple

import msgspec

from hostile.grammar import TEXTS, Grammar, write_json
from hostile.neighbourhood import list_good_objects
from wukong.api.kinds import KINDS, LEASES, group_kind_of
from wukong.api.meta import Object
from wukong.cluster.api_status import build_error, read_retry_after
from wukong.errors import ServerFailed, Stalled

CODES = (200, 200, 200, 201, 204, 301, 302, 400, 401, 403, 404, 408, 409, 410, 418, 422, 429, 500, 501, 502, 503, 504)
HTML = b"<!DOCTYPE html><html><body><h1>502 Bad Gateway</h1>\x1b[31mnginx</body></html>"
RETRY_AFTER = (
    "", "1", "0", "-1", "1e9", "99999999999999999999999", "NaN", "soon", "٣", "1.5", " 7 ",
    "Fri, 31 Dec 9999 23:59:59 GMT",
    "Thu, 01 Jan 1970 00:00:00 GMT", "Wed, 21 Oct 2015 07:28:00 +9999", "Mon, 99 Foo 2026", "\x00",
)  # fmt: skip
DATES = ("", "Wed, 21 Oct 2015 07:28:00 GMT", "Thu, 01 Jan 0001 00:00:00 GMT", "x")
VERSIONS: tuple[Any, ...] = ("", "0", "-1", "x", "99999999999999999999999", None, 7, [], {}, True, "1\n2")


class Answer(NamedTuple):
    code: int
    body: bytes
    retry_after: str = ""
    date: str = ""


def draw_answer(grammar: Grammar, good: bytes) -> Answer:
    """An answer in the place of this good one."""
    rng = grammar.rng
    code = 200 if rng.random() < 0.6 else rng.choice(CODES)
    return Answer(code, draw_body(grammar, good), rng.choice(RETRY_AFTER), rng.choice(DATES))


def draw_body(grammar: Grammar, good: bytes) -> bytes:
    rng = grammar.rng
    which = rng.randrange(10)
    if which == 0:
        return rng.choice(
            (b"", b"{}", b"[]", b"null", b"0", b'"x"', HTML, b"\xff\xfe", b"\x00" * 100, b"{" * 2000, b"[" * 50_000)
        )
    if which <= 2:
        return grammar.spoil(good)
    if which <= 4:
        return write_json(draw_status(grammar))
    if which == 5:
        return write_json(grammar._draw_json(4))
    return write_json(draw_list(grammar, good))


def draw_status(grammar: Grammar) -> Any:
    """A Status with fields of every kind."""
    rng = grammar.rng
    fields: dict[str, Any] = {
        "kind": rng.choice(("Status", "Status", "Pod", None, 7)),
        "apiVersion": "v1",
        "metadata": rng.choice(({}, None, [])),
        "status": rng.choice(("Failure", "Success", None)),
        "reason": rng.choice(("Conflict", "AlreadyExists", "Expired", "Timeout", "NotFound", "", None, 1, *TEXTS)),
        "message": rng.choice(("no", "etcdserver: request timed out", None, 3, *TEXTS)),
        "code": rng.choice((*CODES, 0, -1, 2**70, "409", None)),
        "details": rng.choice(
            (
                None,
                {},
                [],
                {"causes": None},
                {"causes": [{"reason": 1}]},
                {"retryAfterSeconds": rng.choice((1, -1, 1e308, "x"))},
            )
        ),
    }
    for name in rng.sample([*fields], rng.randrange(4)):
        del fields[name]
    return fields


def draw_list(grammar: Grammar, good: bytes) -> Any:
    """A list whose items are the good ones, some hostile ones, or something else, and whose head may be wrong."""
    rng = grammar.rng
    try:
        items = msgspec.json.decode(good).get("items")
    except (msgspec.DecodeError, AttributeError, RecursionError):
        items = None
    kind = rng.choice([*KINDS])
    items = [*(items or []), *(grammar.build_document(kind) for _ in range(rng.randrange(4)))]
    rng.shuffle(items)
    meta = {"resourceVersion": rng.choice(VERSIONS), "continue": rng.choice(("", "", "next", None, 1, *TEXTS))}
    document: dict[str, Any] = {"kind": "List", "metadata": meta, "items": items}
    if rng.random() < 0.3:
        document[rng.choice([*document])] = grammar._draw_json(2)
    if rng.random() < 0.2:
        del document[rng.choice([*document])]
    return document


def draw_line(grammar: Grammar, good: list[bytes]) -> bytes:
    """A line of a watch."""
    rng = grammar.rng
    which = rng.randrange(8)
    if which == 0:
        return rng.choice((b"", b" ", b"{}", b"null", HTML, b"\xff", b'{"type":1}', b'{"type":"ADDED"}', b"[" * 5000))
    if which == 1:
        return b'{"type":"ERROR","object":' + write_json(draw_status(grammar)) + b"}"
    event_type = rng.choice(("ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ADDED", "MODIFIED", "", "added", "EVIL"))
    document = grammar.build_document(rng.choice([*KINDS]))
    text = rng.choice(good) if good and which < 4 and event_type != "DELETED" else grammar.write_json(document)
    line = b'{"type":"' + event_type.encode() + b'","object":' + text + b"}"
    return grammar.spoil(line) if which == 4 else line


def raise_if_error(answer: Answer, is_write: bool) -> bytes:
    """The body, as cluster.http hands it on; raises what it raises."""
    if answer.code < 300:
        return answer.body
    retry_after = read_retry_after(answer.retry_after, answer.date)
    raise build_error(answer.code, answer.body, retry_after=retry_after, is_write=is_write)


class SickHttp:
    """Knows the good objects and a lease. While `is_sick`, three answers in four are nonsense; some never come.

    One that is well again was started anew: its watches have ended, and versions from before are too old for it. What
    it said on a watch while it was sick would otherwise stand for ever, with every client of Kubernetes.
    """

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.grammar = rng, Grammar(rng)
        self.is_sick = False
        self.oldest_version = 0  # of which a watch may begin
        self.answers = 0  # given while sick
        self.writes: list[tuple[str, Any]] = []
        self.version = 100
        self.objects: dict[str, list[Object]] = {}  # by path
        for subject in list_good_objects():
            kind = KINDS[group_kind_of(subject)]
            self.objects.setdefault(kind.resource.path(), []).append(subject)
        self.lease: dict[str, Any] | None = None

    async def __aexit__(self, *_: object) -> None:
        pass

    def recover(self) -> None:
        self.is_sick = False
        self.oldest_version = self.version

    def _list(self, path: str) -> bytes:
        items = [msgspec.to_builtins(subject) for subject in self.objects.get(path, [])]
        return msgspec.json.encode({"metadata": {"resourceVersion": str(self.version)}, "items": items})

    async def send(self, method: str, path: str, body: object = None, **_: Any) -> bytes:
        await asyncio.sleep(0.01)
        is_write = method != "GET"
        if is_write:
            self.writes.append((path, body))
        good = self._answer(method, path, body)
        if not self.is_sick or self.rng.random() < 0.25:
            return good
        self.answers += 1
        if self.rng.random() < 0.05:
            await asyncio.sleep(30.0)
            raise ServerFailed("lost", reason="AnswerLost")
        return raise_if_error(draw_answer(self.grammar, good), is_write)

    def _answer(self, method: str, path: str, body: Any) -> bytes:
        self.version += 1
        if LEASES.plural not in path:
            return self._list(path) if method == "GET" else msgspec.json.encode({"metadata": {"name": "x"}, **body})
        if method == "GET" and self.lease is None:
            raise build_error(404, b"")
        meta = {"name": "wukong", "namespace": "default", "resourceVersion": str(self.version)}
        self.lease = {"metadata": meta, "spec": {**(self.lease or {}).get("spec", {}), **(body or {}).get("spec", {})}}
        return msgspec.json.encode(self.lease)

    async def read_lines(self, path: str, params: Mapping[str, str]) -> AsyncGenerator[bytes, None]:
        good = [msgspec.json.encode(subject) for subject in self.objects.get(path, [])]
        version, oldest_version = params["resourceVersion"], self.oldest_version
        if not self.is_sick:
            if not version.isdecimal() or int(version) >= 1 << 64:
                raise build_error(400, b"")
            if int(version) < oldest_version:
                raise build_error(410, b"")
            if int(version) > self.version:  # nothing is newer: not even a bookmark comes
                await asyncio.sleep(90.0)
                raise Stalled("nothing came", reason="Stalled")
        while True:
            await asyncio.sleep(1.0)
            if oldest_version != self.oldest_version:
                return
            if not self.is_sick:
                meta = {"resourceVersion": str(self.version)}
                yield msgspec.json.encode({"type": "BOOKMARK", "object": {"metadata": meta}})
                continue
            if self.rng.random() < 0.1:
                raise Stalled("nothing came", reason="Stalled")
            if self.rng.random() < 0.1:
                return
            if self.rng.random() < 0.1:
                raise_if_error(draw_answer(self.grammar, b"{}"), is_write=False)
            self.answers += 1
            yield draw_line(self.grammar, good)
