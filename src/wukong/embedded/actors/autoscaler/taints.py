"""The taint of a node that is about to be removed, as cluster-autoscaler sets it. Used by its controllers."""

from __future__ import annotations

from wukong.actions import Patch
from wukong.api.core import Node as AnyNode
from wukong.api.kinds import NODES
from wukong.api.resources import key_of
from wukong.embedded.store.documents import value_at
from wukong.embedded.world.objects import Node
from wukong.ports import Document, PatchBody

TO_BE_DELETED = "ToBeDeletedByClusterAutoscaler"
MANAGER = "cluster-autoscaler"


def is_leaving(node: AnyNode) -> bool:
    return any(taint.key == TO_BE_DELETED for taint in node.spec.taints)


def leaving_since(node: AnyNode) -> float | None:
    """When the node was tainted, in whole seconds; None if it is not. What nobody can read is long ago."""
    value = next((taint.value for taint in node.spec.taints if taint.key == TO_BE_DELETED), None)
    if value is None:
        return None
    return float(value) if value.isascii() and value.isdigit() else 0.0


def taint_node(node: Node, now: float) -> Patch:
    taint = {"key": TO_BE_DELETED, "value": str(int(now)), "effect": "NoSchedule"}
    return _write(node, [*_list_others(node), taint])


def untaint_node(node: Node) -> Patch:
    return _write(node, _list_others(node))


def _list_others(node: Node) -> list[Document]:
    return [taint for taint in value_at(node.document, "spec.taints") or () if taint.get("key") != TO_BE_DELETED]


def _write(node: Node, taints: list[Document]) -> Patch:
    """The list is written whole, as read at this version: what others put into it meanwhile must not be lost."""
    meta = {"uid": node.metadata.uid, "resourceVersion": node.metadata.resource_version}
    patch = {"metadata": meta, "spec": {"taints": taints or None}}
    return Patch(NODES, key_of(node), PatchBody("merge", patch, manager=MANAGER))
