"""The policies of the mirror, compiled, each once for its spec. Used by the controllers of the component policy."""

from __future__ import annotations

from wukong.api.core import Pod
from wukong.api.kinds import CLUSTER_PLACEMENT_POLICIES, NAMESPACES, PLACEMENT_POLICIES
from wukong.api.meta import Object
from wukong.api.placement import ClusterPlacementPolicy, PlacementPolicy, PlacementPolicySpec
from wukong.api.resources import Key, Resource, key_of
from wukong.errors import InputError
from wukong.placement.compile import Plan, Policy, compile_policy
from wukong.placement.matching import NO_POLICY, Policies
from wukong.placement.rule import Rules
from wukong.state import State

_READ = (NAMESPACES.group_kind, PLACEMENT_POLICIES.group_kind, CLUSTER_PLACEMENT_POLICIES.group_kind)


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


class PolicyMatcher:
    """Which policy holds for a pod. Kept current with the mirror; a memory that may be lost."""

    def __init__(self, rules: Rules) -> None:
        self._policies = Policies((), rules, Plan(name=NO_POLICY), {})
        self._versions: tuple[int, ...] = ()
        self._taken_over: dict[tuple[str, Key], object] = {}

    def find(self, pod: Pod, state: State) -> Plan:
        self._take_over(state)
        return self._policies.find(pod).plan

    def _take_over(self, state: State) -> None:
        versions = tuple(state.versions[kind] for kind in _READ)
        if versions == self._versions:
            return
        self._versions = versions
        current = {(kind, key): subject for kind in _READ for key, subject in state.objects.get(kind, {}).items()}
        for kind, key in [place for place in self._taken_over if place not in current]:
            del self._taken_over[kind, key]
            self._put(kind, key, None)
        for place, subject in current.items():
            content = _content_of(subject)
            if place not in self._taken_over or self._taken_over[place] != content:
                self._taken_over[place] = content
                self._put(*place, subject)

    def _put(self, kind: str, key: Key, subject: Object | None) -> None:
        if kind == NAMESPACES.group_kind:
            self._policies.put_namespace(key.name, subject.metadata.labels if subject is not None else None)
        elif isinstance(subject, PlacementPolicy | ClusterPlacementPolicy):
            self._policies.put(subject)
        else:
            self._policies.remove(key, is_of_cluster=kind == CLUSTER_PLACEMENT_POLICIES.group_kind)


def _content_of(subject: Object) -> object:
    """What decides which pods a policy is about, and what it wants; its generation is part of a plan."""
    if isinstance(subject, PlacementPolicy | ClusterPlacementPolicy):
        return subject.metadata.generation, subject.spec
    return subject.metadata.labels
