"""The load controller as a component: its options, what it may do, and how it is made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import msgspec
from msgspec import Meta

from wukong.api.kinds import PODS
from wukong.app.component import Component, Context, PlaceOf
from wukong.app.components.usage import USAGE
from wukong.app.permissions import Permission
from wukong.controllers.load.controller import Load
from wukong.controllers.load.floor_demand import ASKING
from wukong.controllers.load.free_labels import FreeSettings
from wukong.controllers.load.usage_labels import Settings
from wukong.semantics.label_syntax import is_label_key


class LoadOptions(msgspec.Struct, frozen=True, rename="camel"):
    label_prefix: Annotated[str, Meta(description="Of the usage labels on nodes, for component vm, too.")] = (
        Settings().prefix
    )
    label_step: Annotated[int, Meta(description="Percent.", ge=1, le=50)] = Settings().step
    free_labels: Annotated[
        bool, Meta(description="Keep no labels of free resources: then pods and policies need not be read.")
    ] = True
    free_label_prefix: Annotated[str, Meta(description="The same of what is free.")] = FreeSettings().prefix
    quiet_seconds: Annotated[float, Meta(description="Least time between changes.", ge=0, le=86_400)] = (
        Settings().quiet_seconds
    )


def find_problems(options: LoadOptions, place_of: PlaceOf) -> Iterator[str]:
    for field in ("label_prefix", "free_label_prefix"):
        prefix = getattr(options, field)
        if not is_label_key(f"{prefix}/cpu"):
            yield f"{place_of(field)}: expected a domain such as usage.novasphere.dev, got {prefix!r}."


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
    find_problems=find_problems,
    permissions_of=permissions_of,
    build_controllers=build_controllers,
    needs=(USAGE,),
)
