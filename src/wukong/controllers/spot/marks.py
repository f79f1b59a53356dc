"""Marks on pods that are to go first when their workload shrinks. Pure.

Used by moves.py. A mark is the lowest deletion cost, an annotation that says for which node the pod moves, and what
its cost was before, if its author had set one: taking the mark away restores that.
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


def mark(pod: Pod) -> Patch:
    before = pod.metadata.annotations.get(COST)
    annotations: dict[str, str | None] = {MOVING: pod.spec.node_name, COST: LOWEST_COST}
    if before is not None and before != LOWEST_COST:
        annotations[COST_BEFORE] = before
    return _patch(pod, annotations)


def unmark(pod: Pod) -> Patch:
    before = pod.metadata.annotations.get(COST_BEFORE)
    return _patch(pod, {MOVING: None, COST: before, COST_BEFORE: None})


def _patch(pod: Pod, annotations: dict[str, str | None]) -> Patch:
    """Of this very pod: the API server refuses another uid."""
    return Patch(
        PODS, key_of(pod), PatchBody("merge", {"metadata": {"uid": pod.metadata.uid, "annotations": annotations}})
    )
