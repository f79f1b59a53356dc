"""The options that several verbs share, spelled and explained once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from wukong.errors import InputError

_F = TypeVar("_F", bound=Callable[..., Any])
Option = Callable[[_F], _F]

OUTPUTS = ("json", "yaml", "wide")

snapshot = click.option(
    "-s",
    "--snapshot",
    metavar="PATH",
    help="The cluster: a file or directory with what `kubectl get -o json|yaml` wrote, gzip or not; - is stdin. "
    "Without it, the cluster of the current context.",
)
kubeconfig = click.option("--kubeconfig", default="", metavar="FILE", help="Instead of $KUBECONFIG or ~/.kube/config.")
context = click.option("--context", default="", metavar="NAME", help="Instead of the kubeconfig's current context.")
namespace = click.option(
    "-n",
    "--namespace",
    metavar="NAME",
    help="Of what is named or written without one.  [default: the context's; default with a snapshot]",
)
all_namespaces = click.option("-A", "--all-namespaces", is_flag=True, help="Look in all namespaces.")
output = click.option(
    "-o", "--output", type=click.Choice(OUTPUTS), help="A document for programs, or a table that leaves nothing out."
)
kubernetes = click.option(
    "--kubernetes", metavar="VERSION", help="Decide like this version of kube-scheduler, such as 1.35 or 1.37."
)
scheduler_config = click.option(
    "--scheduler-config", metavar="FILE", help="Decide by the profile in this KubeSchedulerConfiguration."
)


def manifest(required: bool) -> Option[Any]:
    return click.option(
        "-f",
        "--filename",
        "manifest",
        required=required,
        metavar="FILE",
        help="The pod, or the workload whose template makes the pods; - is stdin.",
    )


def refuse_stdin_twice(**paths: str | None) -> None:
    """Raise InputError if two options are `-`: standard input can be read only once."""
    stdin_options = [f"--{name.replace('_', '-')}" for name, path in paths.items() if path == "-"]
    if len(stdin_options) > 1:
        names = " and ".join(stdin_options)
        raise InputError(f"{names}: only one of them can be standard input. Put the other into a file.")
