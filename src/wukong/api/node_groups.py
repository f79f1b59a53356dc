"""Node groups: nodes that are alike and of which a cluster autoscaler adds and removes some. Only data.

Read from files by placement/node_groups/, acted upon by embedded/actors/autoscaler/, and by karpenter/ beside it where
a group is an offering of a NodePool. A NodeRequest is an internal kind: no API server has it. In an embedded cluster it
stands for a machine that the cloud was asked for and that still boots; it is named after its node to be.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import field

from wukong.api.core import Quantities, Taint
from wukong.api.meta import Base, Object

NODE_GROUP_LABEL = "sim.novasphere.dev/node-group"
CLOUD_GROUP = "cloud.novasphere.dev"
BOOT_SECONDS = 60.0  # unless a group says otherwise: from the request until the node is ready


class NodeTemplate(Base):
    """What a new node of a group is like. Allocatable is what capacity says where it says nothing else."""

    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    taints: list[Taint] = []
    capacity: Quantities = {}
    allocatable: Quantities = {}


class NodeGroup(Base, kw_only=True):
    """Between `min` and `max` nodes like the template. Its nodes are those with all of `match_labels`."""

    name: str
    template: NodeTemplate = field(default_factory=NodeTemplate)
    min: int = 0
    max: int
    weight: int = 0  # groups of more weight are asked first, whatever they waste
    boot_seconds: float = BOOT_SECONDS
    price_per_hour: float | None = None  # of one node; None: not known
    match_labels: dict[str, str] = {}  # empty: the label of NODE_GROUP_LABEL with its name
    node_pool: str = ""  # Karpenter's, which may buy such nodes; "": a group of cluster-autoscaler
    pool_limits: Quantities = {}  # of all nodes of that pool together

    @property
    def own_labels(self) -> dict[str, str]:
        """The labels by which its nodes are told from others."""
        return self.match_labels or {NODE_GROUP_LABEL: self.name}

    def has_node(self, labels: Mapping[str, str]) -> bool:
        """Whether a node with these labels is one of its own."""
        return all(labels.get(key) == value for key, value in self.own_labels.items())


class NodeRequest(Object):
    """A node that a group was asked for and that has not come yet. `requested_at`: seconds since the epoch."""

    group: str = ""
    requested_at: float = 0.0


def find_group(groups: Iterable[NodeGroup], labels: Mapping[str, str]) -> NodeGroup | None:
    """The first group that a node with these labels belongs to; None if it is of none."""
    return next((group for group in groups if group.has_node(labels)), None)
