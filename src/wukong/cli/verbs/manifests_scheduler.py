"""`wukong manifests scheduler`: our scheduler, to apply. It talks to no cluster and makes no keys."""

from __future__ import annotations

from typing import Unpack

import click

from wukong.api.policy_parts import STRATEGIES
from wukong.app.component_choice import split_names
from wukong.app.components.extender.options import NO_STRATEGY, ExtenderOptions
from wukong.app.components.scheduler.install import SchedulerInstallation, build_manifests, check_installation
from wukong.app.components.scheduler.options import OWN_NAME, SchedulerOptions
from wukong.app.install.text import as_yaml
from wukong.cli.inputs.installation import InstallationInput, installation_options, read_installation

DEFAULTS = ExtenderOptions()


@click.command("scheduler")
@installation_options("scheduler")
@click.option("--scheduler-name", default=OWN_NAME, show_default=True, metavar="NAMES", help="Whose pods it binds.")
@click.option("--scheduler-config", default="", metavar="FILE", help="A KubeSchedulerConfiguration, for its profiles.")
@click.option(
    "--default-strategy",
    type=click.Choice([*STRATEGIES, NO_STRATEGY]),
    default=DEFAULTS.default_strategy,
    show_default=True,
    help="Where no policy matches and none is named default.",
)
def command(
    scheduler_name: str,
    scheduler_config: str,
    default_strategy: str,
    **given: Unpack[InstallationInput],
) -> None:
    """Print our scheduler: kinds, workload, rights.

    The kinds of policies; two replicas off spot nodes, spread, with a budget and under Pod Security "restricted",
    placed by the cluster's default scheduler; exactly the rights it uses. It binds the pods that name it in their
    spec.schedulerName, and no others.

    \b
    Example:
      wukong manifests scheduler --image wukong:0.1.0 | kubectl apply --server-side -f -
    """
    is_usual = default_strategy == DEFAULTS.default_strategy
    installation = SchedulerInstallation(
        **read_installation(given),
        scheduler=SchedulerOptions(split_names(scheduler_name), scheduler_config),
        options=[] if is_usual else [f"--default-strategy={default_strategy}"],
    )
    check_installation(installation)
    click.echo(as_yaml(build_manifests(installation)), nl=False)
