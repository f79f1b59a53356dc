"""All objects, and what happened to them: one version counter, one log per kind, owners and uids by index.

Written by server.py and its helpers only; read by watches and garbage collection. Knows no rules: what is put is put.
The log of a kind is bounded. Who asks for what it no longer holds is told Gone, and lists again.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import NamedTuple

from wukong.api.resources import Key
from wukong.embedded.store.api_errors import too_old
from wukong.embedded.store.documents import meta_of, with_metadata
from wukong.embedded.world.clock import Chance
from wukong.ports import Document, EventType

KEPT = 10_000  # changes of each kind, at least
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"  # of generated names: no vowels, so that no words come out
_NAMES = len(_LETTERS) ** 5
_UID, _UIDS = "00000000-0000-4000-8000-", 16**12
_STRIDE = 6_700_417  # prime, and prime to _NAMES: the suffixes differ until all of them have been used


class Change(NamedTuple):
    """One write. Of a deletion `document` is the object's last state, at the version of the deletion."""

    version: int
    type: EventType
    key: Key
    document: Document
    before: Document | None


class Place(NamedTuple):
    """Where an object is: the name of its kind, and its key."""

    name: str
    key: Key


class Database:
    def __init__(self, kept: int = KEPT, seed: int = 0) -> None:
        """`seed` shuffles uids and generated names, by which Kubernetes orders what is otherwise equal."""
        self.version = 0
        self.dependents: dict[str, set[Place]] = {}  # owner's uid → who names it as an owner
        self.by_uid: dict[str, Place] = {}
        self._kept = kept
        self._rows: dict[str, dict[str, dict[str, Document]]] = {}  # kind → namespace → name
        self._logs: dict[str, list[Change]] = {}
        self._oldest: dict[str, int] = {}  # kind → the version after which its log is whole
        self._floor = 0  # the same for all kinds, after `compact`
        self._listeners: list[Callable[[str], None]] = []
        self._followers: list[Callable[[str, Change], None]] = []
        drawn = int(Chance(seed, "names").share() * _NAMES) if seed else 0
        self._uids, self._suffixes = 0, drawn // 2
        self._uid_step = 2 * drawn * drawn + 1  # odd, so that no two are the same

    # Objects -------------------------------------------------------------------------------------------------------

    def get(self, name: str, key: Key) -> Document | None:
        return self._rows.get(name, {}).get(key.namespace, {}).get(key.name)

    def all(self, name: str, namespace: str = "") -> list[Document]:
        """Sorted as etcd sorts its keys: `a-b/x` comes before `a/x`."""
        spaces = self._rows.get(name, {})
        chosen = {namespace: spaces.get(namespace, {})} if namespace else spaces
        return [
            chosen[space][each] for space in sorted(chosen, key=lambda it: f"{it}/") for each in sorted(chosen[space])
        ]

    def all_at(self, name: str, namespace: str, version: int) -> list[Document]:
        """As it was: the changes since then are undone. Raises Gone when they are no longer known."""
        found = {key_of(each): each for each in self.all(name, namespace)}
        for change in reversed(self.since(name, version)):
            if namespace in ("", change.key.namespace):
                found.pop(change.key, None)
                if change.before is not None:
                    found[change.key] = change.before
        return sorted(found.values(), key=lambda each: str(key_of(each)))

    def put(self, name: str, document: Document) -> Document:
        """Stores it at the next version. The document is the database's from now on."""
        key = key_of(document)
        before = self.get(name, key)
        self.version += 1
        stored = with_metadata(document, resourceVersion=str(self.version))
        self._rows.setdefault(name, {}).setdefault(key.namespace, {})[key.name] = stored
        self._index(name, key, before, stored)
        self._log(name, Change(self.version, "ADDED" if before is None else "MODIFIED", key, stored, before))
        return stored

    def remove(self, name: str, key: Key) -> Document:
        """Takes it away. Watchers see it as it was stored last, at the version of the deletion."""
        before = self._rows[name][key.namespace].pop(key.name)
        self.version += 1
        gone = with_metadata(before, resourceVersion=str(self.version))
        self._index(name, key, before, None)
        self._log(name, Change(self.version, "DELETED", key, gone, before))
        return gone

    def new_uid(self) -> str:
        self._uids += 1
        return f"{_UID}{self._uids * self._uid_step % _UIDS:012x}"

    def new_suffix(self) -> str:
        self._suffixes += 1
        number, text = self._suffixes * _STRIDE % _NAMES, ""
        for _ in range(5):
            number, digit = divmod(number, len(_LETTERS))
            text += _LETTERS[digit]
        return text

    def pass_over(self, document: Document) -> None:
        """Never give the uid or the name that this object has, which was made elsewhere, to another."""
        uid, name = meta_of(document).get("uid", ""), meta_of(document).get("name", "")
        number = uid.removeprefix(_UID)
        if number != uid and all(letter in "0123456789abcdef" for letter in number):
            self._uids = max(self._uids, int(number, 16) * pow(self._uid_step, -1, _UIDS) % _UIDS)
        suffix = name.rpartition("-")[2]
        if len(suffix) == 5 and all(letter in _LETTERS for letter in suffix):
            turn = sum(_LETTERS.index(letter) * len(_LETTERS) ** place for place, letter in enumerate(suffix))
            self._suffixes = max(self._suffixes, turn * pow(_STRIDE, -1, _NAMES) % _NAMES)

    # History -------------------------------------------------------------------------------------------------------

    def since(self, name: str, version: int) -> list[Change]:
        """Every change of this kind after `version`. Raises Gone when some of them are forgotten."""
        oldest = max(self._floor, self._oldest.get(name, 0))
        if version < oldest:
            raise too_old(version, oldest)
        log = self._logs.get(name, [])
        return log[bisect_right(log, version, key=lambda change: change.version) :]

    def compact(self, version: int | None = None) -> None:
        """Forget what happened up to this version, or up to now."""
        self._floor = max(self._floor, self.version if version is None else version)
        for name, log in self._logs.items():
            self._logs[name] = log[bisect_right(log, self._floor, key=lambda change: change.version) :]

    def listen(self, hear: Callable[[str], None]) -> Callable[[], None]:
        """`hear` is called with the name of the kind after every change. Gives what ends it."""
        self._listeners.append(hear)
        return lambda: self._listeners.remove(hear)

    def follow(self, note: Callable[[str, Change], None]) -> None:
        """`note` is given every change before anybody hears of it: for indexes that others keep."""
        self._followers.append(note)

    def _log(self, name: str, change: Change) -> None:
        log = self._logs.setdefault(name, [])
        log.append(change)
        if len(log) > 2 * self._kept:
            self._oldest[name] = log[-self._kept - 1].version
            del log[: -self._kept]
        for note in self._followers:
            note(name, change)
        for hear in tuple(self._listeners):
            hear(name)

    def _index(self, name: str, key: Key, before: Document | None, after: Document | None) -> None:
        place = Place(name, key)
        for document in (before, after):
            if document is not None and (uid := meta_of(document).get("uid")):
                self.by_uid.pop(uid, None) if document is before else self.by_uid.__setitem__(uid, place)
        for uid in owners_of(before):
            named = self.dependents.get(uid, set())
            named.discard(place)
            if not named:
                self.dependents.pop(uid, None)
        for uid in owners_of(after):
            self.dependents.setdefault(uid, set()).add(place)


def key_of(document: Document) -> Key:
    meta = meta_of(document)
    return Key(meta.get("namespace", ""), meta.get("name", ""))


def owners_of(document: Document | None) -> list[str]:
    references = meta_of(document).get("ownerReferences") or [] if document else []
    return [reference["uid"] for reference in references]
