"""Whether a node is going away: read from its taints, conditions, and the notice on it.

Used by fleet.py. A node that is merely NotReady is not leaving: kube-scheduler keeps off it by itself, and it may
return.
"""

from __future__ import annotations

from wukong.api.core import Node

NOTICE = "placement.novasphere.dev/notice"  # annotation: whatever it says, the node is about to go; remove it to recall
TAINTS = (
    "aws-node-termination-handler/spot-itn",
    "aws-node-termination-handler/scheduled-maintenance",
    "aws-node-termination-handler/asg-lifecycle-termination",
    "aws-node-termination-handler/rebalance-recommendation",
    "karpenter.sh/disrupted",
    "cloud.google.com/impending-node-termination",
    "ToBeDeletedByClusterAutoscaler",
    "remediator.kubernetes.azure.com/unschedulable",
    "node.cloudprovider.kubernetes.io/shutdown",
    "node.kubernetes.io/out-of-service",
)
CONDITIONS = ("VMEventScheduled",)  # AKS: an event such as a preemption is scheduled
SHUTTING_DOWN = "node is shutting down"  # what kubelet says in its Ready condition


def find_leaving_reason(node: Node) -> str:
    """`taint karpenter.sh/disrupted` and the like; "" for a node that stays."""
    for taint in node.spec.taints:
        if taint.key in TAINTS:
            return f"taint {taint.key}"
    for condition in node.status.conditions:
        if condition.type in CONDITIONS and condition.status == "True":
            return f"condition {condition.type}"
        if condition.type == "Ready" and condition.status != "True" and SHUTTING_DOWN in condition.message:
            return f"condition Ready: {SHUTTING_DOWN}"
    if NOTICE in node.metadata.annotations:
        return f"annotation {NOTICE}"
    return "deletion" if node.metadata.deletion_timestamp else ""
