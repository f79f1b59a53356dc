"""Series of Events that are remembered: the latest, and never more than so many."""

from __future__ import annotations

import pytest

from runtime.tiny import TinyCluster
from runtime.virtual import EPOCH, play
from wukong.actions import Note
from wukong.api.kinds import PODS
from wukong.api.resources import Key
from wukong.runtime import event_writer
from wukong.runtime.event_writer import SERIES_SECONDS, EventWriter


def a_note(name: str) -> Note:
    return Note(PODS, Key("default", name), "Moved", "to n0")


def write(cluster: TinyCluster, *notes: tuple[str, float]) -> list[str]:
    """Write a note about each of these pods at its second. Returns what was called for it."""
    writer = EventWriter(cluster, "pod-7")

    async def story() -> None:
        for name, second in notes:
            await writer.write(a_note(name), EPOCH + second)

    play(story())
    return [call[0] for call in cluster.calls]


def test_the_series_begun_first_is_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_writer, "_KEPT", 2)
    assert write(TinyCluster(), ("a", 0), ("b", 1), ("a", 2), ("b", 3)) == ["create", "create", "patch", "patch"]
    calls = write(TinyCluster(), ("a", 0), ("b", 1), ("c", 2), ("b", 3), ("c", 4), ("a", 5))
    assert calls == ["create", "create", "create", "patch", "patch", "create"]


def test_a_series_that_begins_again_counts_as_new(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_writer, "_KEPT", 2)
    later = SERIES_SECONDS + 1
    calls = write(TinyCluster(), ("a", 0), ("b", 1), ("a", later), ("c", later + 1), ("a", later + 2))
    assert calls == ["create", "create", "create", "create", "patch"]


@pytest.mark.parametrize(("gap", "call"), [(SERIES_SECONDS, "patch"), (SERIES_SECONDS + 0.001, "create")])
def test_a_repetition_counts_up_within_ten_minutes(gap: float, call: str) -> None:
    assert write(TinyCluster(), ("a", 0), ("a", gap)) == ["create", call]
