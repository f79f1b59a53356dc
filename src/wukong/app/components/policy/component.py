"""The policy controller as a component: what it may do, and how it is made."""

from __future__ import annotations

from wukong.api.kinds import NAMESPACES, POD_DISRUPTION_BUDGETS, PODS, PRIORITY_CLASSES
from wukong.api.placement import GROUP
from wukong.app.component import Component, Context, NoOptions
from wukong.app.permissions import Permission
from wukong.controllers.policy.budgets import PolicyBudgets
from wukong.controllers.policy.controller import Policy
from wukong.controllers.policy.priority_classes import PolicyPriorityClasses
from wukong.state.controller import Controller


def permissions_of(options: NoOptions) -> tuple[Permission, ...]:
    return (
        Permission(GROUP, "placementpolicies", ("list", "watch")),
        Permission(GROUP, "clusterplacementpolicies", ("list", "watch")),
        Permission(GROUP, "placementpolicies/status", ("patch",)),
        Permission(GROUP, "clusterplacementpolicies/status", ("patch",)),
        *(Permission(resource.group, resource.plural, ("list", "watch")) for resource in (PODS, NAMESPACES)),
        *(
            Permission(resource.group, resource.plural, ("list", "watch", "create", "patch", "delete"))
            for resource in (POD_DISRUPTION_BUDGETS, PRIORITY_CLASSES)
        ),
    )


def build_controllers(options: NoOptions, context: Context) -> tuple[Controller, ...]:
    return Policy(context.rules), PolicyBudgets(context.rules), PolicyPriorityClasses(context.rules)


POLICY = Component(
    name="policy",
    help=(
        "says on every PlacementPolicy and ClusterPlacementPolicy whether it is accepted, and if not, why: in its "
        "condition Accepted. Keeps the budgets and PriorityClasses that they ask for. Needs the kinds: "
        "wukong manifests crds."
    ),
    options=NoOptions,
    permissions_of=permissions_of,
    build_controllers=build_controllers,
)
