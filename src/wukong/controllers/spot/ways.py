"""By which way a pod left its node, read from the pod itself as it was last seen. Pure.

Used by history.py and by the meter of the component.
"""

from __future__ import annotations

from wukong.api.core import Pod
from wukong.controllers.spot.marks import goes_first, is_marked

REPLACED, EVICTED, DELETED = OUR_WAYS = ("replaced", "evicted", "deleted")
LEFT = "left"  # by itself, or by somebody else
LOST = "lost"  # with its machine
STAYED = "stayed"  # its node stays after all
_LOST_REASONS = ("DeletionByTaintManager", "DeletionByPodGC")  # Kubernetes gave it up


def way_of(pod: Pod) -> str:
    """How this pod goes, or would if it went now."""
    reasons = {it.reason for it in pod.status.conditions if it.type == "DisruptionTarget" and it.status == "True"}
    if "EvictionByEvictionAPI" in reasons:
        return EVICTED
    if reasons.intersection(_LOST_REASONS):
        return LOST
    if not is_marked(pod):
        return LEFT
    return REPLACED if goes_first(pod) else DELETED
