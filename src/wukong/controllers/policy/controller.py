"""The policy controller: says on every policy whether it is understood, and how what it asks for stands.

Accepted        it is understood; else all that is wrong and where. The API server has refused what a CRD can express;
                what is left (label syntax, names and configs of rules) is found by placement.compile
BudgetConflict  of a policy with `disruption`: its pods have a budget of somebody else's, so they get none of ours
SplitHeld       of one with onDemandBase or spotPercent: owners whose pods evictions do not put right
PriorityLimited of one with a priority above what a policy of a namespace may ask for: no PriorityClass is made for it

It writes nothing but these conditions and observedGeneration; budgets.py and splits.py beside it do what they tell of.
A policy that is not accepted is left out by whoever decides: it never stands in a pod's way. Of one that cannot even be
read, the mirror knows metadata, status and what is wrong: that is told in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from wukong.actions import DONE, Outcome, Patch
from wukong.api.kinds import CLUSTER_PLACEMENT_POLICIES, NAMESPACES, PLACEMENT_POLICIES, POD_DISRUPTION_BUDGETS, PODS
from wukong.api.placement import ClusterPlacementPolicy, PlacementPolicy
from wukong.api.policy_status import Condition
from wukong.api.resources import Key
from wukong.controllers.conditions import Claim, update_conditions
from wukong.controllers.policy.budgets import (
    BudgetPolicies,
    asks_for_budget,
    budgets_beside,
    budgets_in_namespace,
    list_conflicts,
    matters_to_budgets,
)
from wukong.controllers.policy.plans import Plans, get_policy, resource_of
from wukong.controllers.policy.priority_classes import HIGHEST, find_limit_problem
from wukong.controllers.policy.splits import MOST_EVICTIONS
from wukong.placement.compile import Policy as AnyPolicy
from wukong.placement.compile import find_policy_problems
from wukong.placement.rule import Rules
from wukong.ports import PatchBody
from wukong.state import Change, State
from wukong.state.controller import Watch

ACCEPTED, BUDGET_CONFLICT, SPLIT_HELD = "Accepted", "BudgetConflict", "SplitHeld"
PRIORITY_LIMITED = "PriorityLimited"
OURS = (ACCEPTED, BUDGET_CONFLICT, SPLIT_HELD, PRIORITY_LIMITED)
INVALID, UNREADABLE = "Invalid", "Unreadable"
LONGEST_MESSAGE = 32_768  # of a condition, in characters
LOOK_SECONDS = 5.0
MOST_NAMED = 3  # of budgets in the way, of owners that are held


def policies_beside_budget(change: Change, state: State) -> Iterable[Key]:
    is_news = next(iter(budgets_beside(change, state)), None) is not None
    return state.index_of(BudgetPolicies).list_of(change.key.namespace) if is_news else ()


def policies_beside_pod(change: Change, state: State) -> Iterable[Key]:
    if not matters_to_budgets(change, state):
        return ()
    return state.index_of(BudgetPolicies).list_of(change.key.namespace)


def policies_about_namespace(change: Change, state: State) -> Iterable[Key]:
    is_news = next(iter(budgets_in_namespace(change, state)), None) is not None
    return state.index_of(BudgetPolicies).list_of(change.key.name) if is_news else ()


class Policy:
    name = "policy"
    watches = (
        Watch(PLACEMENT_POLICIES),
        Watch(CLUSTER_PLACEMENT_POLICIES),
        Watch(POD_DISRUPTION_BUDGETS, policies_beside_budget, is_secondary=True),
        Watch(PODS, policies_beside_pod, is_secondary=True),
        Watch(NAMESPACES, policies_about_namespace, is_secondary=True),
    )

    def __init__(self, rules: Rules, highest_priority: int = HIGHEST) -> None:
        self.rules, self.plans, self.highest_priority = rules, Plans(rules), highest_priority
        self._looked_at: dict[Key, float] = {}  # may be lost: it saves work

    def copy_memory(self, source: Policy, _: State) -> None:
        self._looked_at = dict(source._looked_at)

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        """Both kinds come here: a key without a namespace is a ClusterPlacementPolicy's."""
        policy = get_policy(key, state)
        if policy is not None:
            if (wait := self._find_wait(policy, key, now)) > 0:
                return Outcome(requeue_after=wait)
            claims = [claim_accepted(find_policy_problems(policy, self.rules))]
            claims += [*self._claim_budget(policy, state), *claim_split(policy), *self._claim_priority(policy)]
            return _report(policy, key, claims, now)
        self.plans.forget(key)
        self._looked_at.pop(key, None)
        struct: type[AnyPolicy] = PlacementPolicy if key.namespace else ClusterPlacementPolicy
        unreadable = state.get_unreadable(struct, key)
        if unreadable is None or not isinstance(unreadable.remains, struct):
            return DONE
        claim = claim_accepted([unreadable.problem], reason=UNREADABLE)
        return _report(unreadable.remains, key, [claim], now)

    def _find_wait(self, policy: AnyPolicy, key: Key, now: float) -> float:
        """Seconds until a policy of the cluster with budgets is due: all its namespaces are looked at for each pod."""
        if key.namespace or not asks_for_budget(policy):
            return 0.0
        left = self._looked_at.get(key, now - LOOK_SECONDS) + LOOK_SECONDS - now
        if 0 < left <= LOOK_SECONDS and policy.status.observed_generation == policy.metadata.generation:
            return left
        self._looked_at[key] = now
        return 0.0

    def _claim_budget(self, policy: AnyPolicy, state: State) -> list[Claim]:
        if not asks_for_budget(policy) or self.plans.plan_of(policy) is None:
            return []
        conflicts = list_conflicts(policy, state, self.plans)
        if not conflicts:
            return [Claim(BUDGET_CONFLICT, False, "NoConflict", "No other budget selects its pods.")]
        text = f"Two budgets over a pod block its evictions, so there is none of ours in:\n{name_some(conflicts)}"
        return [Claim(BUDGET_CONFLICT, True, "PodsHaveBudget", text)]

    def _claim_priority(self, policy: AnyPolicy) -> list[Claim]:
        problem = find_limit_problem(policy, self.highest_priority)
        return [Claim(PRIORITY_LIMITED, True, "AboveLimit", problem)] if problem else []


def claim_split(policy: AnyPolicy) -> list[Claim]:
    """By what splits.py has noted on the status."""
    split = policy.status.split
    if split is None:
        return []
    held = [f"{repair.owner}: {repair.misplaced} on the wrong kind of node." for repair in split.repairs if repair.held]
    if not held:
        return [Claim(SPLIT_HELD, False, "NoneHeld", "Evictions help, or none is needed.")]
    text = (
        f"After {MOST_EVICTIONS} evictions their pods stand as before, so no more are evicted until their version or "
        f"size or this policy changes:\n{name_some(held)}"
    )
    return [Claim(SPLIT_HELD, True, "EvictionsDoNotHelp", text)]


def name_some(lines: list[str]) -> str:
    more = [f"And {len(lines) - MOST_NAMED} more."] if len(lines) > MOST_NAMED else []
    return "\n".join([*lines[:MOST_NAMED], *more])


def _report(policy: AnyPolicy, key: Key, claims: list[Claim], now: float) -> Outcome:
    """Write the conditions on the status, unless they stand there."""
    present, generation = policy.status.conditions, policy.metadata.generation
    claimed = {claim.type for claim in claims}
    kept = [condition for condition in present if condition.type in claimed or condition.type not in OURS]
    # The list is written whole, as read at this version: what others say in it stays.
    conditions = update_conditions(kept, claims, generation, now, LONGEST_MESSAGE)
    if conditions == present and policy.status.observed_generation == generation:
        return DONE
    body = {
        "metadata": {"resourceVersion": policy.metadata.resource_version},
        "status": {"observedGeneration": generation, "conditions": msgspec.to_builtins(conditions)},
    }
    return Outcome((Patch(resource_of(key), key, PatchBody("merge", body), subresource="status"),))


def judge(policy: AnyPolicy, rules: Rules, now: float) -> Condition:
    """The condition Accepted as it should be. Its time is that of the last change from True to False or back."""
    return build_condition(policy, find_policy_problems(policy, rules), now)


def build_condition(policy: AnyPolicy, wrong: list[str], now: float, *, reason: str = INVALID) -> Condition:
    """Accepted, or not accepted for this reason with a line for each problem."""
    present = [condition for condition in policy.status.conditions if condition.type == ACCEPTED]
    claim = claim_accepted(wrong, reason=reason)
    (condition,) = update_conditions(present, [claim], policy.metadata.generation, now, LONGEST_MESSAGE)
    return condition


def claim_accepted(wrong: list[str], *, reason: str = INVALID) -> Claim:
    """A line per problem."""
    text = "\n".join(wrong) or "No problem was found."
    return Claim(ACCEPTED, not wrong, reason if wrong else "Understood", text)
