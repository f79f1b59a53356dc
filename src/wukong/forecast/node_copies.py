"""A new node like one that is there: the same labels, taints and room, under another name. Pure.

For who asks what more nodes would change; nothing here makes a node in any cluster.
"""

from __future__ import annotations

from wukong.ports import Document

HOSTNAME = "kubernetes.io/hostname"
_READY = {"type": "Ready", "status": "True", "reason": "KubeletReady"}


def copy_node(like: Document, name: str) -> Document:
    """A Node document that an embedded cluster takes as a new, healthy node. What was wrong with the other stays there.

    Taints of Kubernetes' own say that something is wrong with a node; the others belong to its group.
    """
    labels = {**(like["metadata"].get("labels") or {}), HOSTNAME: name}
    taints = [
        {field: taint[field] for field in ("key", "value", "effect") if taint.get(field)}
        for taint in (like.get("spec") or {}).get("taints") or ()
        if not str(taint.get("key", "")).startswith("node.kubernetes.io/")
    ]
    status = like.get("status") or {}
    amounts = {part: dict(status[part]) for part in ("capacity", "allocatable") if status.get(part)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": taints} if taints else {},
        "status": {**amounts, "conditions": [dict(_READY)]},
    }
