"""One sync of a DaemonSet: which nodes get a pod, which pods go, and its status. Called by controller.py."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable

from wukong.embedded.actors.daemon_set.daemon_index import Daemons
from wukong.embedded.actors.daemon_set.node_review import NodeMark, NodeReview, PodPair
from wukong.embedded.actors.daemon_set.rolling_update import Draw, Plan, RollingUpdate
from wukong.embedded.actors.daemon_set.strategy import is_rolling, limits_of
from wukong.embedded.world.objects import DaemonSet
from wukong.ports import Document
from wukong.state import State


class DaemonSetSync:
    def __init__(
        self, daemon_set: DaemonSet, revision: str, daemons: Daemons, state: State, now: float, draw: Draw
    ) -> None:
        self.set, self.daemons, self.state, self.now, self.draw = daemon_set, daemons, state, now, draw
        daemons.update_marks(daemon_set, revision, state, now)
        self.marks = daemons.marks

    def plan(self) -> Plan:
        """Create what is missing and delete what is too much; only if there is neither, go on with an update."""
        surplus = [
            pod
            for name in (*self.marks.names(NodeMark.SURPLUS), *self.marks.names(NodeMark.STRANDED))
            for pod in self._review(name).find_surplus()
        ]
        plan = Plan(surplus, list(self.marks.names(NodeMark.LACKING)))
        if plan.pods_to_delete or plan.nodes_to_fill or not is_rolling(self.set):
            return plan
        limits = limits_of(self.set, self.marks.count(NodeMark.DESIRED))
        return RollingUpdate(self.marks, limits, self._find_pair, self.draw).plan()

    def _review(self, name: str) -> NodeReview:
        return self.daemons.review(name, self.set, self.state, self.now)

    def _find_pair(self, name: str) -> PodPair | None:
        return self._review(name).find_pair()

    def build_status(self) -> Document:
        return self._build_status(self.marks.count)

    def build_status_before_taints(self) -> Document:
        """The status as it was before nodes that have a daemon got taints that only keep others away.

        Nobody tells the controller of those (syncNodeUpdate): such a status stays until something else happens.
        """
        more: Tally[NodeMark] = Tally()
        for name in self.marks.names(NodeMark.MISSCHEDULED):
            review = self._review(name)
            if review.eligibility is not None and review.eligibility.may_stay:
                more.update(review.find_marks_of_desired())
                more[NodeMark.MISSCHEDULED] -= 1
        return self._build_status(lambda mark: self.marks.count(mark) + more[mark])

    def _build_status(self, count: Callable[[NodeMark], int]) -> Document:
        desired = count(NodeMark.DESIRED)
        status = {
            "currentNumberScheduled": count(NodeMark.SCHEDULED),
            "numberMisscheduled": count(NodeMark.MISSCHEDULED),
            "desiredNumberScheduled": desired,
            "numberReady": count(NodeMark.READY),
        }
        omitted_if_zero = {
            "observedGeneration": self.set.metadata.generation,
            "updatedNumberScheduled": count(NodeMark.UPDATED),
            "numberAvailable": count(NodeMark.AVAILABLE),
            "numberUnavailable": desired - count(NodeMark.AVAILABLE),
        }
        return {**status, **{name: value for name, value in omitted_if_zero.items() if value}}
