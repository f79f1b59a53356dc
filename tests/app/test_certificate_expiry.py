"""Certificates that expire soon are told of in time: a metric, a log line and a warning Event a day."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from wukong.actions import Note
from wukong.api.resources import Key
from wukong.app.components.extender import certificate_expiry
from wukong.app.components.extender.certificate_expiry import DAY, find_expiry_problem, keep_warning, show_expiries
from wukong.app.own_pod import find_own_pod
from wukong.errors import ClusterError
from wukong.runtime.metrics import Metrics
from wukong.runtime.performer import Performer
from wukong.serve.tls import CertificateFiles

NOW = 1_794_830_400.0  # 2026-11-16
POD = Key("wukong-system", "extender-1")


class Files:
    def __init__(self, days: float) -> None:
        self.days = days

    def expiries(self) -> dict[str, float]:
        return {"server": NOW + self.days * DAY, "client-ca": NOW + 1000 * DAY}


class Recorder:
    def __init__(self) -> None:
        self.notes: list[Note] = []

    async def perform(self, note: Note, now: float) -> None:
        self.notes.append(note)
        raise ClusterError("events are not written today")


class Clock:
    """Each look at it is an hour later; it stops the story after so many."""

    def __init__(self, hours: int, files: Files, renewed_after: int = 10**9) -> None:
        self.hours, self.files, self.renewed_after, self.turn = hours, files, renewed_after, 0

    def now(self) -> float:
        if self.turn == self.hours:
            raise asyncio.CancelledError
        if self.turn == self.renewed_after:
            self.files.days += 365
        self.turn += 1
        return NOW + (self.turn - 1) * 3600


async def play(days: float, hours: int, pod: Key | None = POD, renewed_after: int = 10**9) -> list[Note]:
    files, recorder = Files(days), Recorder()
    clock: Any = Clock(hours, files, renewed_after)
    with pytest.raises(asyncio.CancelledError):
        await keep_warning(cast(CertificateFiles, files), cast(Performer, recorder), clock, pod)
    return recorder.notes


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificate_expiry, "LOOK_SECONDS", 0)


async def test_thirty_days_before_a_warning_is_written_once_a_day(caplog: pytest.LogCaptureFixture) -> None:
    notes = await play(days=30.5, hours=61)
    assert len(notes) == 2
    assert {(note.about.kind, note.key, note.reason, note.is_warning) for note in notes} == {
        ("Pod", POD, "CertificateExpires", True)
    }
    assert notes[0].text == ("the extender's certificate expires on 2026-12-17. Renew them: wukong manifests extender")
    assert caplog.text.count("certificates expire") == 2


async def test_renewed_certificates_end_the_warnings() -> None:
    assert len(await play(days=5, hours=100, renewed_after=1)) == 1


async def test_outside_of_a_pod_the_log_says_it(caplog: pytest.LogCaptureFixture) -> None:
    assert await play(days=5, hours=2, pod=None) == []
    assert "certificates expire" in caplog.text


@pytest.mark.parametrize(
    ("days", "expected"),
    [(31, ""), (29, "expires on 2026-12-15"), (0, "has expired on"), (-3, "has expired on 2026-11-13")],
)
def test_what_expires_is_told_with_its_day(days: float, expected: str) -> None:
    problem = find_expiry_problem(Files(days).expiries(), NOW)
    assert (expected in problem) if expected else problem == ""


def test_the_metric_follows_the_files() -> None:
    metrics, files = Metrics(), Files(5)
    show_expiries(cast(CertificateFiles, files), metrics)
    for days in (5, 400):
        files.days = days
        name, labels = "wukong_certificate_expiry_timestamp_seconds", {"certificate": "server"}
        assert metrics.registry.get_sample_value(name, labels) == NOW + days * DAY


def test_a_pod_is_known_by_its_variables() -> None:
    assert find_own_pod({"POD_NAME": "a", "POD_NAMESPACE": "b"}) == Key("b", "a")
    assert find_own_pod({"POD_NAME": "a"}) is None
