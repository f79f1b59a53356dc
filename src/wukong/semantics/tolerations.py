"""Which taints a pod tolerates.

The toleration operators Lt and Gt are behind a feature gate that is off by default up to 1.37: they tolerate nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from wukong.api.core import Node, Pod, Taint, Toleration

HARD_EFFECTS = ("NoSchedule", "NoExecute")  # of taints that keep pods out


def tolerates(toleration: Toleration, key: str, value: str, effect: str) -> bool:
    """An empty effect or key stands for all of them; an empty operator means Equal."""
    if toleration.effect not in ("", effect) or toleration.key not in ("", key):
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == value
    return toleration.operator == "Exists"


def is_tolerated(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    return any(tolerates(toleration, taint.key, taint.value, taint.effect) for toleration in tolerations)


def tolerates_node(pod: Pod, node: Node) -> bool:
    """Whether the pod tolerates every taint of the node that keeps pods out."""
    hard_taints = [taint for taint in node.spec.taints if taint.effect in HARD_EFFECTS]
    return all(is_tolerated(taint, pod.spec.tolerations) for taint in hard_taints)
