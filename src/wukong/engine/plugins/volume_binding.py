"""VolumeBinding, in part: a pod whose claim is bound to a volume with node affinity goes only where the volume can go.

Unbound claims, capacity, attach limits and zones are not modelled; `explain` says so for pods that have them.
"""

from __future__ import annotations

import numpy as np

from wukong.engine.arrays import Mask, Rows
from wukong.engine.plugin import FilterPart, Load, Plugin, Reason
from wukong.engine.plugins.node_affinity import match_node_selector
from wukong.engine.view import View

REASON = Reason("node(s) didn't match PersistentVolume's node affinity")


class VolumeBinding(Plugin):
    name = "VolumeBinding"

    def filter(self, view: View) -> FilterPart | None:
        bound = [view.snapshot.facts.volumes.get((view.template.namespace, claim)) for claim in view.template.claims]
        # A volume's affinity is asked about the node's labels alone; matchFields count as satisfied.
        masks = [match_node_selector(view.snapshot, required, by_labels_only=True) for required in bound if required]
        return VolumeAffinityFilter(~np.logical_and.reduce(masks)) if masks else None


class VolumeAffinityFilter(FilterPart):
    def __init__(self, unreachable: Mask) -> None:
        self.unreachable = unreachable

    def failing(self, rows: Rows, load: Load) -> list[tuple[Reason, Mask]]:
        return [(REASON, self.unreachable[rows])]
