"""The taints that the node lifecycle controller keeps on nodes, and those it leaves alone. Called by controller.py."""

from __future__ import annotations

from wukong.embedded.store.documents import condition_of, value_at
from wukong.embedded.world.objects import Node
from wukong.ports import Document

NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
PRESSURES = {
    "MemoryPressure": "node.kubernetes.io/memory-pressure",
    "DiskPressure": "node.kubernetes.io/disk-pressure",
    "NetworkUnavailable": "node.kubernetes.io/network-unavailable",
    "PIDPressure": "node.kubernetes.io/pid-pressure",
}
_OURS = {
    *((key, effect) for key in (NOT_READY, UNREACHABLE) for effect in ("NoSchedule", "NoExecute")),
    *((key, "NoSchedule") for key in (UNSCHEDULABLE, *PRESSURES.values())),
}


def list_wanted(node: Node, ready: str) -> list[Document]:
    """The taints a node should have, by its conditions and by spec.unschedulable; the NoExecute one, if any, is last.

    `ready` is the status of its condition Ready.
    """
    key = {"True": "", "False": NOT_READY}.get(ready, UNREACHABLE)
    pressures = [taint for kind, taint in PRESSURES.items() if _is_true(node, kind)]
    cordoned = [UNSCHEDULABLE] if node.spec.unschedulable else []
    keys = [*([key] if key else []), *pressures, *cordoned]
    no_execute = [{"key": key, "effect": "NoExecute"}] if key else []
    return [*({"key": taint, "effect": "NoSchedule"} for taint in keys), *no_execute]


def list_foreign(node: Node) -> list[Document]:
    """The node's taints that are not ours: those of other keys, and those of our keys with another effect."""
    return [
        taint
        for taint in value_at(node.document, "spec.taints") or ()
        if (taint["key"], taint.get("effect")) not in _OURS
    ]


def find(node: Node, wanted: Document) -> Document | None:
    """The node's taint with the same key and effect, if it has one."""
    for taint in value_at(node.document, "spec.taints") or ():
        if (taint["key"], taint["effect"]) == (wanted["key"], wanted["effect"]):
            document: Document = taint
            return document
    return None


def _is_true(node: Node, kind: str) -> bool:
    return (condition_of(node.document, kind) or {}).get("status") == "True"
