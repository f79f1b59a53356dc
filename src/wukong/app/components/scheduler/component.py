"""Our scheduler as a component: in an embedded cluster it stands for kube-scheduler itself, extenders included.

Not offered by `wukong run`: on a real cluster pods would have to name it, and its configuration is not read yet.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import msgspec
from msgspec import Meta

from wukong.actions import Note
from wukong.api.core import Pod
from wukong.app.component import Component, Context, SchedulerExtension
from wukong.controllers.scheduler.choice import Extend
from wukong.controllers.scheduler.controller import DEFAULT_NAME, Scheduler
from wukong.engine import Scheduler as Engine
from wukong.engine.view import View

PROCESS = "scheduler"


class SchedulerOptions(msgspec.Struct, frozen=True, rename="camel"):
    scheduler_names: Annotated[tuple[str, ...], Meta(description="The schedulerNames of the pods that it places.")] = (
        DEFAULT_NAME,
    )
    stock: Annotated[bool, Meta(description="Let pods wait as long as with kube-scheduler.")] = True


def build_controllers(options: SchedulerOptions, context: Context) -> tuple[Scheduler, ...]:
    extensions = context.extensions
    return (
        Scheduler(
            options.scheduler_names,
            ties=context.ties,
            extend=chain(extensions) if extensions else None,
            extended_by=[kind for extension in extensions for kind in extension.kinds],
            is_stock=options.stock,
        ),
    )


def chain(extensions: tuple[SchedulerExtension, ...]) -> Extend:
    """All extensions as one: each extends what the one before it made, and the notes of all are told."""

    def extend(engine: Engine, pod: Pod, now: float) -> tuple[Engine, Callable[[View], tuple[Note, ...]]]:
        notes: list[Callable[[View], tuple[Note, ...]]] = []
        for extension in extensions:
            engine, notes_of = extension.extend(engine, pod, now)
            notes.append(notes_of)
        return engine, lambda view: tuple(note for notes_of in notes for note in notes_of(view))

    return extend


SCHEDULER = Component(
    name="scheduler",
    help="places pods as kube-scheduler does.",
    options=SchedulerOptions,
    build_controllers=build_controllers,
    takes_extensions=True,
    process=PROCESS,
    is_embedded_only=True,
)
