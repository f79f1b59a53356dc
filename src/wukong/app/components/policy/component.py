"""The policy controller as a component: what it may do, and how it is made."""

from __future__ import annotations

from wukong.api.kinds import NAMESPACES, POD_DISRUPTION_BUDGETS, PODS
from wukong.api.placement import GROUP
from wukong.app.component import Component, Context, NoOptions
from wukong.app.permissions import Permission
from wukong.controllers.policy.budgets import PolicyBudgets
from wukong.controllers.policy.controller import Policy


def permissions_of(options: NoOptions) -> tuple[Permission, ...]:
    return (
        Permission(GROUP, "placementpolicies", ("list", "watch")),
        Permission(GROUP, "clusterplacementpolicies", ("list", "watch")),
        Permission(GROUP, "placementpolicies/status", ("patch",)),
        Permission(GROUP, "clusterplacementpolicies/status", ("patch",)),
        *(Permission(resource.group, resource.plural, ("list", "watch")) for resource in (PODS, NAMESPACES)),
        Permission(
            POD_DISRUPTION_BUDGETS.group,
            POD_DISRUPTION_BUDGETS.plural,
            ("list", "watch", "create", "patch", "delete"),
        ),
    )


def build_controllers(options: NoOptions, context: Context) -> tuple[Policy | PolicyBudgets, ...]:
    return Policy(context.rules), PolicyBudgets(context.rules)


POLICY = Component(
    name="policy",
    help=(
        "says on every PlacementPolicy and ClusterPlacementPolicy whether it is accepted, and if not, why: in its "
        "condition Accepted. Keeps the budgets of those with disruption. Needs the kinds: wukong manifests crds."
    ),
    options=NoOptions,
    permissions_of=permissions_of,
    build_controllers=build_controllers,
)
