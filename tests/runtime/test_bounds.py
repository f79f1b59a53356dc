"""What the runtime remembers is bounded, whatever happens around it."""

from __future__ import annotations

import asyncio

import pytest

from runtime.tiny import TinyCluster
from wukong.actions import Note
from wukong.api.kinds import PODS
from wukong.api.resources import Key
from wukong.runtime import event_writer, pending_writes
from wukong.runtime.event_writer import EventWriter
from wukong.runtime.pending_writes import PATIENCE, PendingWrites, WrittenVersion

KEY = Key("shop", "web")


def test_events_are_remembered_by_digests_and_only_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_writer, "_KEPT", 100)
    writer = EventWriter(TinyCluster(), "us")

    async def write_many() -> None:
        for number in range(1000):
            await writer.write(Note(PODS, Key("shop", f"web-{number}"), "Noted", "long " * 1000), 0.0)

    asyncio.run(write_many())
    assert len(writer) == 100
    assert all(len(digest) == 16 for digest in writer._series)


def test_notes_that_differ_in_anything_are_events_of_their_own() -> None:
    cluster = TinyCluster()
    writer = EventWriter(cluster, "us")
    note = Note(PODS, KEY, "Noted", "text", uid="u")
    others = [
        Note(PODS, KEY, "Noted", "text", uid="v"),
        Note(PODS, KEY, "Noted", "text.", uid="u"),
        Note(PODS, KEY, "Noticed", "text", uid="u"),
        Note(PODS, KEY, "Noted", "text", uid="u", is_warning=True),
        Note(PODS, Key("lab", "web"), "Noted", "text", uid="u"),
    ]

    async def write_all() -> None:
        for entry in (note, *others, note):
            await writer.write(entry, 0.0)

    asyncio.run(write_all())
    verbs = [verb for verb, _, _ in cluster.calls]
    assert verbs == ["create"] * 6 + ["patch"]


def test_writes_that_never_show_are_waited_for_one_per_key_and_object_and_only_so_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pending_writes, "_MOST_OVERDUE", 10)
    writes: PendingWrites[str] = PendingWrites()
    now = 0.0
    for number in range(100):
        assert writes.hold(
            "item", [WrittenVersion("Pod", KEY, f"{number}"), WrittenVersion("Pod", KEY, f"{number}b")], now
        )
        now += PATIENCE
        assert writes.expire(now) == ["item"]
    assert set(writes._overdue["Pod", KEY]) == {WrittenVersion("Pod", KEY, "99"), WrittenVersion("Pod", KEY, "99b")}
    for number in range(100):
        writes.hold("item", [WrittenVersion("Pod", Key("shop", f"web-{number}"), "1")], now)
        now += PATIENCE
        writes.expire(now)
    assert len(writes._overdue) == 10
    assert writes.take_overdue("Pod") == ["item"]
    assert not writes._overdue
