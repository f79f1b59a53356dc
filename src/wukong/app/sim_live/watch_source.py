"""The follower of a scenario on a real cluster: whole objects, and only those the scenario is about.

Handed to runtime.Loop by player.py. The recorder reads statuses and conditions, so objects are read as in an embedded
cluster, with their documents. `gist` is what tells a change that matters from a heartbeat.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from wukong.api.meta import Object
from wukong.api.resources import Resource
from wukong.app.sim_live.plan import Plan
from wukong.cluster.list_watch import follow
from wukong.embedded.scenario.format.fields import RESOURCE_OF
from wukong.embedded.scenario.record import workload_status
from wukong.embedded.world import objects
from wukong.ports import Cluster, Document, Event, Listing, Selection, WatchUpdate
from wukong.runtime.watch_source import WatchSource
from wukong.state.controller import Watch

KINDS = ("Namespace", "Node", *workload_status.KINDS, "Pod", "PodDisruptionBudget")
WATCHES = tuple(Watch(RESOURCE_OF[kind]) for kind in KINDS)
_PASSING = ("message", "lastHeartbeatTime", "lastProbeTime", "lastUpdateTime", "lastTransitionTime")


def following(plan: Plan) -> WatchSource:
    async def follow_ours(
        cluster: Cluster, resource: Resource, read: type[Object], selection: Selection, optional: bool
    ) -> AsyncGenerator[WatchUpdate[Object], None]:
        if resource.namespaced and len(plan.namespaces) == 1:
            selection = Selection(*plan.namespaces)
        async with aclosing(follow(cluster, resource, dict, selection, optional)) as stream:
            async for update in stream:
                if isinstance(update, Listing):
                    ours = [document for document in update.items if _is_ours(plan, resource, document)]
                    yield Listing([objects.read(resource.kind, document) for document in ours], update.resource_version)
                elif not isinstance(update, Event):
                    yield update
                elif update.type == "BOOKMARK" or _is_ours(plan, resource, update.object):
                    yield Event(update.type, objects.read(resource.kind, update.object))

    return follow_ours


def _is_ours(plan: Plan, resource: Resource, document: Document) -> bool:
    meta = document["metadata"]
    if resource.kind == "Node":
        return not plan.nodes or meta["name"] in plan.nodes
    if resource.kind == "Namespace":
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
