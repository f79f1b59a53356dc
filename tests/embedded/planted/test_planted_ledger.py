"""Bugs planted in the ledger and its controller: each is found by the checker, most of them without any fault.

The product passes the same seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from msgspec.structs import replace

from embedded.planted.hunting import find_failing_seeds, hunt, plant
from wukong.api.ledger import ReplicaRecord
from wukong.controllers.ledger import controller
from wukong.controllers.ledger.controller import Ledger
from wukong.controllers.ledger.settled import RecordedWorkload, find_record
from wukong.embedded import ledger
from wukong.ports import Document

SCENARIO = (Path(__file__).parents[3] / "examples" / "sim" / "soak-ledger.yaml").read_text()
NO_FAULTS: Mapping[str, float] = {}


class Bug(NamedTuple):
    where: object
    name: str
    replacement: Callable[..., Any]
    expected: str  # part of a reason
    faults: Mapping[str, float] = NO_FAULTS


def record_dips(workload: RecordedWorkload, cluster: str) -> ReplicaRecord | None:
    """What is available counts, however many should be."""
    available = workload.status.available_replicas
    status = replace(workload.status, replicas=available, updated_replicas=available)
    return find_record(replace(workload, spec=replace(workload.spec, replicas=available), status=status), cluster)


def record_surges(workload: RecordedWorkload, cluster: str) -> ReplicaRecord | None:
    """Old pods beside the new ones are not looked at."""
    return find_record(
        replace(workload, status=replace(workload.status, replicas=workload.spec.replicas or 0)), cluster
    )


def record_unobserved(workload: RecordedWorkload, cluster: str) -> ReplicaRecord | None:
    """A status of the generation before is taken for one of this."""
    status = replace(workload.status, observed_generation=workload.metadata.generation)
    return find_record(replace(workload, status=status), cluster)


def believe_the_last(document: Document, record: ReplicaRecord) -> Document | None:
    """Whoever writes last is right."""
    content = _take_in(document, record)
    if content is not None or record.closed_at:
        return content
    return {"record": msgspec.to_builtins(record)}


def write_twice(document: Document, record: ReplicaRecord) -> Document | None:
    """What is in the history already is written into it once more."""
    content = _take_in(document, record)
    if content is not None or record.closed_at or not document:
        return content
    return {"history": [*document["history"], msgspec.to_builtins(record)]}


_take_in = ledger._take_in


def forget_to_close(*_: object) -> tuple[list[ReplicaRecord], None]:
    return [], None


BUGS = {
    "dips are recorded": Bug(controller, "find_record", record_dips, "which was never so"),
    "surges are recorded": Bug(controller, "find_record", record_surges, "which was never so"),
    "the generation is not awaited": Bug(controller, "find_record", record_unobserved, "which was never so"),
    "a late writer is right": Bug(ledger, "_take_in", believe_the_last, "goes back in time", {"ledger-late": 0.5}),
    "a close is forgotten": Bug(Ledger, "_close", forget_to_close, "is gone, and it is not closed"),
    "the history is doubled": Bug(ledger, "_take_in", write_twice, "in the history twice", {"ledger-late": 0.5}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_found(name: str) -> None:
    bug = BUGS[name]
    with plant(bug.where, bug.name, bug.replacement):
        seed, reasons = hunt(bug.faults, SCENARIO)
    assert any(bug.expected in reason for reason in reasons), reasons
    assert seed <= 10
    assert find_failing_seeds(bug.faults, seed, SCENARIO) == {}
