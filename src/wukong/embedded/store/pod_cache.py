"""Pods that are made alike: what the API server makes of a pod's spec is worked out once, not for every replica.

Defaults, admission, validation and field ownership of a new pod depend on its spec as it was sent, its labels, its
namespace, and the PriorityClasses. Pods alike in these get the same stored spec, the very same object, for stored
documents are never changed in place. Used by writing.py for pods, where no mutating function has its say.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from wukong.embedded.store.admission import CLASSES
from wukong.embedded.store.database import Change, Database
from wukong.embedded.store.kinds import ServedKind
from wukong.embedded.store.ownership import field_managers
from wukong.embedded.store.ownership.field_sets import Fields
from wukong.embedded.store.patch.merge_keys import Named
from wukong.ports import Document

_MOST = 1024
_PARTS = frozenset({"kind", "apiVersion", "metadata", "spec"})
_encode = msgspec.json.Encoder().encode


class CachedPod(NamedTuple):
    spec: Document
    status: Document
    fields: dict[str, Fields]  # part of the document → the fields it sets


class PodCache:
    def __init__(self, database: Database) -> None:
        self._known: dict[bytes, CachedPod] = {}
        database.follow(self._forget)

    def find(self, pod: Document) -> CachedPod | None:
        """Of a pod as it was sent, with its head."""
        return self._known.get(_key(pod)) if pod.keys() <= _PARTS else None

    def note(self, kind: ServedKind, sent: Document, made: Document) -> CachedPod | None:
        """Remember what became of it. `made` is a pod just before it is stored."""
        if not sent.keys() <= _PARTS:
            return None
        if len(self._known) >= _MOST:
            self._known.clear()
        fields = {name: field_managers.fields_of(Named(), name, made[name]) for name in ("spec", "status")}
        recipe = self._known[_key(sent)] = CachedPod(made["spec"], made["status"], fields)
        return recipe

    def _forget(self, name: str, _: Change) -> None:
        if name == CLASSES:
            self._known.clear()


def _key(pod: Document) -> bytes:
    meta = pod["metadata"]
    return _encode((pod.get("spec"), meta.get("labels"), meta.get("namespace")))
