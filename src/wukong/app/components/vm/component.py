"""The vm controllers as a component: options, what they may do, and how they are made."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from wukong.api.kinds import (
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    PRIORITY_CLASSES,
    VIRTUAL_MACHINE_INSTANCE_MIGRATIONS,
    VIRTUAL_MACHINE_INSTANCES,
    VIRTUAL_MACHINES,
    WUKONGS,
)
from wukong.api.policy_parts import HIGHEST_PRIORITY
from wukong.api.resources import Resource
from wukong.app.component import Component, Context
from wukong.app.components.load import LOAD
from wukong.app.components.wukongs import WUKONG_SETTINGS
from wukong.app.install.controller import build_manifests
from wukong.app.permissions import Permission
from wukong.controllers.vm.controller import VirtualMachineController
from wukong.controllers.vm.priority_classes import PriorityClasses
from wukong.controllers.vm.priority_limits import PriorityLimits
from wukong.controllers.vm.restarts import PAUSE_SECONDS
from wukong.placement.vm import VmSettings

READS = (NODES, PODS, NAMESPACES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, POD_DISRUPTION_BUDGETS)


class VmOptions(msgspec.Struct, frozen=True, rename="camel"):
    max_priority: Annotated[
        int, Meta(description="The highest that a Wukong may ask for.", ge=0, le=HIGHEST_PRIORITY)
    ] = PriorityLimits().highest
    priority_namespaces: Annotated[
        tuple[str, ...],
        Meta(
            description="Whose Wukongs may ask for a priority above 0.  [default: all]",
            extra={"metavar": "NAMES", "shows_default": False},
        ),
    ] = ()
    restart_pause_seconds: Annotated[
        float, Meta(description="Least time between the start of a machine and its restart.", ge=0, le=86_400)
    ] = PAUSE_SECONDS


def permissions_of(options: VmOptions) -> tuple[Permission, ...]:
    """Applying an object that is not there asks for two verbs: patch and create."""
    return (
        _permit(WUKONGS, "list", "watch"),
        Permission(WUKONGS.group, f"{WUKONGS.plural}/status", ("patch",)),
        _permit(VIRTUAL_MACHINES, "list", "watch", "create", "patch", "delete"),
        _permit(VIRTUAL_MACHINE_INSTANCES, "list", "watch", "delete"),
        _permit(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, "list", "watch", "create"),
        _permit(PRIORITY_CLASSES, "list", "watch", "create", "patch", "delete"),
        *(_permit(resource, "list", "watch") for resource in READS),
        Permission("events.k8s.io", "events", ("create", "patch")),
    )


def _permit(resource: Resource, *verbs: str) -> Permission:
    return Permission(resource.group, resource.plural, verbs)


def build_controllers(options: VmOptions, context: Context) -> tuple[VirtualMachineController | PriorityClasses, ...]:
    labels = context.options_of(LOAD)
    settings = VmSettings(
        resource_affinity=context.options_of(WUKONG_SETTINGS).resource_affinity,
        usage_prefix=labels.label_prefix,
        free_prefix=labels.free_label_prefix,
    )
    limits = PriorityLimits(highest=options.max_priority, namespaces=options.priority_namespaces)
    controller = VirtualMachineController(context.rules, settings, limits, options.restart_pause_seconds)
    return PriorityClasses(limits), controller


VM = Component(
    name="vm",
    help=(
        "makes KubeVirt VirtualMachines of Wukongs, keeps them as they are asked for, and says on each Wukong how they "
        "fare and what would help. Needs KubeVirt, and the kinds: wukong manifests crds."
    ),
    options=VmOptions,
    permissions_of=permissions_of,
    build_controllers=build_controllers,
    build_manifests=build_manifests,
    needs=(WUKONG_SETTINGS,),
)
