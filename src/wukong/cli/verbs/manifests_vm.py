"""`wukong manifests vm`: the controller of Wukongs, to apply. It talks to no cluster and makes no keys."""

from __future__ import annotations

from typing import Unpack, get_args

import click

from wukong.app.components.vm.component import VmOptions
from wukong.app.components.vm.install import make_installation
from wukong.app.components.wukongs import WukongOptions
from wukong.app.install.controller import build_manifests, check_installation
from wukong.app.install.text import as_yaml
from wukong.app.options import options_of
from wukong.cli.inputs.installation import InstallationInput, installation_options, read_installation
from wukong.cli.views.console import note
from wukong.placement.vm.settings import ResourceAffinityMode

DEFAULTS, AGREED = VmOptions(), WukongOptions()


@click.command("vm")
@installation_options("vm")
@click.option(
    "--resource-affinity",
    type=click.Choice(get_args(ResourceAffinityMode)),
    default=AGREED.resource_affinity,
    show_default=True,
    help="Who obeys scheduling.resourceAffinity; as `wukong manifests extender` is told.",
)
@click.option(
    "--max-priority", type=click.IntRange(0, 10**9), default=DEFAULTS.max_priority, show_default=True, metavar="N"
)
@click.option("--priority-namespaces", default="", metavar="NAMES", help="Who may ask for more than 0.  [default: all]")
def command(
    resource_affinity: str,
    max_priority: int,
    priority_namespaces: str,
    **given: Unpack[InstallationInput],
) -> None:
    """Print the controller of Wukongs: kind, workload, rights.

    The kind Wukong; two replicas off spot nodes, spread, with a budget and under Pod Security "restricted"; exactly the
    rights it uses. KubeVirt must be installed. With --resource-affinity labels, the default, component load must run,
    too: name both with --components vm,load, or run it elsewhere.

    \b
    Example:
      wukong manifests vm --image wukong:0.1.0 | kubectl apply --server-side -f -
    """
    options = {
        "resource_affinity": resource_affinity,
        "max_priority": str(max_priority),
        "priority_namespaces": priority_namespaces,
    }
    defaults = {
        "resource_affinity": AGREED.resource_affinity,
        "max_priority": str(DEFAULTS.max_priority),
        "priority_namespaces": "",
    }
    flags = {option.field: option.flag for struct in (VmOptions, WukongOptions) for option in options_of(struct)}
    installation = make_installation(
        **read_installation(given),
        options=[f"{flags[field]}={value}" for field, value in options.items() if value != defaults[field]],
    )
    check_installation(installation)
    click.echo(as_yaml(build_manifests(installation)), nl=False)
    names = [component.name for component in installation.components]
    if resource_affinity == "labels" and "load" not in names:
        note("scheduling.resourceAffinity goes by the labels of component load: run it, too.")
