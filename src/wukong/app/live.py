"""Components on a real cluster: adapter, loop, leader, meter and probes put together, until told to stop.

Called by `wukong run`. Everything that decides is below; here is only who gets which port.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import AsyncGenerator, Coroutine, Sequence
from contextlib import AsyncExitStack

import aiohttp
import msgspec

from wukong.api.kinds import KINDS
from wukong.api.meta import Object
from wukong.api.resources import Key, Resource
from wukong.app.components import Component
from wukong.app.extender import WATCHES, ExtenderOptions, start_extender
from wukong.app.rules import load_rules
from wukong.cluster.credentials import Credentials
from wukong.cluster.http import STALL_SECONDS
from wukong.cluster.kube import Kube
from wukong.cluster.list_watch import follow
from wukong.cluster.meters import MetricsApi, Prometheus, Queries
from wukong.controllers import CONTROLLERS
from wukong.controllers.load.usage_labels import Settings as UsageSettings
from wukong.errors import InputError, NotFound
from wukong.placement.rule import Rules
from wukong.ports import Clock, Cluster, Meter, Selection, WatchUpdate
from wukong.runtime import Leader, LeaseTimes, Loop, LoopSettings, Metrics
from wukong.runtime.metering import keep_measuring
from wukong.runtime.mirror_age import LIMIT_SECONDS
from wukong.serve.probes import build_probes_app
from wukong.serve.site import serve
from wukong.state.controller import Controller

log = logging.getLogger(__name__)
STALL_SHARE = 0.6  # of the age limit: a watch that is silent for so long is begun again before the limit is reached
METERED = frozenset({"load", "extender"})  # the components that want to know how much of each node is in use


class WallClock:
    """The time of day."""

    def now(self) -> float:
        return time.time()


class Options(msgspec.Struct, frozen=True):
    identity: str
    lease: Key | None = Key("default", "wukong")  # None: act without asking who else is there
    times: LeaseTimes = LeaseTimes()
    prometheus: str = ""  # its address; "" asks metrics.k8s.io
    queries: Queries = Queries()
    usage: UsageSettings = UsageSettings()
    measure_seconds: float = 15.0
    probes: tuple[str, int] | None = None  # host and port
    extender: ExtenderOptions = ExtenderOptions()
    mirror_age_limit_seconds: float = LIMIT_SECONDS  # /readyz says no beyond it, and the extender trusts no spot node


async def run(credentials: Credentials, components: Sequence[Component], options: Options, stop: asyncio.Event) -> None:
    """Until `stop` is set, or something fails for good."""
    async with AsyncExitStack() as stack:
        stall_seconds = min(STALL_SECONDS, STALL_SHARE * options.mirror_age_limit_seconds)
        kube = await stack.enter_async_context(Kube(credentials, stall_seconds=stall_seconds))
        clock, metrics, rules = WallClock(), Metrics(), load_rules()
        names = {component.name for component in components}
        controllers = [_controller(name, options, rules) for component in components for name in component.controllers]
        loop = Loop(
            kube,
            controllers,
            follow_installed,
            clock=clock,
            random=random.random,
            leader=_leader(kube, clock, options) if controllers else None,  # who only answers need not lead
            also=WATCHES if "extender" in names else (),
            identity=options.identity,
            settings=LoopSettings(mirror_age_limit_seconds=options.mirror_age_limit_seconds),
            metrics=metrics,
        )
        if options.probes:
            try:
                await serve(stack, build_probes_app(loop, metrics), *options.probes)
            except InputError as error:
                raise InputError(*(f"--probes {problem}" for problem in error.problems)) from None
        beside: list[Coroutine[None, None, None]] = []
        if METERED & names:
            meter = await _meter(stack, kube, options)
            beside.append(keep_measuring(meter, loop, tuple({"load"} & names), options.measure_seconds))
        if "extender" in names:
            beside.append(await start_extender(stack, loop, metrics, rules, options.extender))
        log.info("started", extra={"components": [component.name for component in components]})
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(work) for work in beside]
            await loop.run(stop)
            for task in running:
                task.cancel()
        log.info("stopped")


async def follow_installed(
    cluster: Cluster, resource: Resource, read: type[Object], selection: Selection, optional: bool = False
) -> AsyncGenerator[WatchUpdate[Object], None]:
    """`follow`, which says how to install a kind of ours that the cluster does not have."""
    try:
        async for update in follow(cluster, resource, read, selection, optional):
            yield update
    except NotFound:
        kind = KINDS.of_resource(resource)
        if kind is None or kind.origin != "ours":
            raise
        raise InputError(
            f"the cluster has no kind {resource.kind}. "
            "Install it: wukong manifests crds | kubectl apply --server-side -f -"
        ) from None


def _leader(kube: Kube, clock: Clock, options: Options) -> Leader | None:
    if options.lease is None:
        return None
    return Leader(kube, options.lease, options.identity, clock=clock, times=options.times)


def _controller(name: str, options: Options, rules: Rules) -> Controller:
    """Each is made with what it asks for."""
    given: dict[str, object] = {"load": options.usage, "policy": rules}
    return CONTROLLERS[name](given[name])


async def _meter(stack: AsyncExitStack, kube: Kube, options: Options) -> Meter:
    if not options.prometheus:
        return MetricsApi(kube, time.time)
    session = await stack.enter_async_context(aiohttp.ClientSession(trust_env=True))
    return Prometheus(options.prometheus, options.queries, session=session)
