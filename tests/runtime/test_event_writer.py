"""Series of Events that are remembered: the latest, and never more than so many."""

from __future__ import annotations

import pytest

from runtime.tiny import TinyCluster
from runtime.virtual import EPOCH, play
from wukong.actions import Note
from wukong.api.kinds import NODES, PODS
from wukong.api.resources import Key
from wukong.runtime import event_writer
from wukong.runtime.event_writer import SERIES_SECONDS, EventWriter, event_of, micro_time


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


def test_an_event_says_who_reports_what_about_whom() -> None:
    note = Note(NODES, Key("", "n0"), "Leaving", "soon", is_warning=True)
    body = event_of(note, "pod-7", EPOCH)
    name = body["metadata"].pop("name")
    assert name.startswith("n0.")
    assert body == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"namespace": "default"},
        "eventTime": micro_time(EPOCH),
        "reportingController": "novasphere.dev/wukong",
        "reportingInstance": "pod-7",
        "action": "Leaving",
        "reason": "Leaving",
        "regarding": {"apiVersion": "v1", "kind": "Node", "name": "n0"},
        "note": "soon",
        "type": "Warning",
    }
    about_a_pod = event_of(Note(PODS, Key("shop", "web"), "Moved", "to n0", uid="u"), "pod-7", EPOCH)
    assert about_a_pod["type"] == "Normal"
    assert about_a_pod["metadata"]["namespace"] == "shop"
    assert about_a_pod["regarding"] == {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": "web",
        "namespace": "shop",
        "uid": "u",
    }


def test_an_event_is_as_long_as_the_api_server_takes_it() -> None:
    body = event_of(Note(PODS, Key("shop", "w" * 253), "R" * 200, "é" * 600), "i" * 200, EPOCH)
    assert body["metadata"]["name"].partition(".")[0] == "w" * 200
    assert len(body["metadata"]["name"]) == 200 + 1 + 16
    assert (len(body["reportingInstance"]), len(body["action"]), len(body["reason"])) == (128, 128, 128)
    assert body["note"] == "é" * 512
    odd = event_of(Note(PODS, Key("shop", "w"), "R", "x" + "é" * 600), "i", EPOCH)
    assert odd["note"] == "x" + "é" * 511, "no letter is cut in two"


def test_names_of_events_differ_by_note_reporter_and_time() -> None:
    names = {
        event_of(a_note(name), identity, EPOCH + second)["metadata"]["name"]
        for name in ("a", "b")
        for identity in ("pod-7", "pod-8")
        for second in (0, 1)
    }
    assert len(names) == 8


def test_a_series_is_written_each_half_minute_with_all_that_it_counted() -> None:
    cluster = TinyCluster()
    calls = write(cluster, *(("a", second) for second in (0, 1, 2, 30, 31, 60, 61)))
    assert calls == ["create", "patch", "patch", "patch"], "at 0, 1, 31 and 61"
    (event,) = cluster.objects.values()
    assert event["series"] == {"count": 7, "lastObservedTime": micro_time(EPOCH + 61)}


def test_a_series_whose_event_is_gone_begins_again() -> None:
    cluster, calls = TinyCluster(), list[str]()
    writer = EventWriter(cluster, "pod-7")

    async def story() -> None:
        await writer.write(a_note("a"), EPOCH)
        cluster.objects.clear()
        await writer.write(a_note("a"), EPOCH + 1)
        await writer.write(a_note("a"), EPOCH + 2)
        calls.extend(call[0] for call in cluster.calls)

    play(story())
    assert calls == ["create", "patch", "create", "patch"]
    assert [event["series"]["count"] for event in cluster.objects.values()] == [2]
