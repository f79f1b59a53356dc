"""Whatever a meter answers, what is made of it makes sense: one bad sample costs that sample, never the others."""

from __future__ import annotations

import json
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from hypothesis import given, settings
from hypothesis import strategies as st

from scripted_api_server import refuses, says, served
from wukong.api.usage import NodeUsage
from wukong.cluster import meters
from wukong.cluster.meters import MetricsApi, Prometheus
from wukong.cluster.usage_queries import Queries, find_url_problem
from wukong.errors import ClusterError

NOW = 1_000_000.0
DEEP = b"[" * 20_000 + b"]" * 20_000
HUGE = "9" * 5000


def nodes(*names: str, **allocatable: Any) -> dict[str, Any]:
    size = allocatable or {"cpu": "4", "memory": "8Gi"}
    items = [{"metadata": {"name": name}, "status": {"allocatable": size}} for name in names]
    return {"metadata": {"resourceVersion": "1"}, "items": items}


def metric(name: Any, cpu: Any = "1", **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "usage": {"cpu": cpu, "memory": "2Gi"}, **more}


async def measure_cluster(node_list: object, *pages: object) -> tuple[dict[str, NodeUsage], list[str]]:
    skipped: list[str] = []
    async with served(says(node_list), *map(says, pages)) as (kube, _):
        usages = await MetricsApi(kube, lambda: NOW, skipped.append).measure()
    return {usage.metadata.name: usage for usage in usages}, skipped


@asynccontextmanager
async def a_prometheus(
    *answers: bytes, code: int = 200, queries: Queries | None = None
) -> AsyncIterator[tuple[Prometheus, list[str]]]:
    """A Prometheus with these answers, in order; the last one again and again."""
    waiting, skipped = list(answers), list[str]()

    async def answer(_: web.Request) -> web.Response:
        body = waiting.pop(0) if len(waiting) > 1 else waiting[0]
        return web.Response(body=body, status=code, content_type="application/json")

    app = web.Application()
    app.router.add_get("/api/v1/query", answer)
    async with TestServer(app) as server, aiohttp.ClientSession() as session:
        url = str(server.make_url("/"))
        yield (
            Prometheus(
                url, queries or Queries(memory="", storage=""), session=session, now=lambda: NOW, on_skip=skipped.append
            ),
            skipped,
        )


def vector(*samples: object) -> bytes:
    return json.dumps({"status": "success", "data": {"resultType": "vector", "result": samples}}).encode()


def sample(node: Any = "good", value: Any = "50", at: Any = NOW) -> dict[str, Any]:
    return {"metric": {"node": node}, "value": [at, value]}


# metrics.k8s.io ---------------------------------------------------------------------------------------------------


async def test_percent_is_of_what_is_allocatable_over_all_pages() -> None:
    first = {"metadata": {"continue": "more"}, "items": [metric("a", "1")]}
    found, skipped = await measure_cluster(nodes("a", "b"), first, {"metadata": {}, "items": [metric("b", "3500m")]})
    assert {name: (usage.cpu, usage.memory) for name, usage in found.items()} == {"a": (25.0, 25.0), "b": (87.5, 25.0)}
    assert skipped == []


BAD_AMOUNTS: list[Any] = [
    "abc",
    "",
    "NaN",
    "-5",
    "-1m",
    "-1e60",
    "1e60",
    "9E",
    HUGE,
    True,
    None,
    [],
    {},
    float(2**80),
    int(HUGE[:80]),
]


@pytest.mark.parametrize("amount", BAD_AMOUNTS, ids=lambda amount: f"{amount!r:.12}")
async def test_an_amount_that_cannot_be_costs_that_amount_alone(amount: Any) -> None:
    found, skipped = await measure_cluster(
        nodes("bad", "good"), {"metadata": {}, "items": [metric("bad", amount), metric("good")]}
    )
    assert found["good"].cpu == 25.0
    assert "bad" not in found or found["bad"].cpu is None
    assert len(skipped) == 1
    assert len(skipped[0]) < 500


@pytest.mark.parametrize(
    "item", [None, 7, "a", [], {}, {"metadata": 3}, {"metadata": {"name": 3}}, metric("good", timestamp=7)]
)
async def test_an_item_that_is_no_node_metrics_costs_that_item_alone(item: Any) -> None:
    found, skipped = await measure_cluster(nodes("good"), {"metadata": {}, "items": [item, metric("good")]})
    assert found["good"].cpu == 25.0
    assert len(skipped) == 1


@pytest.mark.parametrize("size", ["abc", "-4", HUGE, "0"])
async def test_a_node_of_no_size_has_no_percent(size: str) -> None:
    found, _ = await measure_cluster(nodes("a", cpu=size, memory="8Gi"), {"metadata": {}, "items": [metric("a")]})
    assert (found["a"].cpu, found["a"].memory) == (None, 25.0)


@pytest.mark.parametrize(
    ("timestamp", "expected"),
    [
        ("1970-01-02T00:00:00Z", 86_400.0),
        ("1970-01-02T00:00:00", 86_400.0),
        ("1970-01-02T02:00:00+02:00", 86_400.0),
        ("0001-01-01T00:00:00Z", -62_135_596_800.0),
        ("0001-01-01T00:00:00+14:00", NOW),
        ("9999-12-31T23:59:59Z", NOW),  # or it would never turn stale
        ("9999-12-31T23:59:59-14:00", NOW),
        ("yesterday", NOW),
        (None, NOW),
    ],
)
async def test_a_time_that_cannot_be_is_now(timestamp: Any, expected: float) -> None:
    found, _ = await measure_cluster(nodes("a"), {"metadata": {}, "items": [metric("a", timestamp=timestamp)]})
    measured_at = found["a"].measured_at
    assert measured_at == expected or (expected == NOW and measured_at is not None and measured_at <= NOW)


async def test_pages_without_end_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meters, "_MOST_PAGES", 3)
    endless = {"metadata": {"continue": "again"}, "items": []}
    with pytest.raises(ClusterError, match=r"nodes\.metrics\.k8s\.io has no end"):
        await measure_cluster(nodes("a"), *[endless] * 3)


async def test_a_cluster_without_metrics_says_what_to_install() -> None:
    async with served(says(nodes("a")), refuses(404)) as (kube, _):
        with pytest.raises(ClusterError, match="install metrics-server"):
            await MetricsApi(kube, lambda: NOW).measure()


# Prometheus -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "bad",
    [
        sample("bad", "not a number"),
        sample("bad", "Inf"),
        sample("bad", "-Inf"),
        sample("bad", "1e400"),
        sample("bad", "-50"),
        sample("bad", "17179869184"),  # bytes
        sample("bad", HUGE),
        sample("bad", 50),
        sample("bad", None),
        sample("bad", at="now"),
        sample(7),
        {"metric": {"node": "bad"}, "values": [[NOW, "50"]]},  # a matrix
        {"metric": {"node": "bad"}, "value": []},
        {"metric": {"node": "bad"}, "value": [NOW, "50", "51"]},
        {"metric": "bad", "value": [NOW, "50"]},
        {},
        [],
        NOW,
        "50",
        None,
    ],
    ids=lambda bad: f"{bad!r:.60}",
)
async def test_a_sample_that_makes_no_sense_costs_that_sample_alone(bad: Any) -> None:
    async with a_prometheus(vector(bad, sample())) as (meter, skipped):
        (usage,) = await meter.measure()
    assert (usage.metadata.name, usage.cpu) == ("good", 50.0)
    assert len(skipped) == 1
    assert len(skipped[0]) < 500


@pytest.mark.parametrize(("value", "expected"), [("-0.8", 0.0), ("0", 0.0), ("180", 180.0)])
async def test_percent_may_be_a_little_below_nothing_and_beyond_what_is_allocatable(
    value: str, expected: float
) -> None:
    async with a_prometheus(vector(sample(value=value))) as (meter, skipped):
        (usage,) = await meter.measure()
    assert (usage.cpu, skipped) == (expected, [])


async def test_nothing_to_divide_by_is_no_fault() -> None:
    async with a_prometheus(vector(sample(value="NaN"), {"metric": {}, "value": [NOW, "1"]})) as (meter, skipped):
        assert (await meter.measure(), skipped) == ([], [])


async def test_the_oldest_sample_of_a_node_says_how_old_its_usage_is_and_none_is_from_the_future() -> None:
    answers = [vector(sample(at=NOW - 5)), vector(sample(at=NOW + 1e9)), vector()]
    async with a_prometheus(*answers, queries=Queries()) as (meter, _):
        (usage,) = await meter.measure()
    assert (usage.measured_at, usage.cpu, usage.memory, usage.storage) == (NOW - 5, 50.0, 50.0, None)
    async with a_prometheus(vector(sample(at=1e300))) as (meter, _):
        assert (await meter.measure())[0].measured_at == NOW


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (b"<html>502 Bad Gateway</html>", "did not answer as one does"),
        (b"", "did not answer as one does"),
        (b"[]", "did not answer as one does"),
        (b"\xff\xfe", "did not answer as one does"),
        (b'{"status":"success","data":{"result":"none"}}', "expected array"),
        (b'{"status":"success","data":{"result":[' + DEEP + b"]}}", "nested too deeply"),
        (b'{"status":"success","data":{"result":[{"metric":' + b"\xff" + b"}]}}", "did not answer as one does"),
        (b'{"status":"error","error":"no"}', "refused the query .*: no"),
        (b'{"status":"success"}', "refused the query"),
        (b"[" + b"0," * (9 << 19) + b"0]", "more than 8 MiB"),
    ],
    ids=lambda value: f"{value!r:.40}",
)
async def test_an_answer_that_is_none_is_one_error(answer: bytes, expected: str) -> None:
    async with a_prometheus(answer) as (meter, _):
        with pytest.raises(ClusterError, match=expected) as caught:
            await meter.measure()
    assert len(str(caught.value)) < 800


async def test_no_password_of_the_address_is_in_a_message() -> None:
    async with aiohttp.ClientSession() as session:
        meter = Prometheus("http://me:S3CRET@127.0.0.1:1", session=session)
        with pytest.raises(ClusterError, match=r"Prometheus at http://\*\*\*@127\.0\.0\.1:1 did not answer") as caught:
            await meter.measure()
    assert "S3CRET" not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "prometheus:9090",
        "ftp://me:S3CRET@p",
        "http://me:S3CRET@",
        "http://[::1",
        "http://p:port",
        "http://p:0",
        "http://a b",
    ],
)
def test_an_address_that_is_none_is_refused_without_its_password(url: str) -> None:
    assert "expected an address such as http://prometheus:9090, got" in find_url_problem(url)
    assert "S3CRET" not in find_url_problem(url)


@pytest.mark.parametrize("url", ["http://p", "https://u:p@p:9090/prefix", "http://[fd00::1]:9090"])
def test_an_address_may_have_a_user_a_path_and_brackets(url: str) -> None:
    assert find_url_problem(url) == ""


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["cpu", "node", "1"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["metric", "value", "node"]), inner),
    max_leaves=12,
)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(samples=st.lists(anything | st.builds(sample, anything, anything, anything), max_size=5))
def test_whatever_samples_there_are_usage_is_finite(samples: list[Any]) -> None:
    meter = Prometheus("http://p", session=None, now=lambda: NOW)  # type: ignore[arg-type]
    raws = [msgspec.Raw(json.dumps(entry).encode()) for entry in samples]
    for name, percent, measured_at in filter(None, (meter._read_sample(raw, "cpu") for raw in raws)):
        assert name
        assert 0 <= percent <= 10_000
        assert math.isfinite(measured_at)
        assert measured_at <= NOW
