"""Meters: how much of each node is in use, according to metrics.k8s.io or Prometheus.

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
        nodes = await self._list_all(NODES, Node)
        try:
            metrics = await self._list_all(NODE_METRICS, _NodeMetrics)
        except NotFound:
            raise ClusterError(
                "this cluster serves no metrics.k8s.io: install metrics-server, or use --prometheus"
            ) from None
        sizes = {node.metadata.name: node.status.allocatable for node in nodes}
        return [
            NodeUsage(
                metadata=ObjectMeta(name=entry.metadata.name),
                measured_at=_parse_timestamp(entry.timestamp, self._now()),
                cpu=_percent_of(entry.usage, sizes[entry.metadata.name], "cpu"),
                memory=_percent_of(entry.usage, sizes[entry.metadata.name], "memory"),
            )
            for entry in metrics
            if entry.metadata.name in sizes
        ]

    async def _list_all(self, resource: Resource, read: type[_T]) -> list[_T]:
        items: list[_T] = []
        token = ""
        while True:
            page = await self._cluster.list(resource, read, limit=_PAGE, token=token)
            items += page.items
            token = page.token
            if not token:
                return items


class _Sample(msgspec.Struct):
    metric: dict[str, str]
    value: tuple[float, str]


class _Data(msgspec.Struct):
    result: list[_Sample] = []


class _QueryResponse(msgspec.Struct):
    status: str
    data: _Data | None = None
    error: str = ""


_response_decoder = msgspec.json.Decoder(_QueryResponse)


class Prometheus:
    """A Prometheus server, queried once per resource."""

    def __init__(self, url: str, queries: Queries | None = None, *, session: aiohttp.ClientSession) -> None:
        if problem := find_url_problem(url):
            raise InputError(f"--prometheus: {problem}")
        self._url, self._queries, self._session = url.rstrip("/"), queries or Queries(), session

    async def measure(self) -> list[NodeUsage]:
        percents: dict[str, dict[str, float]] = {}
        times: dict[str, float] = {}
        for kind in ("cpu", "memory", "storage"):
            for sample in await self._query(getattr(self._queries, kind)):
                name, number = sample.metric.get(self._queries.label, ""), float(sample.value[1])
                if name and not math.isnan(number):  # NaN: there was nothing to divide by
                    percents.setdefault(name, {})[kind] = number
                    times[name] = min(sample.value[0], times.get(name, sample.value[0]))
        return [
            NodeUsage(
                metadata=ObjectMeta(name=name),
                measured_at=times[name],
                cpu=of_node.get("cpu"),
                memory=of_node.get("memory"),
                storage=of_node.get("storage"),
            )
            for name, of_node in percents.items()
        ]

    async def _query(self, query: str) -> list[_Sample]:
        if not query:
            return []
        try:
            async with self._session.get(
                f"{self._url}/api/v1/query", params={"query": query}, timeout=_TIMEOUT
            ) as response:
                answer = _response_decoder.decode(await response.read())
        except (aiohttp.ClientError, TimeoutError, msgspec.MsgspecError) as error:
            raise ClusterError(f"Prometheus at {self._url} did not answer: {type(error).__name__} {error}") from None
        if answer.status != "success" or answer.data is None:
            raise ClusterError(f"Prometheus at {self._url} refused the query {query!r}: {answer.error}")
        return answer.data.result


def _percent_of(used: Quantities, size: Quantities, name: str) -> float | None:
    if name not in used or not (whole := parse_quantity(size.get(name, 0))):
        return None
    return 100.0 * parse_quantity(used[name]) / whole


def _parse_timestamp(timestamp: str, now: float) -> float:
    """Return when it was measured in seconds since 1970; now, if the source does not say."""
    try:
        return datetime.datetime.fromisoformat(timestamp).timestamp()
    except ValueError:
        return now
