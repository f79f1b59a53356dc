"""The policies of the mirror, compiled, each once for its spec. Used by the controllers of the component policy."""

from __future__ import annotations

from wukong.api.kinds import CLUSTER_PLACEMENT_POLICIES, PLACEMENT_POLICIES
from wukong.api.placement import ClusterPlacementPolicy, PlacementPolicy, PlacementPolicySpec
from wukong.api.resources import Key, Resource, key_of
from wukong.errors import InputError
from wukong.placement.compile import Plan, Policy, compile_policy
from wukong.placement.rule import Rules
from wukong.state import State


class Plans:
    """What each policy wants. A memory that may be lost: it saves work."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._plans: dict[Key, tuple[PlacementPolicySpec, Plan | None]] = {}

    def plan_of(self, policy: Policy) -> Plan | None:
        """The policy's plan; None where it has a problem: the condition Accepted says which."""
        key, spec = key_of(policy), policy.spec
        known = self._plans.get(key)
        if known is not None and (known[0] is spec or known[0] == spec):
            return known[1]
        try:
            plan = compile_policy(policy, self._rules)
        except InputError:
            plan = None
        self._plans[key] = (spec, plan)
        return plan

    def forget(self, key: Key) -> None:
        self._plans.pop(key, None)


def get_policy(key: Key, state: State) -> Policy | None:
    """The policy of this key: one without a namespace is a ClusterPlacementPolicy's."""
    return state.get(PlacementPolicy, key) if key.namespace else state.get(ClusterPlacementPolicy, key)


def resource_of(key: Key) -> Resource:
    return PLACEMENT_POLICIES if key.namespace else CLUSTER_PLACEMENT_POLICIES
