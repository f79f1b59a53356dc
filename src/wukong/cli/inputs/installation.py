"""What every `wukong manifests` of a workload asks for: image, namespace, components, replicas and memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypedDict, TypeVar

import click

from wukong.app.component import Component
from wukong.app.component_choice import choose_components, split_names
from wukong.app.install.installation import NAMESPACE

C = TypeVar("C", bound=Callable[..., Any])


class InstallationInput(TypedDict):
    """As it is given on the command line."""

    image: str
    namespace: str
    components: str
    replicas: int
    memory: str
    memory_limit: str


class InstallationFields(TypedDict):
    """As every Installation takes it."""

    image: str
    namespace: str
    components: tuple[Component[Any], ...]
    replicas: int
    memory: str
    memory_limit: str


def installation_options(
    components: str, replicas_help: str | None = "One leads.", *, replicas: int = 2
) -> Callable[[C], C]:
    """The options behind InstallationInput, for a command; `components` run where nobody names others."""
    options = [
        click.option("--image", required=True, metavar="IMAGE", help="Of Wukong, as the cluster's nodes pull it."),
        click.option("--namespace", "-n", default=NAMESPACE, show_default=True, help="One of its own; it is made."),
        click.option("--components", default=components, show_default=True, metavar="NAMES", help="What the pods run."),
        click.option("--replicas", type=click.IntRange(min=1), default=replicas, show_default=True, help=replicas_help),
        click.option(
            "--memory", default="256Mi", show_default=True, metavar="QUANTITY", help="Requested for each pod."
        ),
        click.option(
            "--memory-limit",
            default="1Gi",
            show_default=True,
            metavar="QUANTITY",
            help="Of each pod: 100Mi, and 4Ki for each pod of the cluster.",
        ),
    ]

    def add(command: C) -> C:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def read_installation(given: InstallationInput) -> InstallationFields:
    """Raises InputError for components that are not there."""
    components = tuple(choose_components(split_names(given["components"]), "--components"))
    return {**given, "components": components}
