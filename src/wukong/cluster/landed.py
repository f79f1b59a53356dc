"""After an OutcomeUnknown: did the write happen? Called by the runtime before it does anything a second time.

It reads the object and compares. None means that reading cannot tell; then the caller decides anew from fresh state.
"""

from __future__ import annotations

from wukong.actions import Bind, Create, Delete, Evict, Patch, Scale
from wukong.api.resources import RESOURCES, Key, Resource
from wukong.errors import NotFound
from wukong.ports import Cluster, Document

Write = Create | Patch | Delete | Evict | Bind | Scale
PODS = RESOURCES["Pod"]


async def has_landed(cluster: Cluster, write: Write) -> bool | None:
    """True: it happened, or the same was done by another. False: it did not, it may be repeated. None: who knows."""
    resource, key = _target(write)
    if not key.name:  # generateName: nobody knows what it would be called
        return None
    found = await _read(cluster, resource, key)
    match write:
        case Create():
            return found is not None and contains(found, write.body)
        case Delete() | Evict():
            return found is None or _is_other(found, write.uid) or "deletionTimestamp" in found["metadata"]
        case Bind():
            if found is None or _is_other(found, write.uid):
                return None
            return bool(found["spec"].get("nodeName", "") == write.node)
        case Scale():
            return None if found is None else bool(found["spec"].get("replicas") == write.replicas)
        case Patch():
            return None if found is None else _is_patched(found, write)


def contains(found: object, wanted: object) -> bool:
    """Whether everything wanted is there; the server adds fields. null wants absence, as in a merge patch."""
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(
            found.get(name) is None if value is None else contains(found.get(name), value)
            for name, value in wanted.items()
        )
    if isinstance(wanted, list) and isinstance(found, list):
        return len(wanted) == len(found) and all(map(contains, found, wanted))
    return found == wanted or (found is None and wanted in ({}, [], "", 0, False))


def _is_patched(found: Document, write: Patch) -> bool | None:
    """A JSON patch and a strategic merge's directives do not show in the result; merge and apply do."""
    if write.patch.type not in ("merge", "apply") or write.subresource not in ("", "status"):
        return None
    body = {name: value for name, value in write.patch.body.items() if name not in ("apiVersion", "kind")}
    meta = {name: value for name, value in body.get("metadata", {}).items() if name not in ("resourceVersion", "uid")}
    return contains(found, {**body, "metadata": meta})


def _is_other(found: Document, uid: str) -> bool:
    return bool(uid) and found["metadata"]["uid"] != uid


def _target(write: Write) -> tuple[Resource, Key]:
    match write:
        case Create():
            meta = write.body.get("metadata", {})
            return write.resource, Key(write.namespace or meta.get("namespace", ""), meta.get("name", ""))
        case Evict() | Bind():
            return PODS, write.key
        case _:
            return write.resource, write.key


async def _read(cluster: Cluster, resource: Resource, key: Key) -> Document | None:
    try:
        return await cluster.get(resource, key, dict)
    except NotFound:
        return None
