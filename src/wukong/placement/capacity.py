"""Spot or on-demand: read from a node's labels, in every cloud's own words.

Used by fleet.py and whoever must keep off spot nodes (SPOT_LABELS). Our own label wins, then the others in this order.
"""

from __future__ import annotations

from collections.abc import Mapping

OWN_LABEL = "node.kubernetes.io/capacity"
_SPOT_VALUES: dict[str, tuple[str, ...]] = {  # label → values, in lower case, that mean spot
    OWN_LABEL: ("spot",),
    "karpenter.sh/capacity-type": ("spot",),
    "eks.amazonaws.com/capacityType": ("spot",),
    "cloud.google.com/gke-spot": ("true",),
    "cloud.google.com/gke-preemptible": ("true",),
    "cloud.google.com/gke-provisioning": ("spot", "preemptible"),
    "kubernetes.azure.com/scalesetpriority": ("spot",),
    "oci.oraclecloud.com/oke-is-preemptible": ("true",),
    "node.kubernetes.io/lifecycle": ("spot",),
    "spotinst.io/node-lifecycle": ("spot",),
    "scheduling.cast.ai/spot": ("true",),
}
_ON_DEMAND_VALUES: dict[str, tuple[str, ...]] = {
    OWN_LABEL: ("on-demand",),
    "karpenter.sh/capacity-type": ("on-demand", "reserved"),
    "eks.amazonaws.com/capacityType": ("on_demand",),
    "cloud.google.com/gke-provisioning": ("standard",),
    "spotinst.io/node-lifecycle": ("od",),
}
# label → the values that make a node a spot node, as clouds write them: for affinity terms.
SPOT_LABELS: dict[str, tuple[str, ...]] = {
    label: ("SPOT",) if label == "eks.amazonaws.com/capacityType" else values for label, values in _SPOT_VALUES.items()
}
# Taints that clouds put on spot nodes by themselves: without a toleration no pod gets there.
SPOT_TAINTS: tuple[tuple[str, str, str], ...] = (("kubernetes.azure.com/scalesetpriority", "spot", "NoSchedule"),)


def is_spot(labels: Mapping[str, str]) -> bool:
    """Whether these labels make a node a spot node. Without any of them it is on-demand."""
    for label, values in _SPOT_VALUES.items():
        value = labels.get(label, "").lower()
        if value in values:
            return True
        if value in _ON_DEMAND_VALUES.get(label, ()):
            return False
    return False
