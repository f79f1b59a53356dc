"""Components on a real cluster: adapter, loop, leader, gate and probes put together, until told to stop.

Called by `wukong run`. Everything that decides is below; here is only who gets which port. The twin of embedded.py.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import AsyncGenerator, Coroutine
from contextlib import AsyncExitStack
from functools import partial

import msgspec

from wukong.actions import Action
from wukong.api.kinds import KINDS, NODES
from wukong.api.meta import Object
from wukong.api.resources import Resource
from wukong.app.addresses import read_address
from wukong.app.assemble import Assembly, assemble
from wukong.app.component import Context
from wukong.app.mirror_documents import follow_whole
from wukong.app.rules import load_rules
from wukong.app.run_config import RunConfig
from wukong.cluster.credentials import Credentials
from wukong.cluster.http import STALL_SECONDS
from wukong.cluster.kube import Kube
from wukong.cluster.layers import DryRun
from wukong.cluster.list_watch import follow
from wukong.errors import InputError, NotFound
from wukong.ports import Clock, Cluster, Selection, WatchUpdate
from wukong.runtime import Leader, Loop, LoopSettings, Metrics
from wukong.runtime.delivery import describe_action
from wukong.runtime.gate import Gate
from wukong.runtime.short_collections import keep_collections_short
from wukong.runtime.watch_source import WatchSource
from wukong.serve.connections import count_connections
from wukong.serve.probes import build_probes_app
from wukong.serve.site import serve
from wukong.state import State

log = logging.getLogger(__name__)
PROBE_CONNECTIONS = 64  # the kubelet and Prometheus have a few
STALL_SHARE = 0.6  # of the age limit: a watch that is silent for so long is begun again before the limit is reached


class WallClock:
    """The time of day."""

    def now(self) -> float:
        return time.time()


async def run(credentials: Credentials, config: RunConfig, identity: str, stop: asyncio.Event) -> None:
    """Until `stop` is set, or something fails for good. `identity` tells instances apart."""
    async with AsyncExitStack() as stack:
        stack.enter_context(keep_collections_short())
        stall_seconds = min(STALL_SECONDS, STALL_SHARE * config.run.mirror_age_limit)
        kube = await stack.enter_async_context(Kube(credentials, stall_seconds=stall_seconds))
        cluster: Cluster = DryRun(kube, say_dry_run) if config.run.dry_run else kube
        clock, metrics = WallClock(), Metrics()
        loop: Loop  # is made of what is assembled, and asked only when that decides

        def node_staleness(now: float) -> float:
            return loop.mirror.ages.staleness_of(NODES.kind, now)

        context = Context(State(), metrics, clock, load_rules(), config.options, node_staleness=node_staleness)
        assembly = assemble(config.components, context)
        assembly = await assembly.open_ledger(stack, say_dry_run if config.run.dry_run else None)
        loop = build_loop(cluster, clock, metrics, assembly, config, identity)
        if config.run.probes:
            try:
                host, port = read_address(config.run.probes)
                connections = count_connections(metrics, "probes", PROBE_CONNECTIONS)
                await serve(stack, build_probes_app(loop, metrics), host, port, connections=connections)
            except InputError as error:
                raise InputError(*(f"--probes {problem}" for problem in error.problems)) from None
        beside: list[Coroutine[None, None, None]] = []
        for server in assembly.build_servers():
            beside.append(await server.start(stack, loop))
        for source in assembly.build_sources(cluster):
            beside.append(source.run(partial(loop.take_in, source.resource)))
        log.info("started", extra={"components": [component.name for component in config.components]})
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(work) for work in beside]
            await loop.run(stop)
            for task in running:
                task.cancel()
        log.info("stopped")


def build_loop(
    cluster: Cluster, clock: Clock, metrics: Metrics, assembly: Assembly, config: RunConfig, identity: str
) -> Loop:
    lease = config.run.lease_key if assembly.controllers else None  # who only answers need not lead
    leader = Leader(cluster, lease, identity, clock=clock, times=config.run.lease_times) if lease else None
    return Loop(
        cluster,
        assembly.controllers,
        partial(follow_installed, source=follow_whole if assembly.keeps_documents else follow),
        clock=clock,
        random=random.random,
        leader=leader,
        also=assembly.watches,
        identity=identity,
        settings=LoopSettings(
            workers=max(component.workers for component in assembly.components),
            mirror_age_limit_seconds=config.run.mirror_age_limit,
        ),
        state=assembly.context.state,
        metrics=metrics,
        gate=Gate(config.gate, is_dry_run=config.run.dry_run, count=metrics.count_gate),
        ledger=assembly.context.ledger,
    )


def say_dry_run(action: Action) -> None:
    """One line for what would be written."""
    fields = msgspec.to_builtins(action)
    details = {name: value for name, value in fields.items() if name not in ("type", "resource", "key")}
    log.info(
        "dry run: would write", extra={"action": describe_action(action), **({"details": details} if details else {})}
    )


async def follow_installed(
    cluster: Cluster,
    resource: Resource,
    read: type[Object],
    selection: Selection,
    optional: bool = False,
    source: WatchSource = follow,
) -> AsyncGenerator[WatchUpdate[Object], None]:
    """The source, which says how to install a kind of ours that the cluster does not have."""
    try:
        async for update in source(cluster, resource, read, selection, optional):
            yield update
    except NotFound:
        kind = KINDS.of_resource(resource)
        if kind is None or kind.origin != "ours":
            raise
        raise InputError(
            f"the cluster has no kind {resource.kind}. "
            "Install it: wukong manifests crds | kubectl apply --server-side -f -"
        ) from None
