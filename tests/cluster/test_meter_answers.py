"""What meters make of the answers of metrics.k8s.io and Prometheus: every page, in percent of each node's own size."""

from __future__ import annotations

import datetime
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from scripted_api_server import refuses, says, served
from wukong.api.usage import NodeUsage
from wukong.cluster.meters import MetricsApi, Prometheus
from wukong.cluster.usage_queries import Queries
from wukong.errors import ClusterError

NOW = 1_800_000_000.0
STAMP = "2026-01-01T00:00:30Z"
STAMPED = datetime.datetime(2026, 1, 1, 0, 0, 30, tzinfo=datetime.UTC).timestamp()


def a_page(*items: dict[str, Any], token: str = "") -> dict[str, Any]:
    return {"metadata": {"resourceVersion": "7", "continue": token}, "items": list(items)}


def a_node(name: str, **allocatable: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "status": {"allocatable": allocatable}}


def some_metrics(name: str, timestamp: str = STAMP, **usage: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "timestamp": timestamp, "usage": usage}


def figures(usages: list[NodeUsage]) -> dict[str, tuple[float | None, float | None]]:
    return {usage.metadata.name: (usage.cpu, usage.memory) for usage in usages}


async def test_usage_is_in_percent_of_what_each_node_can_give() -> None:
    nodes = a_page(a_node("a", cpu="4", memory="8Gi"), a_node("b", cpu="500m", memory="1Gi"))
    metrics = a_page(some_metrics("a", cpu="1", memory="2Gi"), some_metrics("b", cpu="250000000n", memory="768Mi"))
    async with served(says(nodes), says(metrics)) as (kube, _):
        usages = await MetricsApi(kube, lambda: NOW).measure()
    assert figures(usages) == {"a": (25.0, 25.0), "b": (50.0, 75.0)}
    assert [usage.measured_at for usage in usages] == [STAMPED, STAMPED]


async def test_every_page_of_nodes_and_of_metrics_is_asked_for() -> None:
    pages = [
        a_page(a_node("a", cpu="1"), token="n2"),
        a_page(a_node("b", cpu="1"), token="n3"),
        a_page(a_node("c", cpu="1")),
        a_page(some_metrics("a", cpu="1"), token="m2"),
        a_page(some_metrics("b", cpu="0"), some_metrics("c", cpu="100m")),
    ]
    async with served(*map(says, pages)) as (kube, script):
        usages = await MetricsApi(kube, lambda: NOW).measure()
    assert figures(usages) == {"a": (100.0, None), "b": (0.0, None), "c": (10.0, None)}
    nodes, metrics = "/api/v1/nodes", "/apis/metrics.k8s.io/v1beta1/nodes"
    assert [(request.path, request.query.get("continue", "")) for request in script.asked] == [
        *((nodes, token) for token in ("", "n2", "n3")),
        *((metrics, token) for token in ("", "m2")),
    ]
    assert {request.query["limit"] for request in script.asked} == {"500"}


async def test_a_node_that_is_gone_or_says_nothing_has_no_percent() -> None:
    nodes = a_page(a_node("no-size"), a_node("no-cpu", cpu="0", memory="1Gi"), a_node("silent", cpu="1"))
    metrics = a_page(
        some_metrics("no-size", cpu="1", memory="1Gi"),
        some_metrics("no-cpu", cpu="1", memory="1Gi"),
        some_metrics("gone", cpu="1", memory="1Gi"),
    )
    async with served(says(nodes), says(metrics)) as (kube, _):
        usages = await MetricsApi(kube, lambda: NOW).measure()
    assert figures(usages) == {"no-size": (None, None), "no-cpu": (None, 100.0)}


@pytest.mark.parametrize("timestamp", ["", "yesterday"])
async def test_what_says_no_time_was_measured_now(timestamp: str) -> None:
    pages = a_page(a_node("a", cpu="1")), a_page(some_metrics("a", timestamp, cpu="1"))
    async with served(*map(says, pages)) as (kube, _):
        (usage,) = await MetricsApi(kube, lambda: NOW).measure()
    assert usage.measured_at == NOW


async def test_a_cluster_without_metrics_says_what_to_install() -> None:
    async with served(says(a_page()), refuses(404, "NotFound")) as (kube, _):
        with pytest.raises(ClusterError, match="install metrics-server, or use --prometheus"):
            await MetricsApi(kube, lambda: NOW).measure()


# Prometheus -------------------------------------------------------------------------------------------------------

CPU_AND_MEMORY = Queries(cpu="cpu", memory="memory", storage="")


def a_sample(node: str, value: str, at: float = NOW, label: str = "node") -> dict[str, Any]:
    return {"metric": {label: node} if node else {}, "value": [at, value]}


@asynccontextmanager
async def a_prometheus(
    results: dict[str, list[dict[str, Any]]], queries: Queries, path: str = "/"
) -> AsyncIterator[tuple[Prometheus, list[str]]]:
    """A server with these samples by query, and the queries it was asked."""
    asked: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(request.query["query"])
        return web.json_response({"status": "success", "data": {"result": results[asked[-1]]}})

    app = web.Application()
    app.router.add_get("/api/v1/query", answer)
    async with TestServer(app) as server, aiohttp.ClientSession() as session:
        yield Prometheus(str(server.make_url(path)), queries, session=session, now=lambda: NOW), asked


async def test_each_resource_is_asked_for_once_and_what_is_not_asked_for_is_unknown() -> None:
    results = {
        "cpu": [a_sample("a", "12.5", NOW), a_sample("b", "0", NOW), a_sample("", "99")],
        "memory": [a_sample("a", "50", NOW - 3.0), a_sample("c", "NaN")],
    }
    async with a_prometheus(results, CPU_AND_MEMORY) as (meter, asked):
        usages = await meter.measure()
    assert asked == ["cpu", "memory"]
    assert figures(usages) == {"a": (12.5, 50.0), "b": (0.0, None)}
    assert [usage.storage for usage in usages] == [None, None]
    assert [usage.measured_at for usage in usages] == [NOW - 3.0, NOW]  # the older of two


async def test_the_label_of_the_queries_names_the_node() -> None:
    results = {"disk": [a_sample("a", "7", label="instance"), a_sample("b", "8")]}
    queries = Queries(cpu="", memory="", storage="disk", label="instance")
    async with a_prometheus(results, queries) as (meter, _):
        (usage,) = await meter.measure()
    assert (usage.metadata.name, usage.cpu, usage.memory, usage.storage) == ("a", None, None, 7.0)
