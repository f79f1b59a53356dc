"""The spot controllers as a component: what they may do, and how they are made."""

from __future__ import annotations

from wukong.api.kinds import (
    CLUSTER_PLACEMENT_POLICIES,
    DEPLOYMENTS,
    HORIZONTAL_POD_AUTOSCALERS,
    MOVES,
    NAMESPACES,
    NODE_NOTICES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PLACEMENT_POLICIES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    REPLICA_SETS,
    RESOURCE_QUOTAS,
    SERVICES,
    STATEFUL_SETS,
    VIRTUAL_MACHINE_INSTANCES,
)
from wukong.app.component import Component, Context
from wukong.app.components.hook import HOOK
from wukong.app.components.spot.options import SpotOptions
from wukong.app.install.controller import build_manifests
from wukong.app.permissions import Permission
from wukong.controllers.spot.evictions import SpotEvictions
from wukong.controllers.spot.history import SpotHistory
from wukong.controllers.spot.load_balancers import SpotLoadBalancers
from wukong.controllers.spot.moves import SpotMoves
from wukong.controllers.spot.nodes import SpotNodes
from wukong.state.controller import Controller

READS = (
    *(NAMESPACES, STATEFUL_SETS, POD_DISRUPTION_BUDGETS),
    *(PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, VIRTUAL_MACHINE_INSTANCES),
    *(RESOURCE_QUOTAS, SERVICES, PLACEMENT_POLICIES, CLUSTER_PLACEMENT_POLICIES),
)


def permissions_of(options: SpotOptions) -> tuple[Permission, ...]:
    return (
        *(
            Permission(resource.group, resource.plural, ("list", "watch", "patch"))
            for resource in (NODES, PODS, HORIZONTAL_POD_AUTOSCALERS)
        ),
        *(Permission(resource.group, resource.plural, ("list", "watch")) for resource in (DEPLOYMENTS, REPLICA_SETS)),
        *(Permission(owner.group, f"{owner.plural}/scale", ("patch",)) for owner in (DEPLOYMENTS, REPLICA_SETS)),
        *(Permission(resource.group, resource.plural, ("list", "watch")) for resource in READS),
        *(
            Permission(kind.group, kind.plural, ("list", "watch", "create", "patch", "delete"))
            for kind in (MOVES, NODE_NOTICES)
        ),
        *(Permission(kind.group, f"{kind.plural}/status", ("patch",)) for kind in (MOVES, NODE_NOTICES)),
        Permission("", "pods/eviction", ("create",)),
        Permission("", "pods", ("delete",)),  # where a policy says onDeadline: Delete
        Permission("events.k8s.io", "events", ("create", "patch")),
    )


def build_controllers(options: SpotOptions, context: Context) -> tuple[Controller, ...]:
    evictions = SpotEvictions(context.rules)
    history = SpotHistory(options.kept_notices)
    controllers = (SpotNodes(), SpotMoves(), evictions, SpotLoadBalancers(), history)
    if context.metrics is None:
        return controllers
    from wukong.app.components.spot.meter import SpotMeter  # brings Prometheus

    return (*controllers, SpotMeter(context.metrics, context.clock, evictions))


SPOT = Component(
    name="spot",
    help=(
        "moves pods away from nodes that are about to go: replacements first, then the pods, through their budgets, "
        "before the deadline. Needs the kinds: wukong manifests crds."
    ),
    options=SpotOptions,
    permissions_of=permissions_of,
    build_controllers=build_controllers,
    build_manifests=build_manifests,
    needs=(HOOK,),
)
