"""Node usage from Prometheus or metrics.k8s.io: its options, and the source that asks the meter.

One for all components that need it, however many there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from wukong.api.kinds import NODE_USAGES
from wukong.app.component import Component, Context, PlaceOf
from wukong.app.permissions import Permission
from wukong.cluster.usage_queries import Queries, find_url_problem
from wukong.ports import Cluster
from wukong.state.controller import Watch, no_keys

if TYPE_CHECKING:
    from wukong.runtime.source import HandOver

METRICS_API = Permission("metrics.k8s.io", "nodes", ("list",))  # where no Prometheus is named


class UsageOptions(msgspec.Struct, frozen=True, rename="camel"):
    prometheus: Annotated[
        str, Meta(description="Where usage comes from.  [default: metrics.k8s.io]", extra={"metavar": "URL"})
    ] = ""
    prometheus_cpu: Annotated[
        str,
        Meta(description="PromQL: percent of cpu in use per node.", extra={"metavar": "QUERY", "shows_default": False}),
    ] = Queries().cpu
    prometheus_memory: Annotated[
        str, Meta(description="The same for memory.", extra={"metavar": "QUERY", "shows_default": False})
    ] = Queries().memory
    prometheus_storage: Annotated[
        str, Meta(description="The same for storage.", extra={"metavar": "QUERY", "shows_default": False})
    ] = Queries().storage
    stale_seconds: Annotated[float, Meta(description="Older usage is dropped.", ge=1, le=86_400)] = 180.0
    measure_seconds: Annotated[float, Meta(description="How often usage is asked for.", ge=0.1, le=3_600)] = 15.0


class UsageSource:
    """Asks Prometheus, or the cluster's own metrics.k8s.io, for as long as the loop runs."""

    resource = NODE_USAGES

    def __init__(self, options: UsageOptions, context: Context, cluster: Cluster) -> None:
        self.options, self.clock, self.cluster = options, context.clock, cluster
        assert context.metrics is not None, "what is outside is measured beside a real cluster"
        self.metrics = context.metrics

    async def run(self, hand_over: HandOver) -> None:
        import aiohttp

        from wukong.cluster.meters import MetricsApi, Prometheus
        from wukong.runtime.metering import MeterReport, keep_measuring

        options, report, now = self.options, MeterReport(self.metrics), self.clock.now
        if not options.prometheus:
            meter = MetricsApi(self.cluster, now, report.record_skip)
            await keep_measuring(meter, hand_over, options.measure_seconds, report)
            return
        queries = Queries(options.prometheus_cpu, options.prometheus_memory, options.prometheus_storage)
        async with aiohttp.ClientSession(trust_env=True) as session:
            url, on_skip = options.prometheus, report.record_skip
            prometheus = Prometheus(url, queries, session=session, now=now, on_skip=on_skip)
            await keep_measuring(prometheus, hand_over, options.measure_seconds, report)


def find_problems(options: UsageOptions, place_of: PlaceOf) -> Iterator[str]:
    if options.prometheus and (problem := find_url_problem(options.prometheus)):
        yield f"{place_of('prometheus')}: {problem}"


def permissions_of(options: UsageOptions) -> tuple[Permission, ...]:
    return () if options.prometheus else (METRICS_API,)


def build_sources(options: UsageOptions, context: Context, cluster: Cluster) -> tuple[UsageSource, ...]:
    return (UsageSource(options, context, cluster),)


USAGE = Component(
    name="usage",
    help="asks Prometheus or metrics.k8s.io how much of each node is in use.",
    options=UsageOptions,
    find_problems=find_problems,
    permissions_of=permissions_of,
    watches=(Watch(NODE_USAGES, no_keys),),
    build_sources=build_sources,
    is_named=False,
)
