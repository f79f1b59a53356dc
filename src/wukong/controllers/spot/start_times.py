"""How long the pods of a controller take to start, learnt from those that run: the median. Pure.

Used by departure_order.py, for one decision. A pod whose replacement takes longest must leave first.
"""

from __future__ import annotations

from statistics import median

from wukong.api.core import Pod
from wukong.api.kinds import PODS
from wukong.api.meta import controller_of
from wukong.semantics.start_time import measure_pod_start
from wukong.state import State

MOST_PODS = 50  # of a controller that are looked at: they are alike


class StartTimes:
    def __init__(self, state: State) -> None:
        self._state = state
        self._by_controller: dict[str, float] = {}

    def find(self, pod: Pod) -> float:
        """Seconds from its node to ready that pods like this one took; 0.0 where none says anything."""
        reference = controller_of(pod.metadata)
        if reference is None:
            return measure_pod(pod) or 0.0
        if reference.uid not in self._by_controller:
            keys = sorted(self._state.owners.owned_by(reference.uid, PODS))[:MOST_PODS]
            pods = (self._state.get(Pod, key) for key in keys)
            seconds = [took for it in pods if it is not None and (took := measure_pod(it)) is not None]
            self._by_controller[reference.uid] = median(seconds) if seconds else 0.0
        return self._by_controller[reference.uid]


def measure_pod(pod: Pod) -> float | None:
    """Seconds that this pod took; None if nobody knows. In an embedded cluster the mirror keeps the times."""
    measured = pod.status.start_seconds
    return measured if measured is not None else measure_pod_start(pod.status.conditions)
