"""What the garbage collector has to do about objects without owners, owners that wait for dependents, and orphans.

    background   owner removed ─► dependents deleted, each with its own dependents
    foreground   owner marked ─► dependents deleted ─► when none blocks it any more, the owner's finalizer goes
    orphan       owner marked ─► its ownerReferences are removed from dependents ─► the owner's finalizer goes

`plan_actions` returns what to do about some objects; actors/garbage_collector calls it near each change. Nothing here
writes. Owners are found by uid; an owner that never existed is treated as one that is gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from wukong.actions import Action, Delete, Patch
from wukong.api.kinds import EVENTS
from wukong.api.resources import Resource
from wukong.embedded.store.database import Change, Database, ObjectRef, key_of, owners_of
from wukong.embedded.store.deletion import FOREGROUND, ORPHAN
from wukong.embedded.store.documents import is_terminating, meta_of, parse_time
from wukong.embedded.store.kinds import Kinds
from wukong.ports import Document, PatchBody, Propagation

EVENT_SECONDS = 3600.0  # Events are deleted after an hour


def find_affected_objects(database: Database, name: str, change: Change) -> list[ObjectRef]:
    """Return the objects that a change may affect: itself, its owners, its dependents. Sorted, each once."""
    uid = meta_of(change.document).get("uid", "")
    owners = [*owners_of(change.document), *owners_of(change.before)]
    affected = {ObjectRef(name, change.key), *database.dependents.get(uid, ())}
    affected |= {database.by_uid[owner] for owner in owners if owner in database.by_uid}
    return sorted(affected)


class GarbageCandidates:
    """The objects for which `plan_actions` has actions, updated with every write."""

    def __init__(self, database: Database, refs: Iterable[ObjectRef] | None = None) -> None:
        """`refs`: the candidates where they are known already, as in a copy of a database."""
        self._database = database
        self._refs: set[ObjectRef] = set(refs or ())
        if refs is None:
            self._refs.update(filter(self._is_candidate, _list_doubtful(database)))
        database.follow(self._follow_change)

    def fork(self, database: Database) -> GarbageCandidates:
        """Return the same for a copy of the database."""
        return GarbageCandidates(database, self._refs)

    def list_near(self, uid: str) -> list[ObjectRef]:
        """Return the candidates among the object with this uid and its dependents. Sorted."""
        if not self._refs:
            return []
        ref, dependents = self._database.by_uid.get(uid), self._database.dependents.get(uid, {})
        return sorted((dependents.keys() & self._refs) | ({ref} & self._refs if ref else set()))

    def has_near(self, uid: str) -> bool:
        """Whether `list_near` returns any."""
        if not self._refs:
            return False
        ref, dependents = self._database.by_uid.get(uid), self._database.dependents.get(uid, {})
        if len(dependents) < len(self._refs):
            return ref in self._refs or any(dependent in self._refs for dependent in dependents)
        return ref in self._refs or any(candidate in dependents for candidate in self._refs)

    def _follow_change(self, name: str, change: Change) -> None:
        if change.type == "MODIFIED" and change.before is not None and _is_alike(change.before, change.document):
            return
        self._update(ObjectRef(name, change.key))
        after = None if change.type == "DELETED" else change.document
        if _is_solid(change.before) != _is_solid(after):
            for ref in self._database.dependents.get(meta_of(change.document).get("uid", ""), ()):
                self._update(ref)

    def _update(self, ref: ObjectRef) -> None:
        if self._is_candidate(ref):
            self._refs.add(ref)
        else:
            self._refs.discard(ref)

    def _is_candidate(self, ref: ObjectRef) -> bool:
        document = self._database.get(ref.name, ref.key)
        if document is None:
            return False
        if is_terminating(document):
            return bool({ORPHAN, FOREGROUND} & {*(meta_of(document).get("finalizers") or ())})
        return any(_owner_state(self._database, ref, uid) != "solid" for uid in owners_of(document))


def _list_doubtful(database: Database) -> Iterator[ObjectRef]:
    """The objects that are being deleted, and the dependents of owners that are not solid. No others are candidates."""
    solid = set()
    for uid, ref in database.by_uid.items():
        document = database.get(ref.name, ref.key)
        if document is not None and is_terminating(document):
            yield ref
        if _is_solid(document):
            solid.add(uid)
    for uid, dependents in database.dependents.items():
        namespace = database.by_uid[uid].key.namespace if uid in solid else ""
        for ref in dependents:
            if uid not in solid or namespace not in ("", ref.key.namespace):
                yield ref


def _is_alike(before: Document, after: Document) -> bool:
    """Whether two versions of an object are alike in all that makes it, or its dependents, candidates."""
    old, new = meta_of(before), meta_of(after)
    return (
        old.get("ownerReferences") is new.get("ownerReferences")
        and old.get("finalizers") is new.get("finalizers")
        and old.get("deletionTimestamp") is new.get("deletionTimestamp")
        and old.get("uid") == new.get("uid")
    )


def _is_solid(owner: Document | None) -> bool:
    """Whether the owner exists and is not waiting for its dependents to be deleted (the real collector's word)."""
    return owner is not None and not (is_terminating(owner) and FOREGROUND in (meta_of(owner).get("finalizers") or ()))


def plan_actions(database: Database, kinds: Kinds, refs: Iterable[ObjectRef]) -> list[Action]:
    """Return the deletions and patches that are due for these objects."""
    resources = {kind.name: kind.resource for kind in kinds}
    return [action for ref in refs for action in _plan_object(database, resources, ref)]


def plan_event_deletions(database: Database, now: float) -> list[Delete]:
    """Return the deletions of Events older than EVENT_SECONDS."""
    name = f"{EVENTS.plural}.{EVENTS.group}"
    expired = [
        event
        for event in database.list_objects(name)
        if now - parse_time(meta_of(event)["creationTimestamp"]) > EVENT_SECONDS
    ]
    return [Delete(EVENTS, key_of(event), uid=meta_of(event)["uid"]) for event in expired]


def _plan_object(database: Database, resources: dict[str, Resource], ref: ObjectRef) -> Iterator[Action]:
    document = database.get(ref.name, ref.key)
    if document is None or ref.name not in resources:
        return
    resource, finalizers = resources[ref.name], meta_of(document).get("finalizers") or []
    if is_terminating(document) and ORPHAN in finalizers:
        yield from _plan_orphaning(database, resources, ref, document)
    elif is_terminating(document) and FOREGROUND in finalizers:
        yield from _plan_foreground_deletion(database, resources, ref, document)
    elif meta_of(document).get("ownerReferences") and not is_terminating(document):
        yield from _plan_dependent(database, resource, ref, document)


def _plan_orphaning(
    database: Database, resources: dict[str, Resource], ref: ObjectRef, owner: Document
) -> Iterator[Action]:
    uid = meta_of(owner)["uid"]
    dependents = sorted(database.dependents.get(uid, ()))
    for dependent in dependents:
        document = database.get(dependent.name, dependent.key)
        if document is not None and dependent.name in resources:
            yield _remove_owners(resources[dependent.name], document, {uid})
    if not dependents:
        yield _remove_finalizer(resources[ref.name], owner, ORPHAN)


def _plan_foreground_deletion(
    database: Database, resources: dict[str, Resource], ref: ObjectRef, owner: Document
) -> Iterator[Action]:
    uid = meta_of(owner)["uid"]
    is_blocked = False
    for dependent in sorted(database.dependents.get(uid, ())):
        document = database.get(dependent.name, dependent.key)
        if document is None or dependent.name not in resources:
            continue
        is_blocked = is_blocked or any(
            reference["uid"] == uid and reference.get("blockOwnerDeletion")
            for reference in meta_of(document)["ownerReferences"]
        )
        if not is_terminating(document):
            yield from _plan_dependent(database, resources[dependent.name], dependent, document)
    if not is_blocked:
        yield _remove_finalizer(resources[ref.name], owner, FOREGROUND)


def _plan_dependent(database: Database, resource: Resource, ref: ObjectRef, document: Document) -> Iterator[Action]:
    owner_states = {uid: _owner_state(database, ref, uid) for uid in owners_of(document)}
    lost_owners = {uid for uid, state in owner_states.items() if state != "solid"}
    if not lost_owners:
        return
    if len(lost_owners) < len(owner_states):
        yield _remove_owners(resource, document, lost_owners)
        return
    meta = meta_of(document)
    finalizers = meta.get("finalizers") or []
    propagation: Propagation = "Background"
    if ORPHAN in finalizers:
        propagation = "Orphan"
    elif FOREGROUND in finalizers or ("waiting" in owner_states.values() and database.dependents.get(meta["uid"])):
        propagation = "Foreground"
    yield Delete(resource, ref.key, meta["uid"], meta["resourceVersion"], propagation=propagation)


def _owner_state(database: Database, dependent: ObjectRef, uid: str) -> str:
    """Return whether an owner is solid, waiting for its dependents to go, or gone. In another namespace it is gone."""
    ref = database.by_uid.get(uid)
    if ref is None or ref.key.namespace not in ("", dependent.key.namespace):
        return "gone"
    owner = database.get(ref.name, ref.key)
    assert owner is not None, "the index names what is there"
    return "solid" if _is_solid(owner) else "waiting"


def _remove_owners(resource: Resource, document: Document, owner_uids: set[str]) -> Patch:
    meta = meta_of(document)
    remaining = [reference for reference in meta["ownerReferences"] if reference["uid"] not in owner_uids]
    body = {
        "metadata": {
            "ownerReferences": remaining or None,
            "uid": meta["uid"],
            "resourceVersion": meta["resourceVersion"],
        }
    }
    return Patch(resource, key_of(document), PatchBody("merge", body, manager="kube-controller-manager"))


def _remove_finalizer(resource: Resource, owner: Document, finalizer: str) -> Patch:
    meta = meta_of(owner)
    remaining = [name for name in meta["finalizers"] if name != finalizer]
    body = {"metadata": {"finalizers": remaining or None, "resourceVersion": meta["resourceVersion"]}}
    return Patch(resource, key_of(owner), PatchBody("merge", body, manager="kube-controller-manager"))
