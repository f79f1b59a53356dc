"""The load controller as a component: its options, what it may do, and how it is made."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from wukong.app.component import Component, Context
from wukong.app.components.usage import USAGE
from wukong.app.permissions import Permission
from wukong.controllers.load.controller import Load
from wukong.controllers.load.usage_labels import Settings


class LoadOptions(msgspec.Struct, frozen=True, rename="camel"):
    label_prefix: Annotated[str, Meta(description="Of the usage labels on nodes.")] = Settings().prefix
    label_step: Annotated[int, Meta(description="Percent.", ge=1, le=50)] = Settings().step
    quiet_seconds: Annotated[float, Meta(description="Least time between changes.", ge=0, le=86_400)] = (
        Settings().quiet_seconds
    )


def permissions_of(options: LoadOptions) -> tuple[Permission, ...]:
    return (Permission("", "nodes", ("list", "watch", "patch")),)


def build_controllers(options: LoadOptions, context: Context) -> tuple[Load, ...]:
    settings = Settings(
        prefix=options.label_prefix,
        step=options.label_step,
        quiet_seconds=options.quiet_seconds,
        stale_seconds=context.options_of(USAGE).stale_seconds,
    )
    return (Load(settings),)


LOAD = Component(
    name="load",
    help=(
        "keeps integer labels usage.novasphere.dev/cpu, memory and storage (percent in use) on every node, so that "
        "plain node affinity can prefer quiet nodes. Stale labels are removed."
    ),
    options=LoadOptions,
    permissions_of=permissions_of,
    build_controllers=build_controllers,
    needs=(USAGE,),
)
