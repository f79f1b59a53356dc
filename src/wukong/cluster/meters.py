"""Meters: how much of each node is in use, according to metrics.k8s.io or Prometheus.

Implements ports.Meter. Called by the live runtime; never decides anything about nodes. Whatever a meter answers, the
result is usage that makes sense, or a ClusterError about the whole answer: a sample that cannot be read or cannot be
(no number, NaN, negative, far beyond 100 %) is left out and reported to `on_skip`.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import TypeVar

import aiohttp
import msgspec

from wukong.api.core import Node, Quantities
from wukong.api.decode import readable
from wukong.api.kinds import NODE_METRICS, NODES
from wukong.api.meta import Base, ObjectMeta
from wukong.api.quantity import parse_quantity
from wukong.api.resources import Resource
from wukong.api.times import parse_time
from wukong.api.usage import NodeUsage
from wukong.cluster.redaction import redact_urls
from wukong.cluster.usage_queries import Queries, find_url_problem
from wukong.errors import ClusterError, InputError, NotFound
from wukong.ports import Cluster

_T = TypeVar("_T")
OnSkip = Callable[[str], None]  # hears why a sample was left out
_TIMEOUT = aiohttp.ClientTimeout(total=20)
_PAGE = 500
_MOST_PAGES = 1000  # half a million nodes: whoever has more pages has no end of them
_MOST_BYTES = 8 << 20  # about 40,000 samples; decoding more would hold up the event loop
_SLICE = 500  # samples that are read at a stretch: some milliseconds
_MOST_CHARACTERS = 300
# cpu rates are extrapolated, so an idle node may be at -1 %; and a node may use far more than is allocatable. What is
# beyond these is in another unit, such as bytes.
_LEAST_PERCENT, _MOST_PERCENT = -10.0, 10_000.0
_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


def ignore_skipped(problem: str) -> None:
    """For whoever does not want to hear of samples that were left out."""


class _NodeMetrics(Base):
    metadata: ObjectMeta
    timestamp: str | None = None
    usage: Quantities | None = None


_node_metrics_decoder = msgspec.json.Decoder(_NodeMetrics)


class MetricsApi:
    """metrics.k8s.io, as metrics-server has it: cpu and memory in absolute amounts, set against what is allocatable."""

    def __init__(self, cluster: Cluster, now: Callable[[], float], on_skip: OnSkip = ignore_skipped) -> None:
        self._cluster, self._now, self._on_skip = cluster, now, on_skip

    async def measure(self) -> list[NodeUsage]:
        sizes = {node.metadata.name: node.status.allocatable for node in await self._list_nodes()}
        usages = [self._read_usage(raw, sizes) async for raw in _take_turns(await self._list_metrics())]
        return [usage for usage in usages if usage is not None]

    def _read_usage(self, raw: msgspec.Raw, sizes: dict[str, Quantities]) -> NodeUsage | None:
        """None if it is unreadable, or of a node that is not there."""
        try:
            entry = _node_metrics_decoder.decode(raw)
        except _UNREADABLE as error:
            self._on_skip(f"a NodeMetrics cannot be read: {_describe(error)}")
            return None
        name = entry.metadata.name
        if name not in sizes:
            return None
        used = entry.usage or {}
        return NodeUsage(
            metadata=ObjectMeta(name=name),
            measured_at=_parse_timestamp(entry.timestamp or "", self._now()),
            cpu=self._percent_of(name, used, sizes[name], "cpu"),
            memory=self._percent_of(name, used, sizes[name], "memory"),
        )

    def _percent_of(self, node: str, used: Quantities, size: Quantities, kind: str) -> float | None:
        try:
            whole = parse_quantity(size.get(kind, 0))
            if kind not in used or whole <= 0:
                return None
            amount = parse_quantity(used[kind])
            if amount < 0:
                raise ValueError(f"expected an amount in use, got {used[kind]!r:.80}")
            return _check_percent(100.0 * amount / whole)
        except (InputError, ValueError) as error:  # int() refuses numbers of thousands of digits
            self._on_skip(f"{kind} of node {node!r:.80}: {_shorten(str(error))}")
            return None

    async def _list_nodes(self) -> list[Node]:
        return [node async for page in self._list_pages(NODES, Node) for node in page]

    async def _list_metrics(self) -> list[msgspec.Raw]:
        try:
            return [raw async for page in self._list_pages(NODE_METRICS, msgspec.Raw) for raw in page]
        except NotFound:
            raise ClusterError(
                "this cluster serves no metrics.k8s.io: install metrics-server, or use --prometheus"
            ) from None

    async def _list_pages(self, resource: Resource, read: type[_T]) -> AsyncGenerator[list[_T], None]:
        token = ""
        for _ in range(_MOST_PAGES):
            page = await self._cluster.list(resource, read, limit=_PAGE, token=token)
            yield page.items
            token = page.token
            if not token:
                return
        raise ClusterError(f"the list of {resource.plural}.{resource.group or 'core'} has no end: {_MOST_PAGES} pages")


class _Sample(msgspec.Struct):
    metric: dict[str, str]
    value: tuple[float, str]


class _Data(msgspec.Struct):
    result: list[msgspec.Raw] | None = None


class _QueryResponse(msgspec.Struct):
    status: str
    data: _Data | None = None
    error: str = ""


_response_decoder = msgspec.json.Decoder(_QueryResponse)
_sample_decoder = msgspec.json.Decoder(_Sample)


class Prometheus:
    """A Prometheus server, queried once per resource."""

    def __init__(
        self,
        url: str,
        queries: Queries | None = None,
        *,
        session: aiohttp.ClientSession,
        now: Callable[[], float] = time.time,
        on_skip: OnSkip = ignore_skipped,
    ) -> None:
        if problem := find_url_problem(url):
            raise InputError(f"--prometheus: {problem}")
        self._url, self._queries, self._session = url.rstrip("/"), queries or Queries(), session
        self._now, self._on_skip = now, on_skip
        self._name = f"Prometheus at {redact_urls(self._url)}"

    async def measure(self) -> list[NodeUsage]:
        percents: dict[str, dict[str, float]] = {}
        times: dict[str, float] = {}
        for kind in ("cpu", "memory", "storage"):
            async for raw in _take_turns(await self._query(getattr(self._queries, kind))):
                if (measured := self._read_sample(raw, kind)) is not None:
                    name, percent, measured_at = measured
                    percents.setdefault(name, {})[kind] = percent
                    times[name] = min(measured_at, times.get(name, measured_at))
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

    def _read_sample(self, raw: msgspec.Raw, kind: str) -> tuple[str, float, float] | None:
        """Return node, percent and time of a sample; None if it makes no sense, or names no node."""
        try:
            sample = _sample_decoder.decode(raw)
        except _UNREADABLE as error:
            self._on_skip(f"a sample of {kind} cannot be read: {_describe(error)}")
            return None
        name = sample.metric.get(self._queries.label, "")
        try:
            percent = float(sample.value[1])
            if not name or math.isnan(percent):  # NaN: there was nothing to divide by, which is no fault
                return None
            return name, _check_percent(percent), min(sample.value[0], self._now())
        except ValueError as error:
            self._on_skip(f"{kind} of node {name!r:.80}: {_shorten(str(error))}")
            return None

    async def _query(self, query: str) -> list[msgspec.Raw]:
        if not query:
            return []
        try:
            async with self._session.get(
                f"{self._url}/api/v1/query", params={"query": query}, timeout=_TIMEOUT
            ) as response:
                answer = _response_decoder.decode(await _read_bounded(response))
        except _UNREADABLE as error:
            raise ClusterError(f"{self._name} did not answer as one does: {_describe(error)}") from None
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            message = _shorten(redact_urls(f"{type(error).__name__} {error}"))
            raise ClusterError(f"{self._name} did not answer: {message}") from None
        if answer.status != "success" or answer.data is None:
            raise ClusterError(f"{self._name} refused the query {query!r}: {_shorten(redact_urls(answer.error))}")
        return answer.data.result or []


async def _take_turns(samples: list[msgspec.Raw]) -> AsyncIterator[msgspec.Raw]:
    """Yield them, and let others have the event loop now and then: there may be tens of thousands."""
    for index, sample in enumerate(samples):
        if index % _SLICE == 0:
            await asyncio.sleep(0)
        yield sample


async def _read_bounded(response: aiohttp.ClientResponse) -> bytes:
    """Return the body. Raises ValueError when it is larger than any answer about nodes."""
    body = bytearray()
    async for piece in response.content.iter_any():
        body += piece
        if len(body) > _MOST_BYTES:
            raise ValueError(f"more than {_MOST_BYTES >> 20} MiB")
    return bytes(body)


def _check_percent(percent: float) -> float:
    """Return it, 0 if it is a little less. Raises ValueError for what cannot be."""
    if not _LEAST_PERCENT <= percent <= _MOST_PERCENT:  # NaN is not, either
        raise ValueError(f"expected percent in use, got {percent:g}")
    return max(percent, 0.0)


def _parse_timestamp(timestamp: str, now: float) -> float:
    """Return when it was measured in seconds since 1970; now, if the source does not say, or says it is yet to come."""
    moment = parse_time(timestamp)
    return now if moment is None else min(moment, now)


def _describe(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "nested too deeply"
    return _shorten(readable(error) if isinstance(error, msgspec.ValidationError) else str(error))


def _shorten(text: str) -> str:
    return " ".join(text[:_MOST_CHARACTERS].split())
