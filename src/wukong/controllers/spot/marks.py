"""Marks on pods that move: an annotation that says because of which node's notice. Pure.

Used by moves.py and evictions.py. Pods that are to go first when their workload shrinks also get the lowest deletion
cost; what that was before, if its author had set one, is kept, and restored when the mark is taken away.
"""

from __future__ import annotations

from wukong.actions import Patch
from wukong.api.core import Pod
from wukong.api.kinds import PODS
from wukong.api.resources import key_of
from wukong.ports import PatchBody

MOVING = "placement.novasphere.dev/moving"
COST = "controller.kubernetes.io/pod-deletion-cost"
COST_BEFORE = "placement.novasphere.dev/deletion-cost-before"
LOWEST_COST = "-2147483648"


def is_marked(pod: Pod) -> bool:
    return MOVING in pod.metadata.annotations


def goes_first(pod: Pod) -> bool:
    """Whether it has all of the mark of a pod that goes when its workload shrinks."""
    return is_marked(pod) and pod.metadata.annotations.get(COST) == LOWEST_COST


def mark_evicted(pod: Pod) -> Patch:
    return _patch(pod, {MOVING: pod.spec.node_name})


def mark(pod: Pod) -> Patch:
    before = pod.metadata.annotations.get(COST)
    annotations: dict[str, str | None] = {MOVING: pod.spec.node_name, COST: LOWEST_COST}
    if before is not None and before != LOWEST_COST:
        annotations[COST_BEFORE] = before
    return _patch(pod, annotations)


def unmark(pod: Pod) -> Patch:
    """A cost that somebody else has set meanwhile stays."""
    annotations: dict[str, str | None] = {MOVING: None, COST_BEFORE: None}
    if pod.metadata.annotations.get(COST) == LOWEST_COST:
        annotations[COST] = pod.metadata.annotations.get(COST_BEFORE)
    return _patch(pod, annotations)


def _patch(pod: Pod, annotations: dict[str, str | None]) -> Patch:
    """Of this very pod: the API server refuses another uid."""
    return Patch(
        PODS, key_of(pod), PatchBody("merge", {"metadata": {"uid": pod.metadata.uid, "annotations": annotations}})
    )
