"""Our scheduler as a component: it binds the pods that name it, and leaves all others to kube-scheduler.

It decides by the engine and by what the extender would answer, in the same process: the options by which policies are
judged are those of component extender. In an embedded cluster it runs beside kube-scheduler, too.
"""

from __future__ import annotations

from collections.abc import Callable

from wukong.api.kinds import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS, WUKONGS
from wukong.app.component import Component, Context, SchedulerExtension
from wukong.app.components.extender import EXTENDER
from wukong.app.components.extender.component import POLICIES, build_extensions
from wukong.app.components.scheduler.install import build_manifests
from wukong.app.components.scheduler.options import SchedulerOptions, find_problems, name_lease, read_profiles
from wukong.app.components.usage import USAGE
from wukong.app.components.wukongs import WUKONG_SETTINGS
from wukong.app.extensions import chain
from wukong.app.permissions import Permission
from wukong.controllers.scheduler.controller import READS, Result, Scheduler
from wukong.errors import InputError
from wukong.state.controller import Controller

NAME = "wukong-scheduler"  # as a controller, and as a process of an embedded cluster
WORKERS = 40  # bindings under way; there are 64 connections, and each kind that is watched has one

BOUND_KINDS = (PERSISTENT_VOLUMES, PERSISTENT_VOLUME_CLAIMS)  # to each other, where a claim waits for its pod's node
WRITES = (PODS, *BOUND_KINDS)


def permissions_of(options: SchedulerOptions) -> tuple[Permission, ...]:
    """A binding that is answered by a conflict is looked up, so pods are read one by one, too."""
    return (
        *(Permission(kind.group, kind.plural, ("list", "watch")) for kind in READS if kind not in WRITES),
        *(Permission(kind.group, kind.plural, ("list", "watch")) for kind in (*POLICIES, WUKONGS)),
        Permission("", "pods", ("list", "watch", "get", "delete")),
        Permission("", "pods/binding", ("create",)),
        Permission("", "pods/status", ("patch",)),
        *(Permission(kind.group, kind.plural, ("list", "watch", "patch")) for kind in BOUND_KINDS),
        Permission("events.k8s.io", "events", ("create", "patch")),
    )


def build_controllers(options: SchedulerOptions, context: Context) -> tuple[Controller, ...]:
    if problems := list(find_problems(options, lambda field: field)):
        raise InputError(*problems)
    profiles = read_profiles(options)
    extensions = context.extensions or _build_own_extensions(context)

    def build(record_result: Callable[[Result], None] = lambda result: None) -> Scheduler:
        return Scheduler(
            options.scheduler_name,
            profiles=profiles,
            name=NAME,
            ties=context.ties,
            extension=chain(extensions),
            extended_by=[kind for extension in extensions for kind in extension.kinds],
            refuses_unmodelled=True,
            record_result=record_result,
        )

    if context.metrics is None:
        return (build(),)
    from wukong.app.components.scheduler.measured_scheduler import MeasuredScheduler  # brings Prometheus

    return (MeasuredScheduler(build, context.metrics, context.clock),)


def _build_own_extensions(context: Context) -> tuple[SchedulerExtension, ...]:
    """The extender's judgement, where no extender is in the same process."""
    return build_extensions(context.options_of(EXTENDER), context)


SCHEDULER = Component(
    name="scheduler",
    help=(
        "binds the pods whose schedulerName it is told: as kube-scheduler does, and by PlacementPolicy, rules, prices "
        "and real usage as the extender. Every node is considered. What it does not model it leaves alone, and says so."
    ),
    options=SchedulerOptions,
    find_problems=find_problems,
    permissions_of=permissions_of,
    build_controllers=build_controllers,
    build_manifests=build_manifests,
    needs=(USAGE, WUKONG_SETTINGS),
    takes_extensions=True,
    process=NAME,
    workers=WORKERS,
    name_lease=name_lease,
)
