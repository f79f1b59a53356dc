"""The load controller as a component: its options, what it may do, and how it is made."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from wukong.api.kinds import PODS
from wukong.app.component import Component, Context
from wukong.app.components.usage import USAGE
from wukong.app.permissions import Permission
from wukong.controllers.load.controller import Load
from wukong.controllers.load.floor_demand import ASKING
from wukong.controllers.load.free_labels import FreeSettings
from wukong.controllers.load.usage_labels import Settings


class LoadOptions(msgspec.Struct, frozen=True, rename="camel"):
    label_prefix: Annotated[str, Meta(description="Of the usage labels on nodes.")] = Settings().prefix
    label_step: Annotated[int, Meta(description="Percent.", ge=1, le=50)] = Settings().step
    free_labels: Annotated[
        bool, Meta(description="Keep no labels of free resources: then pods and policies need not be read.")
    ] = True
    free_label_prefix: Annotated[str, Meta(description="Of the labels of free resources.")] = FreeSettings().prefix
    quiet_seconds: Annotated[float, Meta(description="Least time between changes.", ge=0, le=86_400)] = (
        Settings().quiet_seconds
    )


def permissions_of(options: LoadOptions) -> tuple[Permission, ...]:
    read = (PODS, *ASKING) if options.free_labels else ()
    return (
        Permission("", "nodes", ("list", "watch", "patch")),
        *(Permission(resource.group, resource.plural, ("list", "watch")) for resource in read),
    )


def build_controllers(options: LoadOptions, context: Context) -> tuple[Load, ...]:
    settings = Settings(
        prefix=options.label_prefix,
        step=options.label_step,
        quiet_seconds=options.quiet_seconds,
        stale_seconds=context.options_of(USAGE).stale_seconds,
    )
    free = FreeSettings(options.free_label_prefix, options.quiet_seconds) if options.free_labels else None
    return (Load(settings, free),)


LOAD = Component(
    name="load",
    help=(
        "keeps integer labels usage.novasphere.dev/cpu, memory and storage (percent in use) on every node, so that "
        "plain node affinity can prefer quiet nodes, and free.novasphere.dev/… for the floors that policies and "
        "Wukongs ask for. Stale labels are removed."
    ),
    options=LoadOptions,
    permissions_of=permissions_of,
    build_controllers=build_controllers,
    needs=(USAGE,),
)
