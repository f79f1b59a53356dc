"""The filters of a profile in their order, asked about one pod: which nodes would take it, and who says no first.

Built once per decision. Preemption works on copies, from which it removes pods and to which it adds them again.
"""

from __future__ import annotations

from wukong.api.core import Pod
from wukong.api.profile import Profile
from wukong.rules import fit, node_affinity, ports, taints, volumes
from wukong.rules.cluster import Cluster, NodeInfo
from wukong.rules.inter_pod import InterPodFilter
from wukong.rules.spread import SpreadFilter
from wukong.rules.verdict import Rejection, Verdict


class Filters:
    """What the filters need to know of the cluster to decide, node by node, whether the pod fits."""

    def __init__(self, cluster: Cluster, pod: Pod, profile: Profile) -> None:
        self.cluster, self.pod, self.profile = cluster, pod, profile
        self.spread = SpreadFilter(cluster, pod, profile)
        self.inter_pod = InterPodFilter(cluster, pod, profile)

    def reject(self, info: NodeInfo) -> Verdict | None:
        """The first plugin that rejects the node; the ones after it are not asked."""
        for plugin in self.profile.filters:
            rejection = self._run_plugin(plugin, info)
            if rejection is not None:
                return Verdict(plugin, rejection.reasons, rejection.unresolvable)
        return None

    def remove_pod(self, placed_pod: Pod, info: NodeInfo) -> None:
        info.remove(placed_pod)
        self.spread.remove_pod(placed_pod, info.node)
        self.inter_pod.remove_pod(placed_pod, info.node)

    def add_pod(self, placed_pod: Pod, info: NodeInfo) -> None:
        info.add(placed_pod)
        self.spread.add_pod(placed_pod, info.node)
        self.inter_pod.add_pod(placed_pod, info.node)

    def copy(self) -> Filters:
        copy = Filters.__new__(Filters)
        copy.cluster, copy.pod, copy.profile = self.cluster, self.pod, self.profile
        copy.spread, copy.inter_pod = self.spread.copy(), self.inter_pod.copy()
        return copy

    def _run_plugin(self, plugin: str, info: NodeInfo) -> Rejection | None:
        pod, node, profile = self.pod, info.node, self.profile
        match plugin:
            case "NodeUnschedulable":
                return taints.reject_unschedulable(pod, node)
            case "NodeName":
                return node_affinity.reject_other_name(pod, node)
            case "TaintToleration":
                return taints.reject_tainted(pod, node)
            case "NodeAffinity":
                return node_affinity.reject(pod, node, profile.added_affinity)
            case "NodePorts":
                return ports.reject(pod, info.used_ports)
            case "NodeResourcesFit":
                return fit.reject(pod, info, profile.fit)
            case "VolumeBinding":
                return volumes.reject(self.cluster, pod, node)
            case "PodTopologySpread":
                return self.spread.reject(node)
            case "InterPodAffinity":
                return self.inter_pod.reject(node)
        raise AssertionError(f"the profile names a filter nobody wrote: {plugin}")
