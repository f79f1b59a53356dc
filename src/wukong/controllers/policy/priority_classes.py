"""The controller of the PriorityClasses that policies ask for: `placement-1000` for `priority: {value: 1000}`.

../priority_classes.py says when they come and go. A class is there before the policy's pods are given it at admission.
It counts as used while a policy asks for it or names it, and while pods have it: their owner makes them anew from a
template that does not name it, but whoever reads them looks it up. Policies that only observe ask for none.

Classes are of the cluster: somebody who may write policies in one namespace gets none above the limit made for him. A
class that is there already he could name in his pods himself.
"""

from __future__ import annotations

from typing import ClassVar

from wukong.api.core import Pod
from wukong.api.kinds import CLUSTER_PLACEMENT_POLICIES, PLACEMENT_POLICIES, PODS, PRIORITY_CLASSES
from wukong.api.meta import Object
from wukong.api.placement import ClusterPlacementPolicy, PlacementPolicy
from wukong.api.resources import Key
from wukong.controllers.policy.plans import Plans
from wukong.controllers.priority_classes import ClassUserIndex, SharedPriorityClasses, classes_of
from wukong.placement.compile import Policy
from wukong.placement.pods.priority import PREFIX, UNUSED, build_policy_class, policy_class_name_of
from wukong.placement.rule import Rules
from wukong.ports import Document
from wukong.state import State
from wukong.state.controller import Watch

HIGHEST = 1_000_000  # that a policy of a namespace may have made, unless it is told otherwise: as for Wukongs
_POLICIES = (PLACEMENT_POLICIES, CLUSTER_PLACEMENT_POLICIES)


class PolicyClassUsers(ClassUserIndex):
    kinds: ClassVar[frozenset[str]] = frozenset(resource.group_kind for resource in (*_POLICIES, PODS))
    asking: ClassVar[frozenset[str]] = frozenset(resource.group_kind for resource in _POLICIES)

    @staticmethod
    def class_named_by(subject: Object) -> str:
        if isinstance(subject, PlacementPolicy | ClusterPlacementPolicy):
            name = policy_class_name_of(subject.spec) if subject.spec.mode != "Observe" else ""
        elif isinstance(subject, Pod):
            name = subject.spec.priority_class_name
        else:
            return ""
        return name if name.startswith(f"{PREFIX}-") else ""

    def list_policies(self, name: str) -> list[tuple[type[PlacementPolicy] | type[ClusterPlacementPolicy], Key]]:
        """The policies that ask for a class or name it; those of the cluster first."""
        return [(PlacementPolicy if key.namespace else ClusterPlacementPolicy, key) for key in self.list_asking(name)]


def find_limit_problem(policy: Policy, highest: int) -> str:
    """Why no class is made for a policy; "" if one may be. Policies of the cluster are not limited."""
    value = policy.spec.priority.value if policy.spec.priority is not None else None
    if value is None or value <= highest or isinstance(policy, ClusterPlacementPolicy):
        return ""
    return (
        f"$.spec.priority.value: expected at most {highest} in a namespace, got {value}. Lower it, have the operator "
        "of the component policy raise --policy-max-priority, or use a ClusterPlacementPolicy."
    )


class PolicyPriorityClasses(SharedPriorityClasses):
    name = "policy-priority"
    prefix, unused, users = f"{PREFIX}-", UNUSED, PolicyClassUsers
    watches = (
        Watch(PRIORITY_CLASSES),
        *(Watch(resource, classes_of(PolicyClassUsers)) for resource in (*_POLICIES, PODS)),
    )

    def __init__(self, rules: Rules, highest: int = HIGHEST) -> None:
        self.plans, self.highest = Plans(rules), highest

    def build_class(self, name: str, state: State) -> Document | None:
        for struct, key in state.index_of(PolicyClassUsers).list_policies(name):
            policy = state.get(struct, key)
            if not isinstance(policy, struct) or self.plans.plan_of(policy) is None:
                continue  # a sick API server may give a policy of the cluster a namespace
            if find_limit_problem(policy, self.highest):
                continue
            if (document := build_policy_class(policy.spec)) is not None:
                return document
        return None

    def is_used(self, name: str, state: State) -> bool:
        """Also by policies that name it, without a value of which it could be made."""
        return super().is_used(name, state) or bool(state.index_of(PolicyClassUsers).list_asking(name))
