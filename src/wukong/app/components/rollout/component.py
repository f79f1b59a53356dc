"""The rollout controller as a component: what it may do, and how it is made."""

from __future__ import annotations

from wukong.api.kinds import POD_DISRUPTION_BUDGETS, PODS, REPLICA_SETS, ROLLOUTS, SERVICES
from wukong.api.resources import Resource
from wukong.app.component import Component, Context, NoOptions
from wukong.app.install.controller import build_manifests
from wukong.app.permissions import Permission
from wukong.controllers.rollout.controller import RolloutController


def permissions_of(options: NoOptions) -> tuple[Permission, ...]:
    return (
        _permit(ROLLOUTS, "list", "watch"),
        Permission(ROLLOUTS.group, f"{ROLLOUTS.plural}/status", ("patch",)),
        # The API server lets only those block the deletion of an owner who may set its finalizers.
        Permission(ROLLOUTS.group, f"{ROLLOUTS.plural}/finalizers", ("update",)),
        _permit(REPLICA_SETS, "list", "watch", "create", "patch", "delete"),
        Permission(REPLICA_SETS.group, f"{REPLICA_SETS.plural}/scale", ("patch",)),
        _permit(SERVICES, "list", "watch", "patch"),
        _permit(PODS, "list", "watch", "patch", "delete"),
        _permit(POD_DISRUPTION_BUDGETS, "list", "watch"),
        Permission("events.k8s.io", "events", ("create", "patch")),
    )


def _permit(resource: Resource, *verbs: str) -> Permission:
    return Permission(resource.group, resource.plural, verbs)


def build_controllers(options: NoOptions, context: Context) -> tuple[RolloutController, ...]:
    return (RolloutController(),)


ROLLOUT = Component(
    name="rollout",
    help=(
        "makes a ReplicaSet of each version of a Rollout, replaces versions blue/green or as a canary, keeps them "
        "apart on the nodes where that is asked for, and switches Services. Needs the kind: wukong manifests crds."
    ),
    options=NoOptions,
    permissions_of=permissions_of,
    build_controllers=build_controllers,
    build_manifests=build_manifests,
)
