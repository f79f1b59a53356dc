"""Meters: how much of each node is in use, asked of metrics.k8s.io or of Prometheus.

Implements ports.Meter. Called by the live runtime; never decides anything about nodes.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from typing import TypeVar

import aiohttp
import msgspec

from wukong.api.core import Node, Quantities
from wukong.api.kinds import NODE_METRICS, NODES
from wukong.api.meta import Base, ObjectMeta
from wukong.api.quantity import parse_quantity
from wukong.api.resources import Resource
from wukong.api.usage import NodeUsage
from wukong.cluster.usage_queries import Queries, find_url_problem
from wukong.errors import ClusterError, InputError, NotFound
from wukong.ports import Cluster

_T = TypeVar("_T")
_TIMEOUT = aiohttp.ClientTimeout(total=20)
_PAGE = 500


class _NodeMetrics(Base):
    metadata: ObjectMeta
    timestamp: str = ""
    usage: Quantities = {}


class MetricsApi:
    """metrics.k8s.io, as metrics-server has it: cpu and memory in absolute amounts, set against what is allocatable."""

    def __init__(self, cluster: Cluster, now: Callable[[], float]) -> None:
        self._cluster, self._now = cluster, now

    async def measure(self) -> list[NodeUsage]:
        nodes = await self._all(NODES, Node)
        try:
            metrics = await self._all(NODE_METRICS, _NodeMetrics)
        except NotFound:
            raise ClusterError(
                "this cluster serves no metrics.k8s.io: install metrics-server, or use --prometheus"
            ) from None
        sizes = {node.metadata.name: node.status.allocatable for node in nodes}
        return [
            NodeUsage(
                metadata=ObjectMeta(name=entry.metadata.name),
                measured_at=_seconds(entry.timestamp, self._now()),
                cpu=_percent(entry.usage, sizes[entry.metadata.name], "cpu"),
                memory=_percent(entry.usage, sizes[entry.metadata.name], "memory"),
            )
            for entry in metrics
            if entry.metadata.name in sizes
        ]

    async def _all(self, resource: Resource, read: type[_T]) -> list[_T]:
        found: list[_T] = []
        token = ""
        while True:
            page = await self._cluster.list(resource, read, limit=_PAGE, token=token)
            found += page.items
            token = page.token
            if not token:
                return found


class _Sample(msgspec.Struct):
    metric: dict[str, str]
    value: tuple[float, str]


class _Data(msgspec.Struct):
    result: list[_Sample] = []


class _Answer(msgspec.Struct):
    status: str
    data: _Data | None = None
    error: str = ""


_answer = msgspec.json.Decoder(_Answer)


class Prometheus:
    """A Prometheus server, asked with one instant query per kind of resource."""

    def __init__(self, url: str, queries: Queries | None = None, *, session: aiohttp.ClientSession) -> None:
        if problem := find_url_problem(url):
            raise InputError(f"--prometheus: {problem}")
        self._url, self._queries, self._session = url.rstrip("/"), queries or Queries(), session

    async def measure(self) -> list[NodeUsage]:
        measured: dict[str, dict[str, float]] = {}
        times: dict[str, float] = {}
        for kind in ("cpu", "memory", "storage"):
            for sample in await self._ask(getattr(self._queries, kind)):
                name, number = sample.metric.get(self._queries.label, ""), float(sample.value[1])
                if name and not math.isnan(number):  # NaN: there was nothing to divide by
                    measured.setdefault(name, {})[kind] = number
                    times[name] = min(sample.value[0], times.get(name, sample.value[0]))
        return [
            NodeUsage(
                metadata=ObjectMeta(name=name),
                measured_at=times[name],
                cpu=percents.get("cpu"),
                memory=percents.get("memory"),
                storage=percents.get("storage"),
            )
            for name, percents in measured.items()
        ]

    async def _ask(self, query: str) -> list[_Sample]:
        if not query:
            return []
        try:
            async with self._session.get(
                f"{self._url}/api/v1/query", params={"query": query}, timeout=_TIMEOUT
            ) as response:
                answer = _answer.decode(await response.read())
        except (aiohttp.ClientError, TimeoutError, msgspec.MsgspecError) as error:
            raise ClusterError(f"Prometheus at {self._url} did not answer: {type(error).__name__} {error}") from None
        if answer.status != "success" or answer.data is None:
            raise ClusterError(f"Prometheus at {self._url} refused the query {query!r}: {answer.error}")
        return answer.data.result


def _percent(used: Quantities, size: Quantities, name: str) -> float | None:
    if name not in used or not (whole := parse_quantity(size.get(name, 0))):
        return None
    return 100.0 * parse_quantity(used[name]) / whole


def _seconds(timestamp: str, now: float) -> float:
    """When it was measured; now, if the source does not say."""
    try:
        return datetime.datetime.fromisoformat(timestamp).timestamp()
    except ValueError:
        return now
