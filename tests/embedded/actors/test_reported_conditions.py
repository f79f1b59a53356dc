"""What Kubernetes' controllers write about workloads and nodes, function by function: no world is played."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from wukong.api.meta import OwnerReference
from wukong.embedded.actors.disruption.controller import Scale, _find_scale
from wukong.embedded.actors.node_lifecycle.controller import _build_recovered_conditions, _build_unknown_conditions
from wukong.embedded.actors.replica_set.controller import _build_conditions
from wukong.embedded.world import objects
from wukong.state import State
from wukong.state.attempts import Attempt

NOW, THEN = 1_767_225_600.0, 1_767_225_500.0
NOW_TEXT, THEN_TEXT = "2026-01-01T00:00:00Z", "2025-12-31T23:58:20Z"


def read(group_kind: str, name: str = "web", *, owner: dict[str, Any] | None = None, **fields: Any) -> Any:
    references = [{"controller": True, **owner}] if owner else []
    metadata = {"name": name, "namespace": "shop", "uid": f"{name}-uid", "ownerReferences": references}
    return objects.read(group_kind, {"metadata": metadata, **fields})


def refer(kind: str, name: str = "web", version: str = "apps/v1") -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "name": name, "uid": f"{name}-uid"}


@pytest.mark.parametrize(
    ("workloads", "owner", "scale"),
    [
        ([read("ReplicaSet.apps", spec={"replicas": 3})], refer("ReplicaSet"), Scale("web-uid", 3)),
        ([read("ReplicaSet.apps", spec={"replicas": 0})], refer("ReplicaSet"), Scale("web-uid", 0)),
        (
            [
                read("ReplicaSet.apps", "web-1", spec={"replicas": 2}, owner=refer("Deployment")),
                read("Deployment.apps", spec={"replicas": 5}),
            ],
            refer("ReplicaSet", "web-1"),
            Scale("web-uid", 5),
        ),
        (
            [
                read("ReplicaSet.apps", "web-1", spec={"replicas": 2}, owner=refer("Deployment")),
                read("Deployment.apps", spec={"replicas": 0}),
            ],
            refer("ReplicaSet", "web-1"),
            Scale("web-uid", 0),
        ),
        (
            [read("ReplicaSet.apps", "web-1", spec={"replicas": 2}, owner=refer("Deployment"))],
            refer("ReplicaSet", "web-1"),
            Scale("web-uid", 0),  # its Deployment is gone
        ),
        (
            [read("ReplicaSet.apps", "web-1", spec={"replicas": 2}, owner=refer("Rollout", version="argoproj.io/v1"))],
            refer("ReplicaSet", "web-1"),
            Scale("web-1-uid", 2),
        ),
        ([read("StatefulSet.apps", spec={"replicas": 4})], refer("StatefulSet"), Scale("web-uid", 4)),
        ([read("StatefulSet.apps", spec={"replicas": 0})], refer("StatefulSet"), Scale("web-uid", 0)),
        ([], refer("StatefulSet"), None),
        ([], refer("ReplicaSet"), None),
        ([read("DaemonSet.apps")], refer("DaemonSet"), None),
        ([read("Job.batch")], refer("Job", version="batch/v1"), None),
    ],
)
def test_a_budget_in_percent_counts_the_replicas_of_the_workload_above(
    workloads: list[Any], owner: dict[str, Any], scale: Scale | None
) -> None:
    state = State()
    for workload in workloads:
        state.apply("ADDED", workload)
    reference = msgspec.convert(owner, OwnerReference)
    assert _find_scale("shop", reference, state) == scale


def test_a_replica_set_says_once_since_when_it_cannot_make_pods() -> None:
    failure = Attempt(1, "Denied: exceeded quota: small", NOW)
    failing = {
        "type": "ReplicaFailure",
        "status": "True",
        "reason": "FailedCreate",
        "message": "exceeded quota: small",
        "lastTransitionTime": NOW_TEXT,
    }
    other = {"type": "Other", "status": "True"}
    replica_set = read("ReplicaSet.apps", status={"conditions": [other]})
    assert _build_conditions(replica_set, NOW, None) == [other]
    assert _build_conditions(replica_set, NOW, failure) == [other, failing]
    replica_set = read("ReplicaSet.apps", status={"conditions": [failing, other]})
    assert _build_conditions(replica_set, NOW + 60, failure) == [other, failing]
    assert _build_conditions(replica_set, NOW + 60, None) == [other]


def test_of_a_silent_node_every_condition_is_unknown() -> None:
    conditions = [{"type": "MemoryPressure", "status": "False"}, {"type": "Ready", "status": "True"}]
    unknown = {
        "status": "Unknown",
        "reason": "NodeStatusUnknown",
        "message": "Kubelet stopped posting node status.",
        "lastHeartbeatTime": THEN_TEXT,
        "lastTransitionTime": NOW_TEXT,
    }
    node = read("Node", status={"conditions": conditions})
    expected = [{"type": "MemoryPressure", **unknown}, {"type": "Ready", **unknown}]
    assert _build_unknown_conditions(node, THEN, NOW) == expected
    assert _build_unknown_conditions(read("Node"), THEN, NOW) == expected[1:]


def test_a_kubelet_that_comes_back_says_that_it_is_ready_and_under_no_pressure() -> None:
    conditions = [{"type": "MemoryPressure", "status": "Unknown"}, {"type": "Ready", "status": "Unknown"}]
    times = {"lastHeartbeatTime": NOW_TEXT, "lastTransitionTime": NOW_TEXT, "message": ""}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", **times}
    calm = {"type": "MemoryPressure", "status": "False", "reason": "KubeletHasNoMemoryPressure", **times}
    assert _build_recovered_conditions(read("Node", status={"conditions": conditions}), NOW) == [calm, ready]
    assert _build_recovered_conditions(read("Node"), NOW) == [ready]
