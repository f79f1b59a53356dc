"""Deletion: at once, after a grace, or when the last finalizer is gone.

    delete ─► nobody to wait for ────────────────────────────────► removed
       │  ─► a bound pod: deletionTimestamp = now + grace ─► its kubelet deletes with grace 0 ─► removed
       └──► finalizers: deletionTimestamp ─► the last of them is taken away (writing.py) ─► removed

Follows rest.BeforeDelete and registry.Store.Delete of the API server. What becomes of dependents is garbage.py's.
"""

from __future__ import annotations

import msgspec

from wukong.api.resources import Key
from wukong.embedded.store.api_errors import changed_since, forbidden, not_found, recreated
from wukong.embedded.store.database import Database, key_of
from wukong.embedded.store.documents import format_time, is_terminating, meta_of, parse_time, value_at, with_metadata
from wukong.embedded.store.kinds import NAMESPACES, Kind
from wukong.ports import Document, Propagation

FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"
_IMMORTAL = frozenset({"default", "kube-system", "kube-public"})


class Options(msgspec.Struct, frozen=True):
    uid: str = ""
    resource_version: str = ""
    grace_seconds: int | None = None
    propagation: Propagation = ""


def delete(database: Database, kind: Kind, key: Key, options: Options, now: float) -> None:
    """Raises NotFound, or Conflict where uid or version are not those of the object."""
    found = database.get(kind.name, key)
    if found is None:
        raise not_found(kind.name, key)
    _check(kind, key, found, options)
    if kind.resource == NAMESPACES:
        _delete_namespace(database, kind, found, now)
        return
    finalizers = _finalizers(found, options.propagation)
    if kind.is_graceful:
        _delete_gracefully(database, kind, found, finalizers, options, now)
    elif finalizers:
        marked = _marked(_with_finalizers(found, finalizers), now)
        if marked != found:
            database.put(kind.name, marked)
    else:
        database.remove(kind.name, key_of(found))


def _check(kind: Kind, key: Key, found: Document, options: Options) -> None:
    meta = meta_of(found)
    if options.uid and options.uid != meta["uid"]:
        raise recreated(kind.title, key, options.uid, meta["uid"])
    if options.resource_version and options.resource_version != meta["resourceVersion"]:
        raise changed_since(kind.title, key, options.resource_version, meta["resourceVersion"])


def _delete_gracefully(
    database: Database, kind: Kind, pod: Document, finalizers: list[str], options: Options, now: float
) -> None:
    meta = meta_of(pod)
    pending = meta.get("deletionGracePeriodSeconds")
    if is_terminating(pod) and pending:  # only a shorter grace changes anything now
        asked = options.grace_seconds
        if asked is None or max(asked, 0) >= pending:
            return
        asked = 1 if asked < 0 else asked
        until = format_time(parse_time(meta["deletionTimestamp"]) - pending + asked)
        changed = with_metadata(pod, deletionTimestamp=until, deletionGracePeriodSeconds=asked)
        _end_or_wait(database, kind, _with_finalizers(changed, finalizers), asked)
    elif is_terminating(pod):
        if not finalizers:
            database.remove(kind.name, key_of(pod))
    else:
        grace = _grace(pod, options.grace_seconds)
        changed = with_metadata(pod, deletionTimestamp=format_time(now + grace), deletionGracePeriodSeconds=grace)
        _end_or_wait(database, kind, _with_finalizers(_counted(changed), finalizers), grace)


def _end_or_wait(database: Database, kind: Kind, marked: Document, grace: int) -> None:
    """The mark is a write of its own: who watches a pod that goes at once sees it change, then go."""
    stored = database.put(kind.name, marked)
    if grace == 0 and not meta_of(stored).get("finalizers"):
        database.remove(kind.name, key_of(stored))


def _grace(pod: Document, asked: int | None) -> int:
    """A pod without a node, or one that is over, has nothing to finish."""
    if not value_at(pod, "spec.nodeName") or value_at(pod, "status.phase") in ("Succeeded", "Failed"):
        return 0
    own = value_at(pod, "spec.terminationGracePeriodSeconds")
    grace = asked if asked is not None else (own if own is not None else 0)
    return 1 if grace < 0 else int(grace)


def _delete_namespace(database: Database, kind: Kind, found: Document, now: float) -> None:
    """It stays, terminating, until namespaces.py finds it empty and it is finalized."""
    name = meta_of(found)["name"]
    if name in _IMMORTAL:
        raise forbidden("namespaces", name, "this namespace may not be deleted")
    if not is_terminating(found):
        status = {**(found.get("status") or {}), "phase": "Terminating"}
        found = database.put(kind.name, {**_marked(found, now, grace=None), "status": status})
    if not value_at(found, "spec.finalizers") and not meta_of(found).get("finalizers"):
        database.remove(kind.name, key_of(found))


def _finalizers(found: Document, propagation: Propagation) -> list[str]:
    """Those it has, and the garbage collector's own as the propagation asks for them."""
    have: list[str] = meta_of(found).get("finalizers") or []
    rest = [each for each in have if each not in (FOREGROUND, ORPHAN)]
    if propagation == "Orphan" or (not propagation and ORPHAN in have):
        return [*rest, ORPHAN]
    if propagation == "Foreground" or (not propagation and FOREGROUND in have):
        return [*rest, FOREGROUND]
    return rest


def _with_finalizers(found: Document, finalizers: list[str]) -> Document:
    return with_metadata(found, finalizers=finalizers or None)


def _marked(found: Document, now: float, grace: int | None = 0) -> Document:
    if is_terminating(found):
        return found
    return with_metadata(_counted(found), deletionTimestamp=format_time(now), deletionGracePeriodSeconds=grace)


def _counted(found: Document) -> Document:
    """To be told to go is a new wish, where wishes are counted."""
    generation = meta_of(found).get("generation", 0)
    return with_metadata(found, generation=generation + 1) if generation else found
