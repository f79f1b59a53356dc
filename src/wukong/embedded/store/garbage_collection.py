"""What the garbage collector would do: objects whose owners are gone, owners that wait for their dependents, orphans.

    background   owner removed ─► dependents deleted, each with its own dependents
    foreground   owner marked ─► dependents deleted ─► when none blocks it any more, the owner's finalizer goes
    orphan       owner marked ─► dependents forget it ─► the owner's finalizer goes

`due` says what to do about the objects near a change; an actor performs it and asks again after each change. It lists
and never writes. Owners are found by uid; a reference to an owner that never was is treated as one that is gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from wukong.actions import Action, Delete, Patch
from wukong.api.resources import EVENTS, Resource
from wukong.embedded.store.database import Change, Database, Place, key_of, owners_of
from wukong.embedded.store.deletion import FOREGROUND, ORPHAN
from wukong.embedded.store.documents import is_terminating, meta_of, parse_time
from wukong.embedded.store.kinds import Kinds
from wukong.ports import Document, PatchBody, Propagation

EVENT_SECONDS = 3600.0  # Events are forgotten after an hour


def near(database: Database, name: str, change: Change) -> list[Place]:
    """The objects a change may concern: itself, its owners, its dependents. Sorted, each once."""
    uid = meta_of(change.document).get("uid", "")
    owners = [*owners_of(change.document), *owners_of(change.before)]
    found = {Place(name, change.key), *database.dependents.get(uid, ())}
    found |= {database.by_uid[owner] for owner in owners if owner in database.by_uid}
    return sorted(found)


class Doubts:
    """The objects about which `due` has something to say, kept current write by write."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._places: set[Place] = set()
        for place in list(database.by_uid.values()):
            self._look_at(place)
        database.follow(self._note)

    def near(self, uid: str) -> list[Place]:
        """Of the object with this uid and of those that name it as an owner, the doubtful ones. Sorted."""
        own, named = self._database.by_uid.get(uid), self._database.dependents.get(uid, set())
        return sorted((named & self._places) | ({own} & self._places if own else set()))

    def is_near(self, uid: str) -> bool:
        """Whether `near` has any."""
        own, named = self._database.by_uid.get(uid), self._database.dependents.get(uid)
        return own in self._places or (named is not None and not self._places.isdisjoint(named))

    def _note(self, name: str, change: Change) -> None:
        self._look_at(Place(name, change.key))
        after = None if change.type == "DELETED" else change.document
        if _is_solid(change.before) != _is_solid(after):
            for place in self._database.dependents.get(meta_of(change.document).get("uid", ""), ()):
                self._look_at(place)

    def _look_at(self, place: Place) -> None:
        if self._is_doubtful(place):
            self._places.add(place)
        else:
            self._places.discard(place)

    def _is_doubtful(self, place: Place) -> bool:
        found = self._database.get(place.name, place.key)
        if found is None:
            return False
        if is_terminating(found):
            return bool({ORPHAN, FOREGROUND} & {*(meta_of(found).get("finalizers") or ())})
        return any(_state(self._database, place, uid) != "solid" for uid in owners_of(found))


def _is_solid(owner: Document | None) -> bool:
    """Whether it is there, and not about to go as soon as its dependents have."""
    return owner is not None and not (is_terminating(owner) and FOREGROUND in (meta_of(owner).get("finalizers") or ()))


def due(database: Database, kinds: Kinds, places: Iterable[Place]) -> list[Action]:
    resources = {kind.name: kind.resource for kind in kinds}
    return [action for place in places for action in _due(database, resources, place)]


def expired_events(database: Database, now: float) -> list[Delete]:
    name = f"{EVENTS.plural}.{EVENTS.group}"
    old = [each for each in database.all(name) if now - parse_time(meta_of(each)["creationTimestamp"]) > EVENT_SECONDS]
    return [Delete(EVENTS, key_of(each), uid=meta_of(each)["uid"]) for each in old]


def _due(database: Database, resources: dict[str, Resource], place: Place) -> Iterator[Action]:
    found = database.get(place.name, place.key)
    if found is None or place.name not in resources:
        return
    resource, finalizers = resources[place.name], meta_of(found).get("finalizers") or []
    if is_terminating(found) and ORPHAN in finalizers:
        yield from _orphaned(database, resources, place, found)
    elif is_terminating(found) and FOREGROUND in finalizers:
        yield from _waiting(database, resources, place, found)
    elif meta_of(found).get("ownerReferences") and not is_terminating(found):
        yield from _owned(database, resource, place, found)


def _orphaned(database: Database, resources: dict[str, Resource], place: Place, owner: Document) -> Iterator[Action]:
    uid = meta_of(owner)["uid"]
    children = sorted(database.dependents.get(uid, ()))
    for child in children:
        document = database.get(child.name, child.key)
        if document is not None and child.name in resources:
            yield _forgetting(resources[child.name], document, {uid})
    if not children:
        yield _released(resources[place.name], owner, ORPHAN)


def _waiting(database: Database, resources: dict[str, Resource], place: Place, owner: Document) -> Iterator[Action]:
    uid = meta_of(owner)["uid"]
    blocking = False
    for child in sorted(database.dependents.get(uid, ())):
        document = database.get(child.name, child.key)
        if document is None or child.name not in resources:
            continue
        blocking = blocking or any(
            reference["uid"] == uid and reference.get("blockOwnerDeletion")
            for reference in meta_of(document)["ownerReferences"]
        )
        if not is_terminating(document):
            yield from _owned(database, resources[child.name], child, document)
    if not blocking:
        yield _released(resources[place.name], owner, FOREGROUND)


def _owned(database: Database, resource: Resource, place: Place, found: Document) -> Iterator[Action]:
    owners = {uid: _state(database, place, uid) for uid in owners_of(found)}
    lost = {uid for uid, state in owners.items() if state != "solid"}
    if not lost:
        return
    if len(lost) < len(owners):
        yield _forgetting(resource, found, lost)
        return
    meta = meta_of(found)
    finalizers = meta.get("finalizers") or []
    propagation: Propagation = "Background"
    if ORPHAN in finalizers:
        propagation = "Orphan"
    elif FOREGROUND in finalizers or ("waiting" in owners.values() and database.dependents.get(meta["uid"])):
        propagation = "Foreground"
    yield Delete(resource, place.key, meta["uid"], meta["resourceVersion"], propagation=propagation)


def _state(database: Database, dependent: Place, uid: str) -> str:
    """Of an owner: solid, waiting for its dependents to go, or gone. One of another namespace is none."""
    place = database.by_uid.get(uid)
    if place is None or place.key.namespace not in ("", dependent.key.namespace):
        return "gone"
    owner = database.get(place.name, place.key)
    assert owner is not None, "the index names what is there"
    return "solid" if _is_solid(owner) else "waiting"


def _forgetting(resource: Resource, found: Document, lost: set[str]) -> Patch:
    meta = meta_of(found)
    left = [reference for reference in meta["ownerReferences"] if reference["uid"] not in lost]
    body = {
        "metadata": {"ownerReferences": left or None, "uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}
    }
    return Patch(resource, key_of(found), PatchBody("merge", body, manager="kube-controller-manager"))


def _released(resource: Resource, owner: Document, finalizer: str) -> Patch:
    meta = meta_of(owner)
    left = [each for each in meta["finalizers"] if each != finalizer]
    body = {"metadata": {"finalizers": left or None, "resourceVersion": meta["resourceVersion"]}}
    return Patch(resource, key_of(owner), PatchBody("merge", body, manager="kube-controller-manager"))
