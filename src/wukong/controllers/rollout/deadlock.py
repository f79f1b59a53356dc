"""The symmetric deadlock: pods of the new version carry a required rule, and so keep the old one's replacements away.

After a node was lost the version that gets the traffic may have no node to go to, while the new one sits on a good one.
kube-scheduler says so in so many words. Then the new version yields, or is promoted. Pure; used by blue_green.py and
canary.py.

kube-scheduler up to 1.35 does not look at a waiting pod again when a pod goes whose rule kept it away
(kubernetes#134393): for up to five minutes nothing would happen. So pods that still wait when the new version has gone
are deleted, and their ReplicaSet makes others, which are looked at at once.
"""

from __future__ import annotations

from wukong.api.core import Pod
from wukong.api.times import parse_time
from wukong.controllers.rollout.decision import Deadlock, Memory
from wukong.controllers.rollout.versions import Look, Version, find_condition
from wukong.placement.rollout.version_rule import REQUIRED

REFUSAL = "existing pods anti-affinity rules"  # kube-scheduler's words for a rule of somebody else's
PATIENCE_SECONDS = 10.0


def find_deadlock(look: Look, serving: Version, memory: Memory) -> tuple[Deadlock | None, float | None]:
    """Whether `serving` is kept away by the current version, or was and is not whole again; or when to look again."""
    blocked = [pod for pod in serving.pods if _is_kept_away(pod)]
    if memory.is_yielding:
        if serving.available >= look.replicas:
            return None, None
        has_gone = not look.current.pods and not look.current.stopping
        woken = [pod for pod in blocked if _created_at(pod) < memory.yielded_at] if has_gone else []
        return Deadlock(serving.hash, tuple(woken)), None
    rule = look.current.rule
    is_ours = rule is not None and rule.list_name == REQUIRED and any(pod.spec.node_name for pod in look.current.pods)
    if not blocked or not is_ours or serving.available >= look.replicas:
        return None, None
    left = min(_created_at(pod) for pod in blocked) + PATIENCE_SECONDS - look.now
    return (Deadlock(serving.hash), None) if left <= 0 else (None, left)


def _is_kept_away(pod: Pod) -> bool:
    scheduled = find_condition(pod, "PodScheduled")
    return (
        not pod.spec.node_name
        and scheduled is not None
        and (scheduled.status, scheduled.reason) == ("False", "Unschedulable")
        and REFUSAL in scheduled.message
    )


def _created_at(pod: Pod) -> float:
    return parse_time(pod.metadata.creation_timestamp) or 0.0
