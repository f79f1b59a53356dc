"""In which order pods leave a node: who is missed most, and who takes longest, first. Pure.

Used by evictions.py and by `wukong spot plan`. Priority; then the thinnest margin, which is what its budget allows, or
the ready pods that its controller has besides it; then the slowest start, learnt from the pods that run
(start_times.py); then the longest grace.
"""

from __future__ import annotations

from wukong.api.core import Pod
from wukong.api.kinds import PODS
from wukong.api.meta import controller_of
from wukong.api.resources import key_of
from wukong.controllers.spot.budgets import find_budgets
from wukong.controllers.spot.owners import is_ready
from wukong.controllers.spot.start_times import StartTimes
from wukong.state import State

DEFAULT_GRACE_SECONDS = 30


def sort_by_urgency(pods: list[Pod], state: State) -> list[Pod]:
    """The most urgent first."""
    starts = StartTimes(state)
    return sorted(pods, key=lambda pod: _rank(pod, state, starts))


def grace_of(pod: Pod) -> int:
    grace = pod.spec.termination_grace_period_seconds
    return DEFAULT_GRACE_SECONDS if grace is None else grace


def _rank(pod: Pod, state: State, starts: StartTimes) -> tuple[int, int, float, int, str, str]:
    margin, meta = _find_margin(pod, state), pod.metadata
    return -(pod.spec.priority or 0), margin, -starts.find(pod), -grace_of(pod), meta.namespace, meta.name


def _find_margin(pod: Pod, state: State) -> int:
    if budgets := find_budgets(pod, state):
        return min(budget.status.disruptions_allowed for budget in budgets)
    reference = controller_of(pod.metadata)
    keys = state.owners.owned_by(reference.uid, PODS) if reference is not None else ()
    others = (state.get(Pod, key) for key in keys if key != key_of(pod))
    return sum(other is not None and is_ready(other) and not other.is_terminating for other in others)
