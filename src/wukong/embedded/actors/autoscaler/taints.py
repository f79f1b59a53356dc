"""The taints that cluster-autoscaler sets: on nodes about to be removed, and on those nobody needs. Used by its
controllers.
"""

from __future__ import annotations

from wukong.actions import Patch
from wukong.api.core import Node as AnyNode
from wukong.api.kinds import NODES
from wukong.api.resources import key_of
from wukong.embedded.store.documents import value_at
from wukong.embedded.world.objects import Node
from wukong.ports import Document, PatchBody

TO_BE_DELETED = "ToBeDeletedByClusterAutoscaler"
CANDIDATE = "DeletionCandidateOfClusterAutoscaler"  # of a node that is not needed: pods rather go elsewhere
MANAGER = "cluster-autoscaler"


def is_leaving(node: AnyNode) -> bool:
    return any(taint.key == TO_BE_DELETED for taint in node.spec.taints)


def leaving_since(node: AnyNode) -> float | None:
    """When the node was tainted, in whole seconds; None if it is not. What nobody can read is long ago."""
    value = next((taint.value for taint in node.spec.taints if taint.key == TO_BE_DELETED), None)
    if value is None:
        return None
    return float(value) if value.isascii() and value.isdigit() else 0.0


def is_candidate(node: AnyNode) -> bool:
    return any(taint.key == CANDIDATE for taint in node.spec.taints)


def taint_node(node: Node, now: float) -> Patch:
    return _add(node, TO_BE_DELETED, now, "NoSchedule")


def untaint_node(node: Node) -> Patch:
    return _write(node, _list_others(node, TO_BE_DELETED))


def mark_candidate(node: Node, now: float) -> Patch:
    return _add(node, CANDIDATE, now, "PreferNoSchedule")


def unmark_candidate(node: Node) -> Patch:
    return _write(node, _list_others(node, CANDIDATE))


def _add(node: Node, key: str, now: float, effect: str) -> Patch:
    return _write(node, [*_list_others(node, key), {"key": key, "value": str(int(now)), "effect": effect}])


def _list_others(node: Node, key: str) -> list[Document]:
    return [taint for taint in value_at(node.document, "spec.taints") or () if taint.get("key") != key]


def _write(node: Node, taints: list[Document]) -> Patch:
    """The list is written whole, as read at this version: what others put into it meanwhile must not be lost."""
    meta = {"uid": node.metadata.uid, "resourceVersion": node.metadata.resource_version}
    patch = {"metadata": meta, "spec": {"taints": taints or None}}
    return Patch(NODES, key_of(node), PatchBody("merge", patch, manager=MANAGER))
