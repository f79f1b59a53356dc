"""How a DaemonSet is brought to its latest revision: node by node, within maxUnavailable, or with maxSurge. Pure.

    no surge:  an old pod goes, and only then is there a new one: at most maxUnavailable nodes are without a daemon
    surge:     a new pod comes beside the old one, which goes when the new one is available: at most maxSurge nodes

Called by sync.py, with how every node stands (node_review.py). Follows kube-controller-manager's daemon/update.go.
Which nodes come first is drawn: the real one takes them as a Go map gives them. Old pods that are not available cost
nothing and are replaced at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from heapq import nsmallest
from typing import NamedTuple

from wukong.embedded.actors.daemon_set.node_review import NodeMark, PodPair
from wukong.embedded.actors.daemon_set.strategy import Limits
from wukong.embedded.actors.marks import Marks
from wukong.embedded.world.objects import Pod

Draw = Callable[[str], float]  # node → number


class Plan(NamedTuple):
    pods_to_delete: list[Pod]
    nodes_to_fill: list[str]  # which get another pod


class RollingUpdate:
    """One step of an update. `pair_of` gives the pods of a node.

    `draw` gives each node its number: where not all may be updated now, the lowest are.
    """

    def __init__(
        self, marks: Marks[str, NodeMark], limits: Limits, pair_of: Callable[[str], PodPair | None], draw: Draw
    ) -> None:
        self.marks, self.limits, self.pair_of, self.draw = marks, limits, pair_of, draw

    def plan(self) -> Plan:
        return self._surge() if self.limits.surge else self._replace()

    def _take_first(self, nodes: Sequence[str], count: int) -> Sequence[str]:
        """As many of these nodes as may be updated now."""
        if count <= 0:
            return ()
        return nodes if len(nodes) <= count else nsmallest(count, nodes, key=self.draw)

    def _replace(self) -> Plan:
        at_once = self.marks.names(NodeMark.OLD_UNAVAILABLE)
        unavailable = self.marks.count(NodeMark.UNAVAILABLE) + len(at_once)
        more = self._take_first(self.marks.names(NodeMark.REPLACEABLE), self.limits.unavailable - unavailable)
        return Plan(self._list_old([*at_once, *more]), [])

    def _surge(self) -> Plan:
        marks = self.marks
        # Available pods on nodes that should have none go when enough others are available.
        spare = marks.count(NodeMark.SERVING) - marks.count(NodeMark.DESIRED)
        leaving = [*marks.names(NodeMark.OLD_LEAVING), *self._take_first(marks.names(NodeMark.LEAVABLE), spare)]
        room = self.limits.surge - marks.count(NodeMark.SURGING)
        surging = self._take_first(marks.names(NodeMark.SURGEABLE), room)
        return Plan(self._list_old(leaving), [*marks.names(NodeMark.SURGE_AT_ONCE), *surging])

    def _list_old(self, nodes: Iterable[str]) -> list[Pod]:
        pairs = map(self.pair_of, nodes)
        return [pair.old for pair in pairs if pair is not None and pair.old is not None]
