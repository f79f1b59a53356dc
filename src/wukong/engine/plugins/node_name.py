"""NodeName: a pod that names its node fits only there."""

from __future__ import annotations

import numpy as np

from wukong.engine.arrays import Mask, Rows
from wukong.engine.plugin import FilterPart, Load, Plugin, Reason
from wukong.engine.view import View

REASON = Reason("node(s) didn't match the requested node name")


class NodeName(Plugin):
    name = "NodeName"

    def filter(self, view: View) -> FilterPart | None:
        wanted = view.node_name
        if not wanted:
            return None
        return NodeNameFilter(np.array([row.name != wanted for row in view.snapshot.rows], dtype=np.bool_))


class NodeNameFilter(FilterPart):
    def __init__(self, other_nodes: Mask) -> None:
        self.other_nodes = other_nodes

    def failing(self, rows: Rows, load: Load) -> list[tuple[Reason, Mask]]:
        return [(REASON, self.other_nodes[rows])]
