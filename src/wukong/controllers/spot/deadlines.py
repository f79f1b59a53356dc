"""When a pod can wait no longer, and what its policy says of that moment. Pure.

Used by evictions.py. `onDeadline` of a policy: Leave (if nobody says anything) keeps budgets, and the pod goes with its
machine; Delete ends it in good order, its budget or not, while there is time for its grace.
"""

from __future__ import annotations

from wukong.api.core import Pod
from wukong.api.times import parse_time
from wukong.controllers.policy.plans import PolicyMatcher
from wukong.controllers.spot.departure_order import grace_of
from wukong.controllers.spot.records import Record
from wukong.placement.rule import Rules
from wukong.state import State

LAST_SECONDS = 10.0  # beyond a pod's grace: what is not moved by then is evicted


def is_last_moment(pod: Pod, record: Record, now: float) -> bool:
    """Its grace and LAST_SECONDS before the deadline, or the last third of a short notice."""
    deadline = record.deadline_at
    if deadline is None:
        return False
    given = max(0.0, deadline - (parse_time(record.seen) or now))
    return now >= deadline - min(grace_of(pod) + LAST_SECONDS, given / 3)


class DeadlinePolicies:
    """What policies say of pods. A memory that may be lost."""

    def __init__(self, rules: Rules) -> None:
        self.matcher = PolicyMatcher(rules)

    def deletes(self, pod: Pod, state: State) -> bool:
        """Whether this pod is deleted, past its budget, rather than left to go with its machine."""
        plan = self.matcher.find(pod, state)
        return plan.is_enforced and plan.spec is not None and plan.spec.on_deadline == "Delete"
