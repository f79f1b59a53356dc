"""Patches by which KubeVirt's components write objects: merge patches of what differs, at the version that was read.

Used by every actor of this package. A conflict is not resolved here: the key comes back and is decided again.
"""

from __future__ import annotations

from typing import Protocol

from wukong.actions import Patch
from wukong.api.meta import ObjectMeta
from wukong.api.resources import Key, Resource
from wukong.ports import Document, PatchBody

CONTROLLER, HANDLER = "virt-controller", "virt-handler"  # field managers


class Whole(Protocol):
    """An object of the mirror with its document."""

    metadata: ObjectMeta
    document: Document


def diff(before: Document, after: Document) -> Document:
    """The merge patch that turns one map into the other."""
    patch: Document = {name: None for name in before if name not in after}
    for name, value in after.items():
        known = before.get(name)
        if name in before and known == value:
            continue
        patch[name] = diff(known, value) if isinstance(known, dict) and isinstance(value, dict) else value
    return patch


def patch_object(resource: Resource, subject: Whole, after: Document, manager: str = CONTROLLER) -> list[Patch]:
    """A patch that makes the object what `after` says, status included; none if it is so already."""
    changes = diff(subject.document, after)
    if not changes:
        return []
    return [_at_version(resource, subject, changes, manager, "")]


def patch_status(resource: Resource, subject: Whole, status: Document, manager: str = CONTROLLER) -> list[Patch]:
    """A patch of the subresource `status`; none if it says so already."""
    changes = diff(subject.document.get("status") or {}, status)
    return [_at_version(resource, subject, {"status": changes}, manager, "status")] if changes else []


def _at_version(resource: Resource, subject: Whole, changes: Document, manager: str, subresource: str) -> Patch:
    meta = subject.metadata
    head = {"uid": meta.uid, "resourceVersion": meta.resource_version}
    body = {**changes, "metadata": {**(changes.get("metadata") or {}), **head}}
    return Patch(resource, Key(meta.namespace, meta.name), PatchBody("merge", body, manager=manager), subresource)


def replace_finalizers(resource: Resource, subject: Whole, finalizers: list[str]) -> Patch:
    """A patch that fails if the finalizers are not those that were read; whatever else has changed does not matter."""
    meta = subject.metadata
    before: list[str] = subject.document["metadata"].get("finalizers") or []
    steps: list[Document] = [{"op": "test", "path": "/metadata/uid", "value": meta.uid}]
    if before:
        steps.append({"op": "test", "path": "/metadata/finalizers", "value": before})
    steps.append({"op": "add", "path": "/metadata/finalizers", "value": finalizers})
    return Patch(resource, Key(meta.namespace, meta.name), PatchBody("json", steps, manager=CONTROLLER))
