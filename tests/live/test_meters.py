"""Meters ask real sources: a Prometheus that scrapes what hollow nodes use."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import aiohttp
import pytest

from testbed.exporter import Exporter
from testbed.pytest_plugin import RunPrometheus
from wukong.api.usage import NodeUsage
from wukong.cluster.meters import Prometheus
from wukong.cluster.usage_queries import Queries
from wukong.errors import ClusterError, InputError

FAST = Queries(cpu=Queries().cpu.replace("[5m]", "[5s]"))
DEADLINE_SECONDS = 120.0


async def test_prometheus_says_what_each_node_uses(prometheus: RunPrometheus) -> None:
    async with Exporter() as exporter, aiohttp.ClientSession() as session:
        exporter.usage = {"a": {"cpu": 80, "memory": 40, "storage": 10}, "b": {"cpu": 20, "memory": 5}}
        with prometheus([exporter.address]) as url:
            meter = Prometheus(url, FAST, session=session)
            found = await when(meter, lambda usage: _near(usage, "a", 80) and _near(usage, "b", 20))
            assert found["a"].memory == pytest.approx(40, abs=0.1)
            assert found["a"].storage == pytest.approx(10, abs=0.1)
            assert found["b"].storage is None
            assert abs((found["a"].measured_at or 0.0) - time.time()) < DEADLINE_SECONDS


async def test_a_query_prometheus_refuses_is_said_with_its_words(prometheus: RunPrometheus) -> None:
    async with aiohttp.ClientSession() as session:
        with prometheus([]) as url, pytest.raises(ClusterError, match="refused the query"):
            await Prometheus(url, Queries(cpu="sum("), session=session).measure()
        with pytest.raises(ClusterError, match="did not answer"):
            await Prometheus(url, session=session).measure()


async def test_an_address_without_a_scheme_is_refused() -> None:
    async with aiohttp.ClientSession() as session:
        with pytest.raises(InputError, match="expected an address such as"):
            Prometheus("prometheus:9090", session=session)


async def when(meter: Prometheus, is_so: Callable[[dict[str, NodeUsage]], bool]) -> dict[str, NodeUsage]:
    """The usage once it is so. A rate needs several scrapes until it is right."""
    async with asyncio.timeout(DEADLINE_SECONDS):
        while not is_so(found := {usage.metadata.name: usage for usage in await meter.measure()}):
            await asyncio.sleep(0.2)
    return found


def _near(usage: dict[str, NodeUsage], node: str, percent: float) -> bool:
    cpu = usage[node].cpu if node in usage else None
    return cpu is not None and abs(cpu - percent) < 5
