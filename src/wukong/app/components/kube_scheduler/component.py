"""kube-scheduler in an embedded cluster, extenders included: the controller of component scheduler stands for it.

Every embedded cluster has one, and nobody names it: on a real cluster it is there already.
"""

from __future__ import annotations

from wukong.app.component import Component, Context, NoOptions
from wukong.app.extensions import chain
from wukong.controllers.scheduler.controller import DEFAULT_NAME, Scheduler

PROCESS = "scheduler"


def build_controllers(options: NoOptions, context: Context) -> tuple[Scheduler, ...]:
    extensions = context.extensions
    return (
        Scheduler(
            [DEFAULT_NAME],
            ties=context.ties,
            extension=chain(extensions) if extensions else None,
            extended_by=[kind for extension in extensions for kind in extension.kinds],
            is_stock=True,
        ),
    )


KUBE_SCHEDULER = Component(
    name="kube-scheduler",
    help="places pods as kube-scheduler does, in an embedded cluster.",
    options=NoOptions,
    build_controllers=build_controllers,
    takes_extensions=True,
    process=PROCESS,
    is_named=False,
    is_embedded_only=True,
)
