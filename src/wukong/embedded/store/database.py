"""All objects and their history: one version counter, one log of changes per kind, indexes by uid and by owner.

Written only by server.py and the modules it calls; read by watches and garbage collection. Checks nothing: whatever is
put is stored. The log of a kind is bounded: who asks for changes it no longer holds gets Gone and has to list again.
`name` is always the name of a kind, such as `deployments.apps`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from typing import NamedTuple

from wukong.api.resources import Key
from wukong.embedded.store.api_errors import version_too_old
from wukong.embedded.store.documents import meta_of, with_metadata
from wukong.embedded.world.clock import Chance
from wukong.engine.copy_on_write import CopyOnWriteDicts
from wukong.engine.layered_dict import LayeredDict
from wukong.ports import Document, EventType

LOG_SIZE = 10_000  # changes that the log of each kind keeps, at least
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"  # of generated names: no vowels, so that no words come out
_NUMBERS = {letter: number for number, letter in enumerate(_LETTERS)}
_SUFFIX_COUNT = len(_LETTERS) ** 5
_UID_PREFIX, _UID_COUNT = "00000000-0000-4000-8000-", 16**12
_HEXADECIMAL, _SUFFIX = re.compile("[0-9a-f]+"), re.compile(f"[{_LETTERS}]{{5}}")
_STRIDE = 6_700_417  # prime, and prime to _NAMES: the suffixes differ until all of them have been used
_INVERSE_STRIDE = pow(_STRIDE, -1, _SUFFIX_COUNT)


class Change(NamedTuple):
    """One write. For a deletion `document` is the object's last state, at the version of the deletion."""

    version: int
    type: EventType
    key: Key
    document: Document
    before: Document | None


class ObjectRef(NamedTuple):
    """Names an object: the name of its kind, and its key."""

    name: str
    key: Key


class Database:
    def __init__(self, log_size: int = LOG_SIZE, seed: int = 0) -> None:
        """`seed` shuffles uids and generated names, by which Kubernetes sorts objects that are otherwise equal."""
        self.version = 0
        # owner's uid → the objects that name it as an owner
        self.dependents: CopyOnWriteDicts[str, ObjectRef, None] = CopyOnWriteDicts()
        self.by_uid: LayeredDict[str, ObjectRef] = LayeredDict()
        self._log_size = log_size
        self._objects: dict[str, CopyOnWriteDicts[str, str, Document]] = {}  # kind → namespace → name
        self._logs: dict[str, list[Change]] = {}
        self._oldest: dict[str, int] = {}  # kind → the version after which its log is complete
        self._compacted = 0  # the same for all kinds, set by `compact`
        self._listeners: list[Callable[[str], None]] = []
        self._followers: list[Callable[[str, Change], None]] = []
        self._followers_of: dict[str, list[Callable[[str, Change], None]]] = {}  # of one kind alone
        self._uids = 0
        self._shuffle(seed)

    def _shuffle(self, seed: int) -> None:
        offset = int(Chance(seed, "names").share() * _SUFFIX_COUNT) if seed else 0
        self._suffixes = offset // 2
        self._uid_step = 2 * offset * offset + 1  # odd, so that no two uids are the same
        self._inverse_uid_step = pow(self._uid_step, -1, _UID_COUNT)

    def fork(self, seed: int | None = None) -> Database:
        """Return an independent copy that nobody follows yet. With a `seed` what it generates next is shuffled anew."""
        copy = Database(self._log_size)
        copy.version, copy._compacted, copy._oldest = self.version, self._compacted, dict(self._oldest)
        copy.dependents, copy.by_uid = self.dependents.fork(), self.by_uid.fork()
        copy._objects = {name: by_namespace.fork() for name, by_namespace in self._objects.items()}
        copy._logs = {name: list(log) for name, log in self._logs.items()}
        copy._uids, copy._suffixes, copy._uid_step = self._uids, self._suffixes, self._uid_step
        copy._inverse_uid_step = self._inverse_uid_step
        if seed is not None:
            copy._shuffle(seed)
        return copy

    # Objects -------------------------------------------------------------------------------------------------------

    def get(self, name: str, key: Key) -> Document | None:
        by_namespace = self._objects.get(name)
        objects = by_namespace.get(key.namespace) if by_namespace is not None else None
        return objects.get(key.name) if objects is not None else None

    def count(self, name: str) -> int:
        """Return how many objects of a kind there are."""
        return sum(map(len, (self._objects.get(name) or {}).values()))

    def list_objects(self, name: str, namespace: str = "") -> list[Document]:
        """Return all objects of a kind, sorted as etcd sorts its keys: `a-b/x` comes before `a/x`."""
        by_namespace: Mapping[str, Mapping[str, Document]] = self._objects.get(name) or {}
        selected = {namespace: by_namespace.get(namespace, {})} if namespace else by_namespace
        return [
            selected[namespace_name][object_name]
            for namespace_name in sorted(selected, key="{}/".format)
            for object_name in sorted(selected[namespace_name])
        ]

    def list_objects_at(self, name: str, namespace: str, version: int) -> list[Document]:
        """Return the objects as of `version`, by undoing the changes since. Raises Gone when the log lacks some."""
        objects = {key_of(document): document for document in self.list_objects(name, namespace)}
        for change in reversed(self.changes_since(name, version)):
            if namespace in ("", change.key.namespace):
                objects.pop(change.key, None)
                if change.before is not None:
                    objects[change.key] = change.before
        return sorted(objects.values(), key=lambda document: str(key_of(document)))

    def put(self, name: str, document: Document) -> Document:
        """Store the document at the next version and return it so. From now on nobody may change it in place."""
        key = key_of(document)
        before = self.get(name, key)
        self.version += 1
        stored = with_metadata(document, resourceVersion=str(self.version))
        self._own(name, key.namespace)[key.name] = stored
        self._index(name, key, before, stored)
        self._log(name, Change(self.version, "ADDED" if before is None else "MODIFIED", key, stored, before))
        return stored

    def restore(self, name: str, documents: Iterable[Document]) -> None:
        """Store objects of another cluster, each at a version of its own, without a history: nobody watches yet."""
        for document in documents:
            self.reserve_identity(document)
            self.version += 1
            stored = {**document, "metadata": {**document["metadata"], "resourceVersion": str(self.version)}}
            key = key_of(stored)
            before = self.get(name, key)
            self._index(name, key, before, stored)
            self._own(name, key.namespace)[key.name] = stored
            change = Change(self.version, "ADDED" if before is None else "MODIFIED", key, stored, before)
            self._call_followers(name, change)
        self._logs.pop(name, None)
        self._oldest[name] = self.version

    def remove(self, name: str, key: Key) -> Document:
        """Remove the object. Watchers see it as it was stored last, at the version of the deletion."""
        before = self._own(name, key.namespace).pop(key.name)
        self._objects[name].drop_if_empty(key.namespace)
        self.version += 1
        removed = with_metadata(before, resourceVersion=str(self.version))
        self._index(name, key, before, None)
        self._log(name, Change(self.version, "DELETED", key, removed, before))
        return removed

    def _own(self, name: str, namespace: str) -> MutableMapping[str, Document]:
        by_namespace = self._objects.get(name)
        if by_namespace is None:
            by_namespace = self._objects[name] = CopyOnWriteDicts()
        return by_namespace.own(namespace)

    def generate_uid(self) -> str:
        while True:
            self._uids += 1
            uid = f"{_UID_PREFIX}{self._uids * self._uid_step % _UID_COUNT:012x}"
            if uid not in self.by_uid:  # a fork may have been given another step
                return uid

    def generate_suffix(self) -> str:
        self._suffixes += 1
        number, text = self._suffixes * _STRIDE % _SUFFIX_COUNT, ""
        for _ in range(5):
            number, digit = divmod(number, len(_LETTERS))
            text += _LETTERS[digit]
        return text

    def reserve_identity(self, document: Document) -> None:
        """Never generate the uid or the name of this object, which was created elsewhere, for another one."""
        meta = meta_of(document)
        uid, name = meta.get("uid", ""), meta.get("name", "")
        if uid.startswith(_UID_PREFIX) and _HEXADECIMAL.fullmatch(number := uid.removeprefix(_UID_PREFIX)):
            self._uids = max(self._uids, int(number, 16) * self._inverse_uid_step % _UID_COUNT)
        suffix = name[-5:]
        if _SUFFIX.fullmatch(suffix) and name[-6:-5] in ("-", ""):
            value = 0
            for letter in reversed(suffix):
                value = value * len(_LETTERS) + _NUMBERS[letter]
            self._suffixes = max(self._suffixes, value * _INVERSE_STRIDE % _SUFFIX_COUNT)

    # History -------------------------------------------------------------------------------------------------------

    def changes_since(self, name: str, version: int) -> list[Change]:
        """Return every change of this kind after `version`. Raises Gone when the log lacks some of them."""
        oldest = max(self._compacted, self._oldest.get(name, 0))
        if version < oldest:
            raise version_too_old(version, oldest)
        log = self._logs.get(name, [])
        if len(log) > 1 and log[-2].version <= version:  # most ask right after each change
            return log[-1:] if log[-1].version > version else []
        return log[bisect_right(log, version, key=lambda change: change.version) :]

    def compact(self, version: int | None = None) -> None:
        """Forget all changes up to this version, or up to now."""
        self._compacted = max(self._compacted, self.version if version is None else version)
        for name, log in self._logs.items():
            self._logs[name] = log[bisect_right(log, self._compacted, key=lambda change: change.version) :]

    def listen(self, listener: Callable[[str], None]) -> Callable[[], None]:
        """Call `listener` with the name of the kind after every change. Returns a function that ends it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def follow(self, follower: Callable[[str, Change], None], names: Iterable[str] | None = None) -> None:
        """Call `follower` with every change, or with those of the kinds of these names, before any listener: for
        indexes that other modules keep."""
        if names is None:
            self._followers.append(follower)
        else:
            for name in names:
                self._followers_of.setdefault(name, []).append(follower)

    def close(self) -> None:
        """Call nobody any more."""
        self._listeners.clear()
        self._followers.clear()
        self._followers_of.clear()

    def _log(self, name: str, change: Change) -> None:
        log = self._logs.setdefault(name, [])
        log.append(change)
        if len(log) > 2 * self._log_size:
            self._oldest[name] = log[-self._log_size - 1].version
            del log[: -self._log_size]
        self._call_followers(name, change)
        for listener in tuple(self._listeners):
            listener(name)

    def _call_followers(self, name: str, change: Change) -> None:
        for follower in self._followers:
            follower(name, change)
        for follower in self._followers_of.get(name, ()):
            follower(name, change)

    def _index(self, name: str, key: Key, before: Document | None, after: Document | None) -> None:
        if before is not None and after is not None and _is_indexed_alike(before["metadata"], after["metadata"]):
            return
        ref = ObjectRef(name, key)
        for document in (before, after):
            if document is not None and (uid := meta_of(document).get("uid")):
                self.by_uid.pop(uid, None) if document is before else self.by_uid.__setitem__(uid, ref)
        if before is not None and after is not None and owners_of(before) == owners_of(after):
            return
        for uid in owners_of(before):
            if ref in self.dependents.get(uid, ()):
                del self.dependents.own(uid)[ref]
                self.dependents.drop_if_empty(uid)
        for uid in owners_of(after):
            self.dependents.own(uid)[ref] = None


def key_of(document: Document) -> Key:
    meta = meta_of(document)
    return Key(meta.get("namespace", ""), meta.get("name", ""))


def _is_indexed_alike(before: Document, after: Document) -> bool:
    return before.get("uid") == after.get("uid") and before.get("ownerReferences") is after.get("ownerReferences")


def owners_of(document: Document | None) -> list[str]:
    """Return the uids of its owners."""
    references = meta_of(document).get("ownerReferences") or [] if document else []
    return [reference["uid"] for reference in references]
