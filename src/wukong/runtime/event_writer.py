"""Notes become Events of events.k8s.io: one per subject, reason and text; repeated ones count up as a series.

Called by `perform`. Nothing here may stop anything: an Event that cannot be written is dropped by the caller.
"""

from __future__ import annotations

from collections import OrderedDict
from datetime import UTC, datetime
from hashlib import blake2b

import msgspec

from wukong.actions import Note
from wukong.api.kinds import EVENTS
from wukong.api.resources import Key
from wukong.errors import NotFound
from wukong.ports import Cluster, Document, PatchBody

SERIES_SECONDS = 600.0  # a repetition within this time counts up; after it, a new Event tells the story again
WRITE_SECONDS = 30.0  # a series is written at most this often; the count catches up with the next write
_KEPT = 4096
_REPORTER = "novasphere.dev/wukong"


class _Series:
    __slots__ = ("count", "key", "seen_at", "written_at")

    def __init__(self, key: Key, now: float) -> None:
        self.key = key
        self.count = 1
        self.seen_at = now
        self.written_at = float("-inf")  # the first repetition is written at once: a series begins


class EventWriter:
    def __init__(self, cluster: Cluster, identity: str) -> None:
        self._cluster = cluster
        self._identity = identity
        self._series: OrderedDict[bytes, _Series] = OrderedDict()  # by a digest of the note: texts may be long

    def __len__(self) -> int:
        """How many series it remembers."""
        return len(self._series)

    async def write(self, note: Note, now: float) -> None:
        series = self._series.get(_digest(note))
        if series is None or now - series.seen_at > SERIES_SECONDS:
            await self._begin(note, now)
            return
        series.count += 1
        series.seen_at = now
        if now - series.written_at < WRITE_SECONDS:
            return
        series.written_at = now
        body = {"series": {"count": series.count, "lastObservedTime": micro_time(now)}}
        try:
            await self._cluster.patch(EVENTS, series.key, PatchBody("merge", body))
        except NotFound:  # Events live for an hour
            await self._begin(note, now)

    async def _begin(self, note: Note, now: float) -> None:
        body = event_of(note, self._identity, now)
        key = Key(body["metadata"]["namespace"], body["metadata"]["name"])
        digest = _digest(note)
        self._series[digest] = _Series(key, now)
        self._series.move_to_end(digest)
        while len(self._series) > _KEPT:
            self._series.popitem(last=False)
        await self._cluster.create(EVENTS, body, key.namespace)


def _digest(note: Note) -> bytes:
    return blake2b(msgspec.msgpack.encode(note), digest_size=16).digest()


def event_of(note: Note, identity: str, now: float) -> Document:
    digest = blake2b(f"{note}{identity}{now}".encode(), digest_size=8).hexdigest()
    namespace = note.key.namespace or "default"  # where Events about cluster-scoped objects live
    regarding = {"apiVersion": note.about.api_version, "kind": note.about.kind, "name": note.key.name}
    regarding |= {name: text for name, text in (("namespace", note.key.namespace), ("uid", note.uid)) if text}
    return {
        "apiVersion": EVENTS.api_version,
        "kind": EVENTS.kind,
        "metadata": {"name": f"{note.key.name[:200]}.{digest}", "namespace": namespace},
        "eventTime": micro_time(now),
        "reportingController": note.reporter or _REPORTER,
        "reportingInstance": identity[:128],
        "action": (note.action or note.reason)[:128],
        "reason": note.reason[:128],
        "regarding": regarding,
        "note": note.text.encode()[:1024].decode(errors="ignore"),  # the API server counts bytes
        "type": "Warning" if note.is_warning else "Normal",
    }


def micro_time(now: float) -> str:
    """The API's MicroTime: `2026-01-01T00:00:00.000000Z`."""
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
