"""Which nodes are about to go, and which only look unwell."""

from __future__ import annotations

import pytest

from builders import a_node
from wukong.api.core import Node, NodeCondition
from wukong.placement.leaving_nodes import NOTICE, find_leaving_reason

NTH = "aws-node-termination-handler"


def with_condition(type_: str, status: str, message: str = "") -> Node:
    node = a_node()
    node.status.conditions = [
        NodeCondition(type="MemoryPressure", status="False"),
        NodeCondition(type=type_, status=status, message=message),
    ]
    return node


@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute", "PreferNoSchedule"])
@pytest.mark.parametrize(
    "key",
    [
        f"{NTH}/spot-itn",
        f"{NTH}/scheduled-maintenance",
        f"{NTH}/asg-lifecycle-termination",
        f"{NTH}/rebalance-recommendation",
        "karpenter.sh/disrupted",
        "cloud.google.com/impending-node-termination",
        "ToBeDeletedByClusterAutoscaler",
        "remediator.kubernetes.azure.com/unschedulable",
        "node.cloudprovider.kubernetes.io/shutdown",
        "node.kubernetes.io/out-of-service",
    ],
)
def test_a_taint_of_whoever_drains_nodes_means_leaving(key: str, effect: str) -> None:
    assert find_leaving_reason(a_node(taints=["mine=1:NoSchedule", f"{key}=now:{effect}"])) == f"taint {key}"


@pytest.mark.parametrize(
    "key",
    [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
        "node.kubernetes.io/unschedulable",
        "node.kubernetes.io/memory-pressure",
        "kubernetes.azure.com/scalesetpriority",
        "DeletionCandidateOfClusterAutoscaler",
        "karpenter.sh/disruption",
        "dedicated",
    ],
)
def test_other_taints_do_not(key: str) -> None:
    assert find_leaving_reason(a_node(taints=[f"{key}=:NoSchedule"])) == ""


@pytest.mark.parametrize(
    ("type_", "status", "message", "expected"),
    [
        ("VMEventScheduled", "True", "Preempt", "condition VMEventScheduled"),
        ("VMEventScheduled", "False", "", ""),
        ("VMEventScheduled", "Unknown", "", ""),
        ("Ready", "False", "node is shutting down", "condition Ready: node is shutting down"),
        ("Ready", "False", "[PLEG is not healthy, node is shutting down]", "condition Ready: node is shutting down"),
        ("Ready", "Unknown", "node is shutting down", "condition Ready: node is shutting down"),
        ("Ready", "True", "node is shutting down", ""),
        ("Ready", "False", "container runtime is down", ""),
        ("Ready", "False", "", ""),
        ("Ready", "Unknown", "Kubelet stopped posting node status.", ""),
        ("DiskPressure", "True", "", ""),
    ],
)
def test_a_condition_means_leaving_only_if_it_says_so(type_: str, status: str, message: str, expected: str) -> None:
    assert find_leaving_reason(with_condition(type_, status, message)) == expected


@pytest.mark.parametrize("text", ["2026-11-16T01:00:00Z", "false", ""])
def test_a_notice_means_leaving_whatever_it_says_and_its_removal_staying(text: str) -> None:
    node = a_node()
    node.metadata.annotations = {NOTICE: text}
    assert find_leaving_reason(node) == f"annotation {NOTICE}"
    node.metadata.annotations = {}
    assert find_leaving_reason(node) == ""


def test_a_node_being_deleted_is_leaving() -> None:
    node = a_node()
    node.metadata.deletion_timestamp = "2026-11-16T01:00:00Z"
    assert find_leaving_reason(node) == "deletion"


def test_a_cordoned_node_stays() -> None:
    assert find_leaving_reason(a_node(unschedulable=True)) == ""
