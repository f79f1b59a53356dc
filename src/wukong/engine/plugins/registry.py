"""All plugins, by name. To add your own: write one file beside these and add its line here."""

from __future__ import annotations

from wukong.engine.plugin import Plugin
from wukong.engine.plugins.balanced_allocation import BalancedAllocation
from wukong.engine.plugins.image_locality import ImageLocality
from wukong.engine.plugins.inter_pod_affinity import InterPodAffinity
from wukong.engine.plugins.node_affinity import NodeAffinity
from wukong.engine.plugins.node_name import NodeName
from wukong.engine.plugins.node_ports import NodePorts
from wukong.engine.plugins.node_resources_fit import NodeResourcesFit
from wukong.engine.plugins.node_unschedulable import NodeUnschedulable
from wukong.engine.plugins.node_volume_limits import NodeVolumeLimits
from wukong.engine.plugins.pod_topology_spread import PodTopologySpread
from wukong.engine.plugins.taint_toleration import TaintToleration
from wukong.engine.plugins.volume_binding import VolumeBinding
from wukong.engine.plugins.volume_restrictions import VolumeRestrictions
from wukong.engine.plugins.volume_zone import VolumeZone

PLUGINS: dict[str, Plugin] = {
    plugin.name: plugin
    for plugin in (
        NodeUnschedulable(),
        NodeName(),
        TaintToleration(),
        NodeAffinity(),
        NodePorts(),
        NodeResourcesFit(),
        VolumeRestrictions(),
        NodeVolumeLimits(),
        VolumeBinding(),
        VolumeZone(),
        PodTopologySpread(),
        InterPodAffinity(),
        BalancedAllocation(),
        ImageLocality(),
    )
}
