"""The component ledger in an embedded cluster: what it says in the end, whatever goes wrong before."""

from __future__ import annotations

from functools import partial, partialmethod
from pathlib import Path

import msgspec
import pytest

from wukong.actions import Record
from wukong.api.ledger import WorkloadRecord
from wukong.app.embedded import play_scenario, play_with
from wukong.embedded.faults import TYPES
from wukong.embedded.faults.ledger import LedgerFaults
from wukong.embedded.ledger import write_record
from wukong.embedded.scenario import read_scenario
from wukong.embedded.scenario.format.fields import Fault, TimelineEntry
from wukong.embedded.world.process import Crashed
from wukong.embedded.world.world import World
from wukong.runtime.dispatch import Item

STORM = read_scenario((Path(__file__).parents[2] / "examples" / "sim" / "soak-ledger.yaml").read_text())
ONE = read_scenario(
    """
components: [ledger]
nodes: [{namePrefix: n, count: 2}]
manifests:
  - apiVersion: apps/v1
    kind: Deployment
    metadata: {name: web}
    spec:
      replicas: 3
      selector: {matchLabels: {app: web}}
      template:
        metadata: {labels: {app: web}}
        spec: {containers: [{name: web, image: "web:1"}]}
timeline:
  - at: 10s
    patch:
      {kind: Deployment, name: web, patch: {spec: {template: {spec: {containers: [{name: web, image: "web:2"}]}}}}}
  - {at: 40s, scale: {kind: Deployment, name: web, replicas: 5}}
  - {at: 90s, delete: {kind: Deployment, name: web}}
until: 10m
"""
)


History = list[tuple[int, str, str]]  # replicas, revision, when it was closed


def read_histories(world: World, into: list[History]) -> None:
    for subject in world.state.all(WorkloadRecord):
        entries = subject.document["history"]  # type: ignore[attr-defined]
        into.append([(entry["replicas"], entry["revision"], entry.get("closedAt", "")) for entry in entries])


def test_a_rollout_keeps_the_number_a_scale_changes_it_and_a_removal_closes_it() -> None:
    histories = list[History]()
    story = play_scenario(ONE, at_end=lambda world: read_histories(world, histories))
    closed = "2026-01-01T00:01:30Z"
    assert (story.settled, story.findings) == (True, [])
    assert histories == [[(3, "1", closed), (3, "2", closed), (5, "2", closed)]]


@pytest.mark.slow
def test_the_storm_is_recorded_truly() -> None:
    story = play_scenario(STORM, 3)
    assert (story.settled, story.findings) == (True, [])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 4))
def test_no_fault_makes_the_ledger_say_what_was_never_true(seed: int) -> None:
    story, counts = play_with(STORM, seed, list(TYPES))
    assert (story.settled, story.findings) == (True, [])
    assert counts is not None
    assert counts.injected["ledger-late"] + counts.injected["ledger-down"] > 0


class CrashAtRecord:
    """Ends the process at its n-th write to the ledger, before or after that has happened."""

    def __init__(self, number: int, *, is_written: bool) -> None:
        self.number, self.is_written, self.count = number, is_written, 0

    def strike(self, faults: LedgerFaults, action: Record) -> None:
        self.count += 1
        if self.count == self.number:
            if self.is_written:
                write_record(faults.faults.world.server, action.record)
            raise Crashed(1.0)


def _strike(faults: LedgerFaults, crash: CrashAtRecord, process: str, item: Item, action: Record) -> None:
    crash.strike(faults, action)


@pytest.mark.slow
@pytest.mark.parametrize("is_written", [False, True], ids=["before", "after"])
def test_a_crash_at_any_write_to_the_ledger_loses_and_doubles_nothing(
    is_written: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = msgspec.structs.replace(ONE, timeline=[*ONE.timeline, TimelineEntry("0s", fault=Fault("ledger-late"))])
    for number in range(1, 100):
        crash = CrashAtRecord(number, is_written=is_written)
        with monkeypatch.context() as patch:
            patch.setattr(LedgerFaults, "strike", partialmethod(_strike, crash))
            histories = list[History]()
            story = play_scenario(scenario, 1, at_end=partial(read_histories, into=histories))
        assert (story.settled, story.findings) == (True, [])
        (history,) = histories
        assert [replicas for replicas, _, _ in history] == [3, 3, 5]
        assert all(closed_at for _, _, closed_at in history)
        if crash.count < number:  # there was no such write
            assert number == 5
            return
