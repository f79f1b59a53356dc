"""The policy controller as a component: what it may do, and how it is made."""

from __future__ import annotations

from wukong.api.placement import GROUP
from wukong.app.component import Component, Context, NoOptions
from wukong.app.permissions import Permission
from wukong.controllers.policy.controller import Policy


def permissions(options: NoOptions) -> tuple[Permission, ...]:
    return (
        Permission(GROUP, "placementpolicies", ("list", "watch")),
        Permission(GROUP, "clusterplacementpolicies", ("list", "watch")),
        Permission(GROUP, "placementpolicies/status", ("patch",)),
        Permission(GROUP, "clusterplacementpolicies/status", ("patch",)),
    )


def build_controllers(options: NoOptions, context: Context) -> tuple[Policy, ...]:
    return (Policy(context.rules),)


POLICY = Component(
    name="policy",
    help=(
        "says on every PlacementPolicy and ClusterPlacementPolicy whether it is accepted, and if not, why: in its "
        "condition Accepted. Needs the kinds: wukong manifests crds."
    ),
    options=NoOptions,
    permissions=permissions,
    build_controllers=build_controllers,
)
