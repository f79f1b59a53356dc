"""Reads from a live cluster what `wukong get` and `wukong spot status` show, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing

from wukong.api.kinds import (
    PODS,
    VIRTUAL_MACHINE_INSTANCE_MIGRATIONS,
    VIRTUAL_MACHINE_INSTANCES,
    VIRTUAL_MACHINES,
    WUKONGS,
)
from wukong.api.meta import Object
from wukong.api.resources import Resource
from wukong.cli.inputs.source import Source
from wukong.controllers.vm.machines import LAUNCHER, LAUNCHER_LABEL
from wukong.errors import NotFound
from wukong.ports import Cluster, Event, KindMissing, Listing, Selection
from wukong.state import State
from wukong.state.controller import Watch

LAUNCHERS = f"{LAUNCHER_LABEL}={LAUNCHER}"
KINDS_READ = (
    Watch(WUKONGS),
    Watch(VIRTUAL_MACHINES, optional=True),
    Watch(VIRTUAL_MACHINE_INSTANCES, optional=True),
    Watch(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, optional=True),
    Watch(PODS, selection=Selection(labels=LAUNCHERS)),
)
_PAGE = 500
_QUIET_SECONDS = 0.2  # several changes at once are shown once


async def read_machines(source: Source, namespace: str, kinds: Sequence[Watch] = KINDS_READ) -> State:
    """All of it once. Optional kinds that are not installed are empty."""
    from wukong.cluster.credentials import load
    from wukong.cluster.kube import Kube

    state = State()
    async with Kube(load(source.kubeconfig, source.context)) as kube:
        for watch in kinds:
            state.replace(watch.resource.group_kind, await _list_all(kube, watch, namespace))
    return state


async def _list_all(cluster: Cluster, watch: Watch, namespace: str) -> list[Object]:
    items: list[Object] = []
    token = ""
    selection = _select(watch, namespace)
    while True:
        try:
            page = await cluster.list(watch.resource, watch.struct, selection, limit=_PAGE, token=token)
        except NotFound:
            if not watch.optional:
                raise
            return []
        items += page.items
        token = page.token
        if not token:
            return items


async def follow_machines(
    source: Source, namespace: str, show: Callable[[State], None], kinds: Sequence[Watch] = KINDS_READ
) -> None:
    """Call `show` when all is known, and again a moment after each change. Until it is cancelled."""
    from wukong.cluster.credentials import load
    from wukong.cluster.kube import Kube

    async with Kube(load(source.kubeconfig, source.context)) as kube:
        await follow_cluster(kube, namespace, show, kinds)


async def follow_cluster(
    cluster: Cluster, namespace: str, show: Callable[[State], None], kinds: Sequence[Watch] = KINDS_READ
) -> None:
    """The same for a cluster that is connected already."""
    state, changed, unlisted = State(), asyncio.Event(), {watch.resource for watch in kinds}
    async with asyncio.TaskGroup() as tasks:
        for watch in kinds:
            tasks.create_task(_feed_state(cluster, watch, namespace, state, unlisted, changed))
        while True:
            await changed.wait()
            await asyncio.sleep(_QUIET_SECONDS)
            changed.clear()
            if not unlisted:
                show(state)


async def _feed_state(
    cluster: Cluster, watch: Watch, namespace: str, state: State, unlisted: set[Resource], changed: asyncio.Event
) -> None:
    from wukong.cluster.list_watch import follow

    group_kind = watch.resource.group_kind
    selection = _select(watch, namespace)
    async with aclosing(follow(cluster, watch.resource, watch.struct, selection, watch.optional)) as updates:
        async for update in updates:
            if isinstance(update, Event):
                changes = state.apply(update.type, update.object, group_kind)
            elif isinstance(update, Listing):
                changes = state.take_page(group_kind, update.items, is_first=update.is_first, is_last=update.is_last)
            else:
                changes = []
            was_unlisted = watch.resource in unlisted
            if isinstance(update, KindMissing) or (isinstance(update, Listing) and update.is_last):
                unlisted.discard(watch.resource)
            if changes or was_unlisted:
                changed.set()


def _select(watch: Watch, namespace: str) -> Selection:
    return Selection(namespace=namespace if watch.resource.namespaced else "", labels=watch.selection.labels)
