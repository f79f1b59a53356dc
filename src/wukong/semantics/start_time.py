"""How long a pod took from its node to ready, by the times of its conditions. Pure.

Used by forecast/start_times.py for plans, by the mirror, and by controllers/spot for the order of leaving. Times of the
API are whole seconds: a pod that took less says nothing. One that was not ready in between says more than it took.
"""

from __future__ import annotations

from collections.abc import Iterable

from wukong.api.core import PodCondition
from wukong.api.times import parse_time

MOST_SECONDS = 3600.0  # a pod that was not ready for longer has had trouble, and says nothing of how long a start takes


def measure_start(scheduled: float | None, ready: float | None) -> float | None:
    """Seconds between two moments; None where one is not known, or what they say is nonsense."""
    if scheduled is None or ready is None:
        return None
    took = ready - scheduled
    return took if 0 < took <= MOST_SECONDS else None


def measure_pod_start(conditions: Iterable[PodCondition]) -> float | None:
    """Seconds that the pod of these conditions took; None if they do not say."""
    scheduled = ready = None
    for condition in conditions:
        if condition.status == "True" and condition.last_transition_time:
            if condition.type == "PodScheduled":
                scheduled = condition.last_transition_time
            elif condition.type == "Ready":
                ready = condition.last_transition_time
    if scheduled is None or ready is None or scheduled == ready:
        return None
    return measure_start(parse_time(scheduled), parse_time(ready))
