"""A cache of created pods: what the API server makes of a pod's spec is worked out once, not for every replica.

Defaults, admission and validation of a new pod depend on its spec as it was sent, its labels, its namespace, and the
PriorityClasses and LimitRanges. Pods that are alike in these share one stored spec, the same object, for stored
documents are never changed in place. Used by writes.py; where there are mutating functions, for what goes into them and
for what comes out.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from wukong.api.kinds import LIMIT_RANGES
from wukong.embedded.store.admission import PRIORITY_CLASSES
from wukong.embedded.store.database import Change, Database
from wukong.embedded.store.limits import limit_ranges
from wukong.ports import Document

_MAX_CACHED = 1024
_DEPENDS_ON = frozenset({PRIORITY_CLASSES, LIMIT_RANGES.plural})
_CACHEABLE_FIELDS = frozenset({"kind", "apiVersion", "metadata", "spec"})
_encode = msgspec.json.Encoder().encode


class CachedPod(NamedTuple):
    spec: Document
    status: Document
    annotation: str  # what limit ranges set, in words; "" if nothing


class PodCache:
    def __init__(self, database: Database) -> None:
        self._cached_pods: dict[bytes, CachedPod] = {}
        database.follow(self._clear_on_change, _DEPENDS_ON)

    def fork(self, database: Database) -> PodCache:
        """Return the same for a copy of the database."""
        copy = PodCache(database)
        copy._cached_pods.update(self._cached_pods)
        return copy

    def find(self, pod: Document) -> CachedPod | None:
        """Return what became of an earlier pod like this one. `pod` is as it was sent, with its new metadata."""
        return self._cached_pods.get(_cache_key_of(pod)) if pod.keys() <= _CACHEABLE_FIELDS else None

    def add(self, request: Document, stored: Document) -> None:
        """Remember what became of a pod. `stored` is the pod just before it is stored."""
        if not request.keys() <= _CACHEABLE_FIELDS:
            return
        if len(self._cached_pods) >= _MAX_CACHED:
            self._cached_pods.clear()
        annotation = (stored["metadata"].get("annotations") or {}).get(limit_ranges.ANNOTATION, "")
        self._cached_pods[_cache_key_of(request)] = CachedPod(stored["spec"], stored["status"], annotation)

    def _clear_on_change(self, _: str, __: Change) -> None:
        self._cached_pods.clear()


def _cache_key_of(pod: Document) -> bytes:
    meta = pod["metadata"]
    return _encode((pod.get("spec"), meta.get("labels"), meta.get("namespace")))
