"""The policy controllers as a component: options, what they may do, and how they are made."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from wukong.api.kinds import (
    DEPLOYMENTS,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    PRIORITY_CLASSES,
    REPLICA_SETS,
    STATEFUL_SETS,
)
from wukong.api.placement import GROUP
from wukong.api.policy_parts import HIGHEST_PRIORITY
from wukong.app.component import Component, Context
from wukong.app.permissions import Permission
from wukong.controllers.policy.budgets import PolicyBudgets
from wukong.controllers.policy.controller import Policy
from wukong.controllers.policy.priority_classes import HIGHEST, PolicyPriorityClasses
from wukong.controllers.policy.splits import PAUSE_SECONDS, PolicySplits
from wukong.state.controller import Controller

READS = (
    PODS,
    NAMESPACES,
    NODES,
    DEPLOYMENTS,
    REPLICA_SETS,
    STATEFUL_SETS,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
)


class PolicyOptions(msgspec.Struct, frozen=True, rename="camel"):
    split_pause_seconds: Annotated[
        float,
        Meta(description="Least time between the making of a pod and an eviction for its share.", ge=0, le=86_400),
    ] = PAUSE_SECONDS
    max_priority: Annotated[
        int,
        Meta(
            description="The highest for which a policy of a namespace has a PriorityClass made.",
            ge=0,
            le=HIGHEST_PRIORITY,
            extra={"flag": "--policy-max-priority"},
        ),
    ] = HIGHEST


def permissions_of(options: PolicyOptions) -> tuple[Permission, ...]:
    return (
        Permission(GROUP, "placementpolicies", ("list", "watch")),
        Permission(GROUP, "clusterplacementpolicies", ("list", "watch")),
        Permission(GROUP, "placementpolicies/status", ("patch",)),
        Permission(GROUP, "clusterplacementpolicies/status", ("patch",)),
        *(Permission(resource.group, resource.plural, ("list", "watch")) for resource in READS),
        *(
            Permission(resource.group, resource.plural, ("list", "watch", "create", "patch", "delete"))
            for resource in (POD_DISRUPTION_BUDGETS, PRIORITY_CLASSES)
        ),
        Permission("", "pods/eviction", ("create",)),
        Permission("events.k8s.io", "events", ("create", "patch")),
    )


def build_controllers(options: PolicyOptions, context: Context) -> tuple[Controller, ...]:
    rules = context.rules
    splits = PolicySplits(rules, options.split_pause_seconds)
    highest = options.max_priority
    return Policy(rules, highest), PolicyBudgets(rules), PolicyPriorityClasses(rules, highest), splits


POLICY = Component(
    name="policy",
    help=(
        "says on every PlacementPolicy and ClusterPlacementPolicy whether it is accepted, and if not, why: in its "
        "condition Accepted. Keeps the budgets and PriorityClasses that they ask for, and puts the shares of spot and "
        "on-demand right. Needs the kinds: wukong manifests crds."
    ),
    options=PolicyOptions,
    permissions_of=permissions_of,
    build_controllers=build_controllers,
)
