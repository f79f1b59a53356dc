"""How many pods a workload wants and has, and whether it is complete, kind by kind."""

from __future__ import annotations

from typing import Any

import pytest

from wukong.embedded.scenario.record.workload_status import count_replicas
from wukong.embedded.world import objects

COMPLETE = {"type": "Complete", "status": "True"}
GATED = {"type": "Ready", "status": "False", "reason": "ReadinessGatesNotReady"}


Counts = tuple[int, int, bool]  # wanted, available, whether it is complete


def count(group_kind: str, spec: dict[str, Any], generation: int = 1, **status: Any) -> Counts:
    metadata = {"name": "web", "namespace": "shop", "uid": "u", "generation": generation}
    counts = count_replicas(objects.read(group_kind, {"metadata": metadata, "spec": spec, "status": status}))
    return counts.wanted, counts.available, counts.is_complete


def daemons(observed: int = 1, **numbers: int) -> dict[str, int]:
    names = {"wanted": "desired", "updated": "updated", "present": "current"}
    status = {f"{names[name]}NumberScheduled": number for name, number in numbers.items() if name in names}
    return {"observedGeneration": observed, **status, "numberAvailable": numbers.get("available", 0)}


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({}, (0, 0, False)),
        ({"observedGeneration": 1}, (0, 0, True)),
        (daemons(wanted=2, available=2, updated=2, present=2), (2, 2, True)),
        (daemons(0, wanted=2, available=2, updated=2, present=2), (2, 2, False)),
        (daemons(2, wanted=2, available=2, updated=2, present=2), (2, 2, True)),
        (daemons(wanted=2, available=1, updated=2, present=2), (2, 1, False)),
        (daemons(wanted=2, available=2, updated=1, present=2), (2, 2, False)),
        (daemons(wanted=2, available=2, updated=2, present=1), (2, 2, False)),
    ],
)
def test_a_daemon_set(status: dict[str, int], expected: Counts) -> None:
    assert count("DaemonSet.apps", {}, **status) == expected


@pytest.mark.parametrize(
    ("spec", "status", "expected"),
    [
        ({"replicas": 2}, {}, (2, 0, False)),
        ({}, {"availableReplicas": 1, "replicas": 1, "updatedReplicas": 1}, (1, 1, True)),
        ({"replicas": 0}, {}, (0, 0, True)),
        ({"replicas": 2}, {"availableReplicas": 2, "replicas": 2, "updatedReplicas": 2}, (2, 2, True)),
        ({"replicas": 2}, {"availableReplicas": 2, "replicas": 3, "updatedReplicas": 2}, (2, 2, False)),
        ({"replicas": 2}, {"availableReplicas": 2, "replicas": 2, "updatedReplicas": 1}, (2, 2, False)),
        ({"replicas": 2}, {"availableReplicas": 1, "replicas": 2, "updatedReplicas": 2}, (2, 1, False)),
    ],
)
def test_a_deployment(spec: dict[str, Any], status: dict[str, Any], expected: Counts) -> None:
    assert count("Deployment.apps", spec, observedGeneration=1, **status) == expected
    assert count("Deployment.apps", spec, 2, observedGeneration=1, **status) == (*expected[:2], False)


PARTIAL = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}


@pytest.mark.parametrize(
    ("strategy", "revisions", "updated", "is_complete"),
    [
        (None, ("a", "a"), 0, True),
        (None, ("a", "b"), 2, True),
        (None, ("a", "b"), 1, False),
        (PARTIAL, ("a", "b"), 1, True),
    ],
)
def test_a_stateful_set_of_two_versions_is_complete_when_all_are_new_or_some_are_to_stay(
    strategy: dict[str, Any] | None, revisions: tuple[str, str], updated: int, is_complete: bool
) -> None:
    spec = {"replicas": 2, **({"updateStrategy": strategy} if strategy else {})}
    current, newest = revisions
    status = {"observedGeneration": 1, "replicas": 2, "availableReplicas": 2, "updatedReplicas": updated}
    counts = count("StatefulSet.apps", spec, **status, currentRevision=current, updateRevision=newest)
    assert counts == (2, 2, is_complete)


@pytest.mark.parametrize(
    ("spec", "status", "expected"),
    [
        ({}, {}, (1, 0, False)),
        ({"completions": 3}, {"succeeded": 2}, (3, 2, False)),
        ({"completions": 3}, {"succeeded": 3, "conditions": [COMPLETE]}, (3, 3, True)),
        ({"completions": 3}, {"succeeded": 3}, (3, 3, False)),
        ({}, {"succeeded": 1, "conditions": [{**COMPLETE, "status": "False"}]}, (1, 1, False)),
    ],
)
def test_a_job_counts_what_succeeded(spec: dict[str, Any], status: dict[str, Any], expected: Counts) -> None:
    assert count("Job.batch", spec, **status) == expected


UP: dict[str, Any] = {"created": True, "ready": True, "printableStatus": "Running"}


@pytest.mark.parametrize(
    ("spec", "status", "expected"),
    [
        ({"runStrategy": "Always"}, UP, (1, 1, True)),
        ({"running": True}, UP, (1, 1, True)),
        ({"running": False}, {"created": False}, (0, 0, True)),
        ({"runStrategy": "Halted"}, UP, (0, 1, False)),
        ({"runStrategy": "Always"}, {}, (1, 0, False)),
        ({"runStrategy": "Halted"}, {}, (0, 0, False)),  # nobody has looked at it yet
        ({"runStrategy": "Always"}, {"created": True}, (1, 0, False)),
        ({"runStrategy": "Manual"}, UP, (1, 1, True)),
        ({"runStrategy": "Once"}, UP, (1, 1, True)),
        ({"runStrategy": "RerunOnFailure"}, {"created": False}, (0, 0, True)),
        (
            {"runStrategy": "Always"},
            {**UP, "ready": False, "printableStatus": "Migrating", "conditions": [GATED]},
            (1, 1, True),
        ),
        ({"runStrategy": "Always"}, {**UP, "ready": False, "conditions": [GATED]}, (1, 1, True)),
        (
            {"runStrategy": "Always"},
            {**UP, "ready": False, "printableStatus": "Starting", "conditions": [GATED]},
            (1, 0, False),
        ),
        ({"runStrategy": "Always"}, {**UP, "ready": False}, (1, 0, False)),
    ],
)
def test_a_virtual_machine(spec: dict[str, Any], status: dict[str, Any], expected: Counts) -> None:
    assert count("VirtualMachine.kubevirt.io", spec, **status) == expected
