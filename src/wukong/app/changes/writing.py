"""One patch of a workload: tried on the API server first, then written at the version that was read.

Called by `wukong patch` and its like. A workload whose status alone moved on is written to all the same; one that
somebody else changed is not, and it is said what changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from wukong.api.resources import Key, Resource
from wukong.app.changes.reading import read_workload
from wukong.errors import Conflict, OutcomeUnknown
from wukong.placement.workloads.rules import REVISION
from wukong.ports import Cluster, Document, PatchBody

TRIES = 20  # controllers write the status meanwhile; each of their writes costs one
_KEPT_BY_SERVER = frozenset({"resourceVersion", "generation", "managedFields", "selfLink"})
MakePatch = Callable[[Document], PatchBody]  # of the workload as it was read


class ChangedMeanwhile(Exception):  # noqa: N818  # no failure: it is planned again
    """Somebody else changed the workload since it was read. Carries it as it is now."""

    def __init__(self, workload: Document) -> None:
        super().__init__("the workload was changed meanwhile")
        self.workload = workload


async def try_patch(cluster: Cluster, resource: Resource, key: Key, patch: PatchBody) -> Document:
    """What the API server would make of it; nothing is changed. Raises ClusterError where it is refused."""
    tried = await cluster.patch(resource, key, msgspec.structs.replace(patch, is_dry_run=True))
    return {**tried, "kind": resource.kind, "apiVersion": resource.api_version}


async def try_change(
    cluster: Cluster, resource: Resource, key: Key, before: Document, make_patch: MakePatch
) -> tuple[PatchBody, Document]:
    """The patch that `make_patch` makes of the workload, and what the API server would make of that.

    Raises ChangedMeanwhile if somebody changed the workload since `before` was read, its status aside.
    """
    workload = before
    for _ in range(TRIES):
        patch = make_patch(workload)
        try:
            return patch, await try_patch(cluster, resource, key, patch)
        except Conflict as conflict:
            if patch.type == "apply" and not _is_about_version(conflict):
                raise  # others own fields of it
        workload = await read_workload(cluster, resource, key)
        if not has_same_wishes(before, workload):
            raise ChangedMeanwhile(workload)
    raise Conflict(f"{resource.kind} {key} changed {TRIES} times while it was to be tried")


async def write_patch(
    cluster: Cluster, resource: Resource, key: Key, before: Document, make_patch: MakePatch
) -> Document:
    """Write what `make_patch` makes of the workload, unless somebody changed it since `before` was read.

    Raises ChangedMeanwhile then. A write whose answer got lost is looked for before it is repeated.
    """
    workload, lost_write = before, None
    for _ in range(TRIES):
        patch = make_patch(workload)
        try:
            wanted = await try_patch(cluster, resource, key, patch)
            written = await _send(cluster, resource, key, patch)
        except Conflict as conflict:
            if patch.type == "apply" and not _is_about_version(conflict):
                raise  # others own fields of it
        else:
            if written is not None:
                return {**written, "kind": resource.kind, "apiVersion": resource.api_version}
            lost_write = wanted
        workload = await read_workload(cluster, resource, key)
        if lost_write is not None and has_same_wishes(workload, lost_write):
            return workload
        if not has_same_wishes(before, workload):
            raise ChangedMeanwhile(workload)
    raise Conflict(f"{resource.kind} {key} changed {TRIES} times while it was to be written")


async def _send(cluster: Cluster, resource: Resource, key: Key, patch: PatchBody) -> Document | None:
    """The object as written; None where the answer got lost, and nobody knows whether it was."""
    try:
        return await cluster.patch(resource, key, patch)
    except OutcomeUnknown:
        return None


def has_same_wishes(left: Document, right: Document) -> bool:
    """Whether two versions of a workload differ in nothing that people write."""
    return bool(_wishes_of(left) == _wishes_of(right))


def _wishes_of(document: Document) -> Any:
    meta = {name: value for name, value in (document.get("metadata") or {}).items() if name not in _KEPT_BY_SERVER}
    annotations = {name: text for name, text in (meta.pop("annotations", None) or {}).items() if name != REVISION}
    return meta, annotations, document.get("spec")


def _is_about_version(conflict: Conflict) -> bool:
    """An apply is refused with the same code where another manager owns a field."""
    return "Apply failed with" not in str(conflict)
