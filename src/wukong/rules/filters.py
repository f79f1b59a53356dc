"""The filters of a profile in their order, asked about one pod: which nodes would take it, and who says no first.

Made once per decision. Preemption works on copies, told of the pods it takes away and gives back.
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
    """What is to be known of the cluster to tell, node by node, whether the pod fits."""

    def __init__(self, cluster: Cluster, pod: Pod, profile: Profile) -> None:
        self.cluster, self.pod, self.profile = cluster, pod, profile
        self.spread = SpreadFilter(cluster, pod, profile)
        self.inter_pod = InterPodFilter(cluster, pod, profile)

    def reject(self, info: NodeInfo) -> Verdict | None:
        """The first plugin that rejects the node; the ones after it are not asked."""
        for plugin in self.profile.filters:
            rejection = self._ask(plugin, info)
            if rejection is not None:
                return Verdict(plugin, rejection.reasons, rejection.unresolvable)
        return None

    def pod_left(self, other: Pod, info: NodeInfo) -> None:
        info.remove(other)
        self.spread.pod_left(other, info.node)
        self.inter_pod.pod_left(other, info.node)

    def pod_came(self, other: Pod, info: NodeInfo) -> None:
        info.add(other)
        self.spread.pod_came(other, info.node)
        self.inter_pod.pod_came(other, info.node)

    def copy(self) -> Filters:
        twin = Filters.__new__(Filters)
        twin.cluster, twin.pod, twin.profile = self.cluster, self.pod, self.profile
        twin.spread, twin.inter_pod = self.spread.copy(), self.inter_pod.copy()
        return twin

    def _ask(self, plugin: str, info: NodeInfo) -> Rejection | None:
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
