"""How endpoints are put into slices of at most 100: as few writes as possible, not as few slices. Pure.

Follows k8s.io/endpointslice 0.35 (reconcileByPortMapping). Which endpoint goes into which of several new slices is
chance there; here they go by name. Called by controller.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from wukong.ports import Document

MOST_ENDPOINTS = 100


class SlicePlan(NamedTuple):
    """Endpoints of new slices; of slices that change, by name; and the names of those that go."""

    created: list[list[Document]]
    updated: dict[str, list[Document]]
    deleted: list[str]


def plan_slices(existing: Sequence[tuple[str, list[Document]]], desired: dict[str, Document]) -> SlicePlan:
    """`existing` are slices of the same ports by name, with their endpoints; `desired` endpoints by their pod's uid."""
    left, updated, deleted = dict(desired), dict[str, list[Document]](), list[str]()
    unchanged: dict[str, list[Document]] = {}
    for name, endpoints in existing:
        uids = [(endpoint.get("targetRef") or {}).get("uid", "") for endpoint in endpoints]
        kept = [left.pop(uid) for uid in uids if uid in left]
        if kept == endpoints:
            unchanged[name] = kept
        elif kept:
            updated[name] = kept
        else:
            deleted.append(name)
    waiting = sorted(left.values(), key=lambda endpoint: str(endpoint["targetRef"]["name"]))
    for name in sorted(updated, key=lambda name: (-len(updated[name]), name)):  # the fullest first
        waiting = _fill(updated[name], waiting)
    created: list[list[Document]] = []
    while waiting:
        name = _find_slice_to_fill(unchanged, len(waiting))
        if name:
            updated[name] = [*unchanged.pop(name)]
            waiting = _fill(updated[name], waiting)
        else:
            created.append([])
            waiting = _fill(created[-1], waiting)
    return SlicePlan(created, updated, deleted)


def _fill(endpoints: list[Document], waiting: list[Document]) -> list[Document]:
    """Add as many as fit, in place. Returns the others."""
    room = MOST_ENDPOINTS - len(endpoints)
    endpoints.extend(waiting[:room])
    return waiting[room:]


def _find_slice_to_fill(unchanged: dict[str, list[Document]], count: int) -> str:
    """The fullest slice that takes all that are left, "" if there is none."""
    if count >= MOST_ENDPOINTS:
        return ""
    fitting = [name for name, endpoints in unchanged.items() if len(endpoints) + count <= MOST_ENDPOINTS]
    return max(fitting, key=lambda name: (len(unchanged[name]), name), default="")
