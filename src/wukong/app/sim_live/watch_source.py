"""The follower of a scenario on a real cluster: whole objects, and only those the scenario is about.

Handed to runtime.Loop by player.py. The recorder reads statuses and conditions, so objects are read as in an embedded
cluster, with their documents. `gist` is what tells a change that matters from a heartbeat.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from wukong.api.kinds import KINDS, NAMESPACES, NODES, POD_DISRUPTION_BUDGETS, PODS
from wukong.api.meta import Object
from wukong.api.resources import Resource
from wukong.app.sim_live.plan import Plan
from wukong.cluster.list_watch import Changed, Synced, follow
from wukong.embedded.world import objects
from wukong.ports import Cluster, Document, Event, Selection
from wukong.runtime.watch_source import WatchSource
from wukong.state.controller import Watch

WATCHES = tuple(
    Watch(resource)
    for resource in (
        *(NAMESPACES, NODES),
        *(kind.resource for kind in KINDS.workloads() if kind.is_built_in),
        *(PODS, POD_DISRUPTION_BUDGETS),
    )
)
_PASSING = ("message", "lastHeartbeatTime", "lastProbeTime", "lastUpdateTime", "lastTransitionTime")


def following(plan: Plan) -> WatchSource:
    async def follow_ours(
        cluster: Cluster, resource: Resource, read: type[Object], selection: Selection
    ) -> AsyncGenerator[Synced[Object] | Changed[Object], None]:
        if resource.namespaced and len(plan.namespaces) == 1:
            selection = Selection(*plan.namespaces)
        async with aclosing(follow(cluster, resource, dict, selection)) as stream:
            async for news in stream:
                if isinstance(news, Synced):
                    ours = [each for each in news.items if _is_ours(plan, resource, each)]
                    yield Synced([objects.read(resource.group_kind, each) for each in ours], news.resource_version)
                elif _is_ours(plan, resource, news.event.object):
                    yield Changed(Event(news.event.type, objects.read(resource.group_kind, news.event.object)))

    return follow_ours


def _is_ours(plan: Plan, resource: Resource, document: Document) -> bool:
    meta = document["metadata"]
    if resource == NODES:
        return not plan.nodes or meta["name"] in plan.nodes
    if resource == NAMESPACES:
        return meta["name"] in plan.namespaces
    return plan.may_be_ours(meta["namespace"], meta["name"])


def gist(found: Object | None) -> Any:
    """The document without versions, times and messages."""
    document: Document = getattr(found, "document", {})
    status = document.get("status") or {}
    conditions = [
        {name: value for name, value in each.items() if name not in _PASSING} for each in status.get("conditions") or ()
    ]
    kept = ("labels", "annotations", "deletionTimestamp", "generation")
    meta = {name: value for name, value in (document.get("metadata") or {}).items() if name in kept}
    return (meta, document.get("spec"), {**status, "conditions": conditions})
