"""NodeUnschedulable: a cordoned node takes only pods that tolerate being unschedulable."""

from __future__ import annotations

from wukong.engine.arrays import Mask, Rows
from wukong.engine.plugin import FilterPart, Load, Plugin, Reason
from wukong.engine.plugins.taint_toleration import is_tolerated
from wukong.engine.refusal_detail import RefusalDetail
from wukong.engine.view import View

REASON = Reason("node(s) were unschedulable")
_TAINT = ("node.kubernetes.io/unschedulable", "", "NoSchedule")


class NodeUnschedulable(Plugin):
    name = "NodeUnschedulable"

    def filter(self, view: View) -> FilterPart | None:
        cordoned = view.snapshot.rows.cordon_mask
        if not cordoned.any() or is_tolerated(_TAINT, view.template.tolerations):
            return None
        return UnschedulableFilter(cordoned)


class UnschedulableFilter(FilterPart):
    def __init__(self, cordoned: Mask) -> None:
        self.cordoned = cordoned

    def failing(self, rows: Rows, load: Load) -> list[tuple[Reason, Mask]]:
        return [(REASON, self.cordoned[rows])]

    def describe(self, rows: list[int]) -> dict[int, list[RefusalDetail]]:
        return {row: [RefusalDetail("cordon", "cordoned")] for row in rows}
