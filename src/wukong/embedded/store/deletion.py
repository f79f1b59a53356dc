"""Deletion: at once, after a grace period, or when the last finalizer is gone.

    delete ─► nothing to wait for ───────────────────────────────► removed
       │  ─► a bound pod: deletionTimestamp = now + grace ─► its kubelet deletes with grace 0 ─► removed
       └──► finalizers: deletionTimestamp ─► the last of them is removed (writes.py) ─► removed

Follows rest.BeforeDelete and registry.Store.Delete of the API server. Dependents are left to garbage_collection.py.
Called by server.py and eviction.py.
"""

from __future__ import annotations

import msgspec

from wukong.api.kinds import NAMESPACES
from wukong.api.resources import Key
from wukong.embedded.store.api_errors import forbidden, not_found, uid_mismatch, version_mismatch
from wukong.embedded.store.database import Database, key_of
from wukong.embedded.store.documents import format_time, is_terminating, meta_of, parse_time, value_at, with_metadata
from wukong.embedded.store.kinds import ServedKind
from wukong.ports import Document, Propagation

FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"
_PROTECTED_NAMESPACES = frozenset({"default", "kube-system", "kube-public"})


class DeleteOptions(msgspec.Struct, frozen=True):
    """What a deletion asks for: preconditions, grace period and propagation policy."""

    uid: str = ""
    resource_version: str = ""
    grace_seconds: int | None = None
    propagation: Propagation = ""


def delete(database: Database, kind: ServedKind, key: Key, options: DeleteOptions, now: float) -> None:
    """Delete an object, or mark it as terminating.

    Raises NotFound, or Conflict where the uid or the version is not the object's.
    """
    document = database.get(kind.name, key)
    if document is None:
        raise not_found(kind.name, key)
    _check_preconditions(kind, key, document, options)
    if kind.resource == NAMESPACES:
        _delete_namespace(database, kind, document, now)
        return
    finalizers = _finalizers_for(document, options.propagation)
    if kind.is_graceful:
        _delete_gracefully(database, kind, document, finalizers, options, now)
    elif finalizers:
        marked = _with_deletion_timestamp(_with_finalizers(document, finalizers), now)
        if marked != document:
            database.put(kind.name, marked)
    else:
        database.remove(kind.name, key_of(document))


def _check_preconditions(kind: ServedKind, key: Key, document: Document, options: DeleteOptions) -> None:
    meta = meta_of(document)
    if options.uid and options.uid != meta["uid"]:
        raise uid_mismatch(kind.title, key, options.uid, meta["uid"])
    if options.resource_version and options.resource_version != meta["resourceVersion"]:
        raise version_mismatch(kind.title, key, options.resource_version, meta["resourceVersion"])


def _delete_gracefully(
    database: Database, kind: ServedKind, pod: Document, finalizers: list[str], options: DeleteOptions, now: float
) -> None:
    meta = meta_of(pod)
    pending_grace = meta.get("deletionGracePeriodSeconds")
    if is_terminating(pod) and pending_grace:  # only a shorter grace period changes anything now
        requested = options.grace_seconds
        if requested is None or max(requested, 0) >= pending_grace:
            return
        requested = 1 if requested < 0 else requested
        until = format_time(parse_time(meta["deletionTimestamp"]) - pending_grace + requested)
        changed = with_metadata(pod, deletionTimestamp=until, deletionGracePeriodSeconds=requested)
        _store_deletion(database, kind, _with_finalizers(changed, finalizers), requested)
    elif is_terminating(pod):
        if not finalizers:
            database.remove(kind.name, key_of(pod))
    else:
        grace = _grace_seconds_for(pod, options.grace_seconds)
        changed = with_metadata(pod, deletionTimestamp=format_time(now + grace), deletionGracePeriodSeconds=grace)
        _store_deletion(database, kind, _with_finalizers(_bump_generation(changed), finalizers), grace)


def _store_deletion(database: Database, kind: ServedKind, marked: Document, grace: int) -> None:
    """Store a terminating pod, and remove it if nothing holds it. Two writes: watchers see it change, then go."""
    stored = database.put(kind.name, marked)
    if grace == 0 and not meta_of(stored).get("finalizers"):
        database.remove(kind.name, key_of(stored))


def _grace_seconds_for(pod: Document, requested: int | None) -> int:
    """Return the grace period of a deletion. A pod without a node, or a finished one, needs none."""
    if not value_at(pod, "spec.nodeName") or value_at(pod, "status.phase") in ("Succeeded", "Failed"):
        return 0
    own_grace = value_at(pod, "spec.terminationGracePeriodSeconds")
    grace = requested if requested is not None else (own_grace if own_grace is not None else 0)
    return 1 if grace < 0 else int(grace)


def _delete_namespace(database: Database, kind: ServedKind, namespace: Document, now: float) -> None:
    """Mark a namespace as terminating. It stays until namespaces.py finds it empty and it is finalized."""
    name = meta_of(namespace)["name"]
    if name in _PROTECTED_NAMESPACES:
        raise forbidden("namespaces", name, "this namespace may not be deleted")
    if not is_terminating(namespace):
        status = {**(namespace.get("status") or {}), "phase": "Terminating"}
        namespace = database.put(kind.name, {**_with_deletion_timestamp(namespace, now, grace=None), "status": status})
    if not value_at(namespace, "spec.finalizers") and not meta_of(namespace).get("finalizers"):
        database.remove(kind.name, key_of(namespace))


def _finalizers_for(document: Document, propagation: Propagation) -> list[str]:
    """Return the finalizers it has, with the garbage collector's own as the propagation policy asks for them."""
    current: list[str] = meta_of(document).get("finalizers") or []
    others = [finalizer for finalizer in current if finalizer not in (FOREGROUND, ORPHAN)]
    if propagation == "Orphan" or (not propagation and ORPHAN in current):
        return [*others, ORPHAN]
    if propagation == "Foreground" or (not propagation and FOREGROUND in current):
        return [*others, FOREGROUND]
    return others


def _with_finalizers(document: Document, finalizers: list[str]) -> Document:
    return with_metadata(document, finalizers=finalizers or None)


def _with_deletion_timestamp(document: Document, now: float, grace: int | None = 0) -> Document:
    if is_terminating(document):
        return document
    return with_metadata(
        _bump_generation(document), deletionTimestamp=format_time(now), deletionGracePeriodSeconds=grace
    )


def _bump_generation(document: Document) -> Document:
    """Count the deletion as a change of the desired state, for kinds that have a generation."""
    generation = meta_of(document).get("generation", 0)
    return with_metadata(document, generation=generation + 1) if generation else document
