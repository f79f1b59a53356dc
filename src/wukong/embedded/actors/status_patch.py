"""Patches of statuses, by which the workload controllers write what they counted."""

from __future__ import annotations

from wukong.actions import Patch
from wukong.api.resources import Key, Resource
from wukong.embedded.actors.pods import MANAGER
from wukong.ports import Document, PatchBody


def patch_status(resource: Resource, key: Key, before: Document, status: Document) -> Patch:
    """A merge patch that turns the status `before` into `status`: fields that are no longer there are removed."""
    removed = {name: None for name in before if name not in status}
    return Patch(resource, key, PatchBody("merge", {"status": {**removed, **status}}, manager=MANAGER), "status")


def null_removed_entries(before: Document, status: Document, field: str) -> None:
    """Set the entries of a map to null that `before` has and `status` has not: a merge patch keeps the others."""
    removed = (before.get(field) or {}).keys() - (status.get(field) or {}).keys()
    if removed and field in status:
        status[field] = {**status[field], **dict.fromkeys(sorted(removed))}
