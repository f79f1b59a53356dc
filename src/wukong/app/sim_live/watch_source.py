"""What a scenario on a real cluster watches: whole objects, and only those of the run, by their label.

Handed to runtime.Loop by real_cluster.py. The recorder reads statuses and conditions, so objects are read as in an
embedded cluster, with their documents. `lasting_part_of` tells a change that matters from a heartbeat.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from wukong.api.kinds import KINDS, NAMESPACES, NODES, POD_DISRUPTION_BUDGETS, PODS
from wukong.api.meta import Object
from wukong.api.resources import Resource
from wukong.api.unreadable import Unreadable
from wukong.app.mirror_documents import read_event, read_page
from wukong.app.sim_live.ownership import RUN_LABEL, carries_label
from wukong.app.sim_live.plan import Plan
from wukong.cluster.list_watch import follow
from wukong.embedded.world import objects
from wukong.ports import Cluster, Document, Event, Listing, Selection, WatchUpdate
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
_METADATA = ("labels", "annotations", "deletionTimestamp", "generation")
_PASSING = ("message", "lastHeartbeatTime", "lastProbeTime", "lastUpdateTime", "lastTransitionTime")


def watch_source_of(plan: Plan) -> WatchSource:
    async def follow_covered(
        cluster: Cluster, resource: Resource, read: type[Object], selection: Selection, optional: bool
    ) -> AsyncGenerator[WatchUpdate[Object], None]:
        if resource.namespaced:
            selection = _selection_of(plan)
        async with aclosing(follow(cluster, resource, dict, selection, optional)) as stream:
            async for update in stream:
                if isinstance(update, Listing):
                    covered = [document for document in update.items if _is_covered(plan, resource, document)]
                    yield read_page(update, [objects.read(resource.group_kind, document) for document in covered])
                elif not isinstance(update, Event):
                    yield update
                elif (
                    update.type == "BOOKMARK"
                    or isinstance(update.object, Unreadable)
                    or _is_covered(plan, resource, update.object)
                ):
                    yield read_event(update, resource.group_kind)

    return follow_covered


def _selection_of(plan: Plan) -> Selection:
    """What the API server leaves out need not be read: on a cluster of others that is nearly everything."""
    namespace = next(iter(plan.namespaces)) if len(plan.namespaces) == 1 else ""
    return Selection(namespace, "" if plan.new_namespaces else f"{RUN_LABEL}={plan.run}")


def _is_covered(plan: Plan, resource: Resource, document: Document) -> bool:
    meta = document["metadata"]
    if resource == NODES:
        return not plan.nodes or meta["name"] in plan.nodes
    if resource == NAMESPACES:
        return meta["name"] in plan.namespaces
    return meta["namespace"] in plan.new_namespaces or carries_label(document, plan.run)


def lasting_part_of(changed: Object | None) -> Any:
    """The document without versions, times and messages."""
    document: Document = getattr(changed, "document", {})
    status = document.get("status") or {}
    conditions = [
        {name: value for name, value in condition.items() if name not in _PASSING}
        for condition in status.get("conditions") or ()
    ]
    meta = {name: value for name, value in (document.get("metadata") or {}).items() if name in _METADATA}
    return (meta, document.get("spec"), {**status, "conditions": conditions})
