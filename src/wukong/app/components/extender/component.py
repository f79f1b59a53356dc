"""The extender as a component: asked by kube-scheduler over HTTP, or by a scheduler of the same process directly."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from wukong.actions import Note
from wukong.api.core import Pod
from wukong.api.kinds import CLUSTER_PLACEMENT_POLICIES, NAMESPACES, NODES, PLACEMENT_POLICIES, PODS, WUKONGS
from wukong.app.component import Component, Context, SchedulerExtension, Server
from wukong.app.components.extender.install import build_manifests
from wukong.app.components.extender.options import (
    ExtenderOptions,
    find_problems,
    latencies_of,
    prices_of,
    settings_of,
)
from wukong.app.components.usage import USAGE
from wukong.app.components.wukongs import WUKONG_SETTINGS
from wukong.app.permissions import Permission
from wukong.controllers.scheduler.choice import Extension
from wukong.engine import Scheduler
from wukong.engine.view import View
from wukong.replies.extender.plugin import DEFAULT_ENTRY, PointFinder, add_extender
from wukong.replies.extender.verbs import Extender
from wukong.state.controller import Watch

POLICIES = (PLACEMENT_POLICIES, CLUSTER_PLACEMENT_POLICIES)
READS = (NODES, PODS, NAMESPACES, *POLICIES, WUKONGS)  # what it decides by


def permissions_of(options: ExtenderOptions) -> tuple[Permission, ...]:
    return (
        *(Permission(resource.group, resource.plural, ("list", "watch")) for resource in READS),
        Permission("events.k8s.io", "events", ("create", "patch")),
    )


def build_extender(
    options: ExtenderOptions, context: Context, node_staleness: Callable[[float], float] = lambda now: 0.0
) -> Extender:
    return Extender(
        context.state,
        settings_of(
            options,
            context.options_of(USAGE).stale_seconds,
            judges_wukong_resources=context.options_of(WUKONG_SETTINGS).is_judged,
        ),
        rules=context.rules,
        prices=prices_of(options),
        latencies=latencies_of(options),
        node_staleness=node_staleness,
    )


def build_servers(options: ExtenderOptions, context: Context) -> tuple[Server, ...]:
    from wukong.app.components.extender.server import ExtenderServer  # brings aiohttp

    return (ExtenderServer(partial(build_extender, options, context), options, context),)


def build_extensions(options: ExtenderOptions, context: Context) -> tuple[SchedulerExtension, ...]:
    """The extender as a plugin of a scheduler in the same process, as kube-scheduler would be configured for it."""
    extender = build_extender(options, context, context.node_staleness)

    def extend(scheduler: Scheduler, pod: Pod, now: float) -> tuple[Scheduler, Callable[[View], tuple[Note, ...]]]:
        extended, plugin = add_extender(scheduler, extender, DEFAULT_ENTRY, now, pod)
        return extended, lambda view: plugin.answer_of(view).filtered.notes

    def announce(pod: Pod) -> None:
        context.on_extender_call(pod.key)

    extension = Extension(extend, PointFinder(extender, DEFAULT_ENTRY).find, announce)
    return (SchedulerExtension(extension, (*POLICIES, WUKONGS)),)


EXTENDER = Component(
    name="extender",
    help=(
        "answers kube-scheduler's /filter, /prioritize and /preempt by PlacementPolicy, and by a pod's Wukong: spot "
        "first, no leaving nodes, floors, usage, prices and rules. Needs the kinds: wukong manifests crds."
    ),
    options=ExtenderOptions,
    find_problems=find_problems,
    permissions_of=permissions_of,
    # Where there are no virtual machines, their kind need not be installed.
    watches=tuple(Watch(resource, optional=resource is WUKONGS) for resource in READS),
    build_servers=build_servers,
    build_extensions=build_extensions,
    build_manifests=build_manifests,
    needs=(USAGE, WUKONG_SETTINGS),
    process="scheduler",  # who asks it
)
