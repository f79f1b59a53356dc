"""PodTopologySpread as score: nodes in domains with few of the selected pods first.

Uses the ScheduleAnyway constraints of the pod, or the profile's default ones. Counts pods as spread.py does.
"""

from __future__ import annotations

from math import floor, log

from wukong.api.core import Pod
from wukong.api.profile import MAX_SCORE, Profile
from wukong.rules.cluster import Cluster, NodeInfo
from wukong.rules.spread import Constraint, count_pods, has_all_keys, read_constraints

HOSTNAME = "kubernetes.io/hostname"


def score(cluster: Cluster, pod: Pod, profile: Profile, feasible: list[NodeInfo]) -> dict[str, int] | None:
    """100 for the emptiest, falling with the number of pods. None: the pod has no soft constraint.

    A node without all the topology keys scores 0. kube-scheduler's own default constraints do not ask for the keys.
    """
    soft = read_constraints(cluster, pod, profile, "ScheduleAnyway")
    if not soft:
        return None
    needs_keys = bool(pod.spec.topology_spread_constraints) or not profile.has_system_default_constraints
    scored = [info for info in feasible if not needs_keys or has_all_keys(info.node.metadata.labels, soft)]
    counting = [
        info for info in cluster.nodes.values() if not needs_keys or has_all_keys(info.node.metadata.labels, soft)
    ]
    raw_scores = {info.name: _compute_raw_score(soft, pod, info, scored, counting) for info in scored}
    return dict.fromkeys((info.name for info in feasible), 0) | _normalise(raw_scores)


def _compute_raw_score(
    soft: list[Constraint], pod: Pod, info: NodeInfo, scored: list[NodeInfo], counting: list[NodeInfo]
) -> int:
    """How crowded the node's domains are, rounded; pods in domains of a kind with many domains weigh more."""
    raw_score = 0.0
    for constraint in soft:
        key = constraint.topology_key
        domain = info.node.metadata.labels.get(key)
        if domain is None:
            continue
        if key == HOSTNAME:  # a domain per node, whatever the label says; inclusion policies are not asked either
            domains, pods = len(scored), count_pods(info, constraint.selector, pod)
        else:
            domains = len({entry.node.metadata.labels.get(key, "") for entry in scored})
            pods = _count_domain(constraint, pod, domain, counting)
        raw_score += pods * log(domains + 2) + (constraint.max_skew - 1)
    return floor(raw_score + 0.5)


def _count_domain(constraint: Constraint, pod: Pod, domain: str, counting: list[NodeInfo]) -> int:
    return sum(
        count_pods(info, constraint.selector, pod)
        for info in counting
        if info.node.metadata.labels.get(constraint.topology_key, "") == domain and constraint.includes(pod, info.node)
    )


def _normalise(raw_scores: dict[str, int]) -> dict[str, int]:
    fewest, most = min(raw_scores.values(), default=0), max(raw_scores.values(), default=0)
    if most == 0:
        return dict.fromkeys(raw_scores, MAX_SCORE)
    return {name: MAX_SCORE * (most + fewest - raw_score) // most for name, raw_score in raw_scores.items()}
