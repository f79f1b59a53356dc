"""Following a kind through broken streams, forgotten versions and servers that are not there; no test waits."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from scripted_api_server import Answer, a_line, a_list, hangs_up, refuses, says, served, streams, waits
from wukong.api.core import Pod
from wukong.api.kinds import PODS
from wukong.api.unreadable import Unreadable
from wukong.cluster.http import STALL_SECONDS
from wukong.cluster.list_watch import follow, retry_delay
from wukong.errors import ClusterError, Denied, NotFound
from wukong.ports import Event, KindMissing, Listing

LISTED = says(a_list("a", "b", version=5))
EXPIRED = refuses(410, "Expired")
STALL = 0.3  # seconds: lists that are answered must be quicker than that, on a busy machine, too


class Followed:
    """What came of following a script to its end: updates, waits, failures, versions asked for."""

    def __init__(self) -> None:
        self.batches: list[str] = []  # bookmarks left out
        self.problems: list[str] = []  # of objects that cannot be read
        self.bookmarks = 0
        self.waits: list[float] = []
        self.told: list[str] = []
        self.retries: list[float] = []
        self.versions: list[str | None] = []
        self.limits: list[str | None] = []


class ScriptEndedError(Exception):
    pass


async def followed(
    *answers: Answer, from_cache: bool = False, optional: bool = False, stall_seconds: float = STALL_SECONDS
) -> Followed:
    """Follows until the script has no answer left and the next wait begins."""
    result = Followed()

    async with served(*answers, stall_seconds=stall_seconds) as (kube, script):

        async def sleep(seconds: float) -> None:
            result.waits.append(seconds)
            if not script.answers:
                raise ScriptEndedError

        stream = follow(kube, PODS, Pod, optional=optional, from_cache=from_cache, random=lambda: 1.0, sleep=sleep)
        async with aclosing(stream):
            try:
                async for update in stream:
                    if isinstance(update, Listing):
                        names = ",".join(
                            [
                                *(pod.metadata.name for pod in update.items),
                                *(f"!{subject.metadata.name}" for subject in update.unreadable),
                            ]
                        )
                        result.problems += [subject.problem for subject in update.unreadable]
                        begin, end = "=" if update.is_first else "…", "" if update.is_last else "…"
                        result.batches.append(f"{begin}{names}@{update.resource_version}{end}")
                    elif isinstance(update, KindMissing):
                        result.batches.append("missing")
                    elif not isinstance(update, Event):
                        result.told.append(type(update.error).__name__)
                        result.retries.append(update.retry_seconds)
                    elif update.type == "BOOKMARK":
                        result.bookmarks += 1
                    elif isinstance(update.object, Unreadable):
                        result.problems.append(update.object.problem)
                        result.batches.append(f"!{update.type[0]}{update.object.metadata.name}")
                    else:
                        result.batches.append(f"{update.type[0]}{update.object.metadata.name}")
            except ScriptEndedError:
                pass
        result.versions = [each.query.get("resourceVersion") for each in script.asked]
        result.limits = [each.query.get("limit") for each in script.asked]
    return result


async def test_a_list_then_its_changes() -> None:
    watch = streams(a_line("ADDED", "c", 6), a_line("BOOKMARK", "", 9), a_line("DELETED", "a", 10))
    result = await followed(LISTED, watch, streams())
    assert result.batches == ["=a,b@5", "Ac", "Da"]
    assert result.bookmarks == 1
    assert result.versions == [None, "5", "10"]
    assert result.told == []


async def test_a_broken_watch_goes_on_from_the_last_version_even_if_a_bookmark_said_it() -> None:
    cut = streams(a_line("ADDED", "c", 6), a_line("BOOKMARK", "", 9), b'{"type":"ADD', cut=True)
    result = await followed(LISTED, cut, streams(a_line("MODIFIED", "c", 11)), hangs_up, hangs_up)
    assert result.batches == ["=a,b@5", "Ac", "Mc"]
    assert result.versions[:3] == [None, "5", "9"]
    assert result.versions[3] == "11"
    assert result.told == ["ServerFailed", "ServerFailed"]


async def test_a_forgotten_version_means_a_new_list() -> None:
    status = b'{"type":"ERROR","object":{"kind":"Status","status":"Failure","reason":"Expired","code":410}}\n'
    again = says(a_list("b", version=20))
    result = await followed(LISTED, streams(a_line("ADDED", "c", 6), status), again, EXPIRED, again, EXPIRED)
    assert result.batches == ["=a,b@5", "Ac", "=b@20", "=b@20"]
    assert result.versions == [None, "5", None, "20", None, "20"]
    assert result.told == ["Gone"] * 3
    assert result.retries == result.waits


async def test_pages_are_handed_on_one_by_one_and_those_that_expire_are_asked_for_again_in_larger_ones() -> None:
    first, second = says(a_list("a", version=5, token="t")), says(a_list("b", version=5))
    result = await followed(first, second, EXPIRED, first, EXPIRED, says(a_list("a", "b", version=9)), EXPIRED)
    assert result.batches == ["=a@5…", "…b@5", "=a@5…", "=a,b@9"]
    assert result.limits == ["500", "500", None, "500", "500", "1000", None]


async def test_pages_grow_up_to_a_bound_and_never_become_one_list_whatever_else_fails() -> None:
    first = says(a_list("a", version=5, token="t"))
    expiring = [answer for _ in range(5) for answer in (first, EXPIRED)]
    result = await followed(*expiring, refuses(500), first, EXPIRED, LISTED, EXPIRED, LISTED, EXPIRED)
    sizes = [500, 1000, 2000, 4000, 4000]
    assert result.limits == [
        *(str(size) for size in sizes for _ in range(2)),
        *("4000", "4000", "4000", "4000", None, "500", None),
    ]


async def test_pages_are_small_again_once_a_list_came_to_its_end() -> None:
    first = says(a_list("a", version=5, token="t"))
    result = await followed(LISTED, EXPIRED, first, EXPIRED, LISTED, refuses(403), LISTED, EXPIRED)
    assert result.limits == ["500", None, "500", "500", "1000", None, "500", None]


DEEP = b'{"metadata":{"name":"deep","resourceVersion":"6"},"spec":{"x":' + b"[" * 1200 + b"]" * 1200 + b"}}"
NO_UTF8 = b'{"metadata":{"name":"bytes","resourceVersion":"7"},"spec":{"nodeName":"\xff"}}'
NO_OPERATOR = (
    b'{"metadata":{"name":"operator","resourceVersion":"8"},"spec":{"topologySpreadConstraints":'
    b'[{"maxSkew":1,"topologyKey":"zone","whenUnsatisfiable":"Maybe"}]}}'
)
NO_NAME = b'{"metadata":{"resourceVersion":"9"}}'
GOOD = b'{"metadata":{"name":"good","resourceVersion":"5","labels":null},"spec":null}'
UNREADABLE = {"deep": DEEP, "bytes": NO_UTF8, "operator": NO_OPERATOR, "": NO_NAME}
PROBLEMS = {
    "deep": "$.spec.x[0][0]",
    "bytes": "expected UTF-8",
    "operator": "$.spec.topologySpreadConstraints[0].whenUnsatisfiable: expected one of",
    "": "$.metadata.name: expected a name",
}


@pytest.mark.parametrize("name", UNREADABLE)
async def test_an_item_that_cannot_be_read_hides_no_other(name: str) -> None:
    items = b",".join((GOOD, UNREADABLE[name], GOOD.replace(b"good", b"better")))
    listed = says(b'{"kind":"PodList","metadata":{"resourceVersion":"5"},"items":[' + items + b"]}")
    changed = streams(b'{"type":"MODIFIED","object":' + UNREADABLE[name] + b"}\n", a_line("ADDED", "c", 10))
    result = await followed(listed, changed, streams())
    assert result.batches == [f"=good,better,!{name}@5", f"!M{name}", "Ac"]
    assert len(result.problems) == 2
    assert all(problem.startswith(PROBLEMS[name]) for problem in result.problems)
    assert result.told == []
    assert result.versions == [None, "5", "10"]


@pytest.mark.parametrize(
    "answer",
    [
        b"<html>Bad gateway</html>",
        b"{}",
        b"[]",
        b"null",
        b'{"items":[]}',
        b'{"metadata":{},"items":[]}',
        b'{"items":[{',
    ],
)
async def test_an_answer_that_is_no_list_is_a_failure_that_is_told_and_retried(answer: bytes) -> None:
    result = await followed(says(answer), LISTED, says(answer), says(answer))
    assert result.batches == ["=a,b@5"]
    assert result.told == ["ClusterError", "ServerFailed", "ServerFailed"]  # a watch that ends within a line is cut
    assert result.waits == [0.8, 1.6, 3.2]


async def test_only_the_first_list_may_come_from_the_cache() -> None:
    result = await followed(LISTED, EXPIRED, LISTED, EXPIRED, from_cache=True)
    assert result.versions == ["0", "5", None, "5"]
    assert result.limits[0] is None


async def test_waits_grow_until_the_server_says_something_and_heed_its_advice() -> None:
    busy = says({"kind": "Status", "reason": "TooManyRequests", "code": 429}, 429, Retry_After="7")
    failed = refuses(500, "InternalError")
    heard = streams(a_line("BOOKMARK", "", 9), b"{", cut=True)
    result = await followed(failed, failed, busy, LISTED, failed, heard, busy)
    assert result.waits == [0.8, 1.6, 7.0, 6.4, 0.8, 7.0]


async def test_a_watch_that_ends_at_once_in_silence_is_not_repeated_at_once() -> None:
    result = await followed(LISTED, streams(), streams(), streams())
    assert result.waits == [0.8, 1.6, 3.2]
    assert result.versions == [None, "5", "5", "5"]


@pytest.mark.parametrize(("code", "error"), [(403, Denied), (404, NotFound)])
async def test_what_waiting_does_not_mend_is_raised_at_first_and_told_later(
    code: int, error: type[ClusterError]
) -> None:
    with pytest.raises(error):
        await followed(refuses(code))
    later = await followed(LISTED, refuses(code), refuses(code), LISTED, refuses(code))
    assert later.told == [error.__name__] * 3
    assert later.batches == ["=a,b@5"] * 2


@pytest.mark.slow
async def test_a_watch_that_stalls_goes_on_from_its_last_version_and_one_that_never_spoke_with_a_list() -> None:
    over = asyncio.Event()
    spoke = streams(a_line("BOOKMARK", "", 9), until=over)
    silent, never = streams(until=over), waits(over)
    result = await followed(LISTED, spoke, silent, LISTED, never, LISTED, refuses(500), stall_seconds=STALL)
    over.set()
    assert result.versions == [None, "5", "9", None, "5", None, "5"]
    assert result.told == ["Stalled"] * 3 + ["ServerFailed"]
    assert result.waits == [0.8, 0.8, 0.8, 1.6]


async def test_a_list_that_hangs_is_cut_and_asked_for_again() -> None:
    over = asyncio.Event()
    result = await followed(waits(over), LISTED, streams(), stall_seconds=STALL)
    over.set()
    assert (result.batches, result.told) == (["=a,b@5"], ["ServerFailed"])


async def test_an_optional_kind_is_looked_for_until_it_is_installed_and_again_when_it_went() -> None:
    missing = refuses(404)
    watch = streams(a_line("ADDED", "c", 6))
    result = await followed(
        missing, missing, LISTED, watch, missing, missing, refuses(403), LISTED, streams(), optional=True
    )
    assert result.batches == ["missing", "missing", "=a,b@5", "Ac", "missing", "missing", "=a,b@5"]
    assert result.told == ["Denied"]
    assert result.waits[:2] == [0.8, 1.6]
    with pytest.raises(Denied):
        await followed(refuses(403), optional=True)


def test_waits_double_up_to_half_a_minute_and_half_of_each_is_chance() -> None:
    assert [retry_delay(attempt, 1.0) for attempt in range(1, 9)] == [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0]
    assert [retry_delay(attempt, 0.0) for attempt in (1, 2, 10_000)] == [0.4, 0.8, 15.0]
