"""The filters of a profile in their order, asked about one pod: which nodes would take it, and who says no first.

Built once per decision. Preemption works on copies, from which it removes pods and to which it adds them again.
"""

from __future__ import annotations

from collections.abc import Callable

from wukong.api.core import Pod
from wukong.api.profile import Profile
from wukong.rules import (
    fit,
    node_affinity,
    ports,
    taints,
    volume_binding,
    volume_limits,
    volume_restrictions,
    volume_zone,
)
from wukong.rules.cluster import Cluster, NodeInfo
from wukong.rules.inter_pod import InterPodFilter
from wukong.rules.resources import Amounts, placed_requests_of
from wukong.rules.spread import SpreadFilter
from wukong.rules.verdict import Rejection, Verdict
from wukong.rules.volume_restrictions import RestrictionsFilter

_PREFILTERS = {
    "VolumeRestrictions": volume_restrictions.find_problem,
    "VolumeBinding": volume_binding.find_problem,
    "VolumeZone": volume_zone.find_problem,
}


def find_problem(cluster: Cluster, pod: Pod, profile: Profile) -> tuple[str, str] | None:
    """The first plugin that refuses the pod before any node is looked at (PreFilter), and why."""
    for plugin in profile.filters if pod.spec.volumes else ():
        problem = _PREFILTERS[plugin](cluster, pod) if plugin in _PREFILTERS else ""
        if problem:
            return plugin, problem
    return None


class Filters:
    """What the filters need to know of the cluster to decide, node by node, whether the pod fits.

    Only the profile's own count pods of other nodes. `requests_of` gives what a placed pod takes: see fit.reject.
    """

    def __init__(
        self,
        cluster: Cluster,
        pod: Pod,
        profile: Profile,
        requests_of: Callable[[Pod], Amounts] = placed_requests_of,
    ) -> None:
        self.cluster, self.pod, self.profile, self.requests_of = cluster, pod, profile, requests_of
        self.spread = SpreadFilter(cluster, pod, profile) if "PodTopologySpread" in profile.filters else None
        self.inter_pod = InterPodFilter(cluster, pod, profile) if "InterPodAffinity" in profile.filters else None
        has_restrictions = "VolumeRestrictions" in profile.filters and bool(pod.spec.volumes)
        self.restrictions = RestrictionsFilter(cluster, pod, profile.version) if has_restrictions else None

    def reject(self, info: NodeInfo) -> Verdict | None:
        """The first plugin that rejects the node; the ones after it are not asked."""
        for plugin in self.profile.filters:
            rejection = self._run_plugin(plugin, info)
            if rejection is not None:
                return Verdict(plugin, rejection.reasons, rejection.unresolvable)
        return None

    def remove_pod(self, placed_pod: Pod, info: NodeInfo) -> None:
        info.remove(placed_pod)
        for counts in (self.spread, self.inter_pod):
            if counts is not None:
                counts.remove_pod(placed_pod, info.node)
        if self.restrictions is not None:
            self.restrictions.remove_pod(placed_pod)

    def add_pod(self, placed_pod: Pod, info: NodeInfo) -> None:
        info.add(placed_pod)
        for counts in (self.spread, self.inter_pod):
            if counts is not None:
                counts.add_pod(placed_pod, info.node)
        if self.restrictions is not None:
            self.restrictions.add_pod(placed_pod)

    def copy(self) -> Filters:
        copy = Filters.__new__(Filters)
        copy.cluster, copy.pod, copy.profile = self.cluster, self.pod, self.profile
        copy.requests_of = self.requests_of
        copy.spread = self.spread.copy() if self.spread is not None else None
        copy.inter_pod = self.inter_pod.copy() if self.inter_pod is not None else None
        copy.restrictions = self.restrictions.copy() if self.restrictions is not None else None
        return copy

    def _run_plugin(self, plugin: str, info: NodeInfo) -> Rejection | None:
        pod, node, profile = self.pod, info.node, self.profile
        match plugin:
            case "NodeUnschedulable":
                return taints.reject_unschedulable(pod, node)
            case "NodeName":
                return node_affinity.reject_other_name(pod, node)
            case "TaintToleration":
                return taints.reject_tainted(pod, node, names_taint=profile.version.taint_named_in_reason)
            case "NodeAffinity":
                return node_affinity.reject(pod, node, profile.added_affinity)
            case "NodePorts":
                if profile.version.sidecars_hold_ports:
                    return ports.reject(pod, info.used_ports)
                return ports.reject_without_sidecars(pod, info.used_container_ports)
            case "NodeResourcesFit":
                rejection = fit.reject(pod, info, profile.fit, self.requests_of)
                return rejection if profile.version.too_small_is_final else fit.make_resolvable(rejection)
            case "VolumeRestrictions":
                return self.restrictions.reject(info) if self.restrictions is not None else None
            case "NodeVolumeLimits":
                return volume_limits.reject(self.cluster, pod, info, profile.version) if pod.spec.volumes else None
            case "VolumeBinding":
                return volume_binding.reject(self.cluster, pod, node) if pod.spec.volumes else None
            case "VolumeZone":
                return volume_zone.reject(self.cluster, pod, node) if pod.spec.volumes else None
            case "PodTopologySpread":
                assert self.spread is not None, "counted where the profile has it"
                return self.spread.reject(node)
            case "InterPodAffinity":
                assert self.inter_pod is not None, "counted where the profile has it"
                return self.inter_pod.reject(node)
        raise AssertionError(f"the profile names a filter nobody wrote: {plugin}")
