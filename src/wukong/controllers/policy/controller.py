"""The policy controller: says on every policy whether it is understood, and if not, all that is wrong and where.

The API server has refused what a CRD can express; what is left (label syntax, names and configs of rules) is found by
placement.compile and told as the condition Accepted. It writes nothing but that condition and observedGeneration. A
policy that is not accepted is left out by whoever decides: it never stands in a pod's way. Of one that cannot even be
read, the mirror knows metadata, status and what is wrong: that is told in the same way.
"""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from wukong.actions import DONE, Outcome, Patch
from wukong.api.kinds import CLUSTER_PLACEMENT_POLICIES, PLACEMENT_POLICIES
from wukong.api.placement import ClusterPlacementPolicy, Condition, PlacementPolicy
from wukong.api.resources import Key
from wukong.placement.compile import Policy as AnyPolicy
from wukong.placement.compile import find_policy_problems
from wukong.placement.rule import Rules
from wukong.ports import PatchBody
from wukong.state import State
from wukong.state.controller import Watch

ACCEPTED = "Accepted"
INVALID, UNREADABLE = "Invalid", "Unreadable"
LONGEST_MESSAGE = 32_768  # of a condition, in characters


class Policy:
    name = "policy"
    watches = (Watch(PLACEMENT_POLICIES), Watch(CLUSTER_PLACEMENT_POLICIES))

    def __init__(self, rules: Rules) -> None:
        self.rules = rules

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        """Both kinds come here: a key without a namespace is a ClusterPlacementPolicy's."""
        struct: type[AnyPolicy] = PlacementPolicy if key.namespace else ClusterPlacementPolicy
        policy = state.get(struct, key)
        if policy is not None:
            return _report(policy, key, judge(policy, self.rules, now))
        unreadable = state.get_unreadable(struct, key)
        if unreadable is None or not isinstance(unreadable.remains, struct):
            return DONE
        verdict = build_condition(unreadable.remains, [unreadable.problem], now, reason=UNREADABLE)
        return _report(unreadable.remains, key, verdict)


def _report(policy: AnyPolicy, key: Key, verdict: Condition) -> Outcome:
    """Write the verdict on the status, unless it stands there."""
    generation, conditions = policy.metadata.generation, policy.status.conditions
    if verdict in conditions and policy.status.observed_generation == generation:
        return DONE
    # The list is written whole, as read at this version: what others say in it stays.
    conditions = [*(condition for condition in conditions if condition.type != ACCEPTED), verdict]
    body = {
        "metadata": {"resourceVersion": policy.metadata.resource_version},
        "status": {"observedGeneration": generation, "conditions": msgspec.to_builtins(conditions)},
    }
    resource = PLACEMENT_POLICIES if key.namespace else CLUSTER_PLACEMENT_POLICIES
    return Outcome((Patch(resource, key, PatchBody("merge", body), subresource="status"),))


def judge(policy: AnyPolicy, rules: Rules, now: float) -> Condition:
    """The condition Accepted as it should be. Its time is that of the last change from True to False or back."""
    return build_condition(policy, find_policy_problems(policy, rules), now)


def build_condition(policy: AnyPolicy, wrong: list[str], now: float, *, reason: str = INVALID) -> Condition:
    """Accepted, or not accepted for this reason with a line for each problem."""
    status = "False" if wrong else "True"
    present = next((condition for condition in policy.status.conditions if condition.type == ACCEPTED), None)
    return Condition(
        type=ACCEPTED,
        status=status,
        reason=reason if wrong else "Understood",
        message=_format_message(wrong),
        last_transition_time=present.last_transition_time
        if present and present.status == status
        else _format_time(now),
        observed_generation=policy.metadata.generation,
    )


def _format_message(wrong: list[str]) -> str:
    """A line per problem."""
    text = "\n".join(wrong) or "No problem was found."
    return text if len(text) <= LONGEST_MESSAGE else f"{text[: LONGEST_MESSAGE - 1]}…"


def _format_time(now: float) -> str:
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
