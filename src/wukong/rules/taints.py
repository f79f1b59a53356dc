"""Taints and tolerations: NodeUnschedulable, TaintToleration as filter and as score.

Also tells spread.py which nodes a pod could not enter. The toleration operators Lt and Gt are behind a feature gate
that is off by default up to 1.37: they tolerate nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from wukong.api.core import Node, Pod, Taint, Toleration
from wukong.api.profile import MAX_SCORE
from wukong.rules.verdict import Rejection, build_unresolvable

UNSCHEDULABLE = "node(s) were unschedulable"
UNTOLERATED = "node(s) had untolerated taint(s)"
HARD_EFFECTS = ("NoSchedule", "NoExecute")
_UNSCHEDULABLE_TAINT = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


def reject_unschedulable(pod: Pod, node: Node) -> Rejection | None:
    """A cordoned node, unless the pod tolerates the taint that comes with it."""
    if not node.spec.unschedulable or is_tolerated(_UNSCHEDULABLE_TAINT, pod.spec.tolerations):
        return None
    return build_unresolvable(UNSCHEDULABLE)


def reject_tainted(pod: Pod, node: Node, *, names_taint: bool = False) -> Rejection | None:
    """`names_taint`: the reason says which taint it is, as up to 1.33."""
    untolerated = _list_untolerated(pod, node)
    if not untolerated:
        return None
    taint = untolerated[0]
    return build_unresolvable(
        f"node(s) had untolerated taint {{{taint.key}: {taint.value}}}" if names_taint else UNTOLERATED
    )


def tolerates_node(pod: Pod, node: Node) -> bool:
    """Whether every taint that keeps pods out is tolerated."""
    return not _list_untolerated(pod, node)


def _list_untolerated(pod: Pod, node: Node) -> list[Taint]:
    hard = [taint for taint in node.spec.taints if taint.effect in HARD_EFFECTS]
    return [taint for taint in hard if not is_tolerated(taint, pod.spec.tolerations)]


def score(pod: Pod, nodes: list[Node]) -> dict[str, int]:
    """100 for the fewest soft taints the pod does not tolerate, 0 for the most; 100 for all where nobody has any."""
    counts = {node.metadata.name: _count_soft(pod, node) for node in nodes}
    most = max(counts.values(), default=0)
    if most == 0:
        return dict.fromkeys(counts, MAX_SCORE)
    return {name: MAX_SCORE - MAX_SCORE * count // most for name, count in counts.items()}


def is_tolerated(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    return any(tolerates(toleration, taint) for toleration in tolerations)


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """An empty effect or key stands for all of them; an empty operator means Equal."""
    if toleration.effect not in ("", taint.effect) or toleration.key not in ("", taint.key):
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator in ("", "Equal") and toleration.value == taint.value


def _count_soft(pod: Pod, node: Node) -> int:
    soft = [taint for taint in node.spec.taints if taint.effect == "PreferNoSchedule"]
    return sum(not is_tolerated(taint, pod.spec.tolerations) for taint in soft)
