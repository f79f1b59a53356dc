"""What is read off an audit log: which write caused which, and how long each took."""

from __future__ import annotations

import json

from testbed.latencies.audit import (
    REACTIONS,
    Reaction,
    measure_hearing,
    measure_writing,
    quantiles_of,
    read_writes,
)
from testbed.latencies.command import render


def reaction(name: str) -> Reaction:
    (found,) = [reaction for reaction in REACTIONS if name in reaction.name]
    return found


def line(by: str, what: str, received: float, answered: float, *, code: int = 200, name: str = "web-1") -> bytes:
    verb, _, resource = what.partition(" ")
    subject, _, subresource = resource.partition("/")
    entry = {
        "verb": verb,
        "user": {"username": f"system:serviceaccount:kube-system:{by}"},
        "objectRef": {"resource": subject, "subresource": subresource, "namespace": "shop", "name": name},
        "responseStatus": {"code": code},
        "requestReceivedTimestamp": f"2026-11-16T10:00:{received:09.6f}Z",
        "stageTimestamp": f"2026-11-16T10:00:{answered:09.6f}Z",
    }
    return json.dumps(entry).encode()


LOG = [
    line("wukong-testbed-admin", "patch deployments", 1.0, 1.004, name="web"),
    line("deployment-controller", "create replicasets", 1.006, 1.010),
    line("deployment-controller", "update deployments/status", 1.012, 1.013, name="web"),
    line("replicaset-controller", "create pods", 1.008, 1.020, name=""),  # heard of it before its author was answered
    line("replicaset-controller", "create events", 1.021, 1.5),
    line("replicaset-controller", "create pods", 1.022, 1.024, name=""),
    line("replicaset-controller", "update replicasets/status", 1.030, 1.039, code=409),
    line("kube-scheduler", "create pods/binding", 1.030, 1.033),
    line("wukong-testbed-admin", "patch pods/status", 1.043, 1.045, name="db-0"),
    line("wukong-testbed-admin", "patch pods/status", 1.053, 1.055),
    line("replicaset-controller", "update replicasets/status", 1.060, 1.064),
    line("replicaset-controller", "list pods", 1.060, 1.064),
]


def milliseconds(seconds: list[float]) -> list[float]:
    return [round(value * 1000, 3) for value in seconds]


def test_a_write_is_paired_with_the_last_cause_before_it_and_only_the_first_of_its_effects_counts() -> None:
    writes = read_writes(LOG)
    assert milliseconds(measure_hearing(writes, reaction("its ReplicaSet written"))) == [2.0]
    assert milliseconds(measure_hearing(writes, reaction("a pod created or deleted"))) == [0.0]
    assert milliseconds(measure_hearing(writes, reaction("pod created → bound"))) == [6.0]
    assert milliseconds(measure_hearing(writes, reaction("pod bound"))) == [10.0]


def test_a_status_counts_only_for_the_set_that_has_the_pod() -> None:
    assert milliseconds(measure_hearing(read_writes(LOG), reaction("its ReplicaSet's"))) == [5.0]


def test_refused_writes_reads_and_events_are_left_out() -> None:
    assert milliseconds(measure_writing(read_writes(LOG), "replicaset-controller")) == [12.0, 2.0, 4.0]


def test_quantiles_are_milliseconds() -> None:
    assert quantiles_of([number / 1000 for number in range(101)]) == [0.0, 50.0, 90.0, 99.0, 100.0]
    assert quantiles_of([]) == []


def test_the_table_has_a_row_for_each_reaction_and_each_controller() -> None:
    rows = list(render(read_writes(LOG)))
    assert any(row.split()[-6:] == ["1", *["2.0"] * 5] for row in rows if row.startswith("deployment: Deployment"))
    assert sum(row.startswith("all ") for row in rows) == 2
    assert len(rows) > len(REACTIONS)
