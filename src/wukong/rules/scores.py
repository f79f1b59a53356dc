"""The score plugins of a profile: each gives the feasible nodes 0 to 100, which its weight multiplies.

Called by decide.py when more than one node is feasible. A plugin that is skipped for a pod is absent and adds nothing.
"""

from __future__ import annotations

from wukong.api.core import Pod
from wukong.api.profile import Profile
from wukong.rules import balance, fit, images, inter_pod_score, node_affinity, spread_score, taints, volume_binding
from wukong.rules.cluster import Cluster, NodeInfo

Scores = dict[str, int]  # node → points


def score(cluster: Cluster, pod: Pod, profile: Profile, feasible: list[NodeInfo]) -> dict[str, Scores]:
    """Weighted scores by plugin and node. Raises UnreadablePreferenceError where kube-scheduler's cycle fails."""
    weighted: dict[str, Scores] = {plugin: {info.name: 0 for info in feasible} for plugin in profile.zero_scores}
    for plugin, weight in profile.scores:
        points = _run_plugin(plugin, cluster, pod, profile, feasible)
        if points is not None:
            weighted[plugin] = {name: weight * score for name, score in points.items()}
    return weighted


def add_up(scores: dict[str, Scores], feasible: list[NodeInfo]) -> Scores:
    return {info.name: sum(points[info.name] for points in scores.values()) for info in feasible}


def _run_plugin(plugin: str, cluster: Cluster, pod: Pod, profile: Profile, feasible: list[NodeInfo]) -> Scores | None:
    nodes = [info.node for info in feasible]
    match plugin:
        case "TaintToleration":
            return taints.score(pod, nodes)
        case "NodeAffinity":
            return node_affinity.score(pod, nodes, profile.added_affinity)
        case "NodeResourcesFit":
            return {info.name: fit.score(pod, info, profile.fit) for info in feasible}
        case "PodTopologySpread":
            return spread_score.score(cluster, pod, profile, feasible)
        case "InterPodAffinity":
            return inter_pod_score.score(cluster, pod, profile, nodes)
        case "NodeResourcesBalancedAllocation":
            if balance.is_skipped(pod, profile):
                return None
            return {info.name: balance.score(pod, info, profile) for info in feasible}
        case "ImageLocality":
            return {info.name: images.score(cluster, pod, info.node, profile.version) for info in feasible}
        case "VolumeBinding":
            return {info.name: volume_binding.score(cluster, pod, info.node) for info in feasible}
    raise AssertionError(f"the profile names a score nobody wrote: {plugin}")
