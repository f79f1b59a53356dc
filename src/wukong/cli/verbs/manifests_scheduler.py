"""`wukong manifests scheduler`: our scheduler, to apply. It talks to no cluster and makes no keys."""

from __future__ import annotations

import click

from wukong.api.policy_parts import STRATEGIES
from wukong.app.component_choice import choose_components, split_names
from wukong.app.components.extender.options import NO_STRATEGY, ExtenderOptions
from wukong.app.components.scheduler.install import SchedulerInstallation, build_manifests, check_installation
from wukong.app.components.scheduler.options import OWN_NAME, SchedulerOptions
from wukong.app.install.installation import NAMESPACE
from wukong.app.install.text import as_yaml

DEFAULTS = ExtenderOptions()


@click.command("scheduler")
@click.option("--image", required=True, metavar="IMAGE", help="Of Wukong, as the cluster's nodes pull it.")
@click.option("--namespace", "-n", default=NAMESPACE, show_default=True, help="One of its own; it is made.")
@click.option("--components", default="scheduler", show_default=True, metavar="NAMES", help="What the pods run.")
@click.option("--scheduler-name", default=OWN_NAME, show_default=True, metavar="NAMES", help="Whose pods it binds.")
@click.option("--scheduler-config", default="", metavar="FILE", help="A KubeSchedulerConfiguration, for its profiles.")
@click.option("--replicas", type=click.IntRange(min=1), default=2, show_default=True, help="One leads.")
@click.option("--memory", default="256Mi", show_default=True, metavar="QUANTITY", help="Requested for each pod.")
@click.option(
    "--memory-limit",
    default="1Gi",
    show_default=True,
    metavar="QUANTITY",
    help="Of each pod: 100Mi, and 4Ki for each pod of the cluster.",
)
@click.option(
    "--default-strategy",
    type=click.Choice([*STRATEGIES, NO_STRATEGY]),
    default=DEFAULTS.default_strategy,
    show_default=True,
    help="Where no policy matches and none is named default.",
)
def command(
    image: str,
    namespace: str,
    components: str,
    scheduler_name: str,
    scheduler_config: str,
    replicas: int,
    memory: str,
    memory_limit: str,
    default_strategy: str,
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
        image=image,
        components=tuple(choose_components(split_names(components), "--components")),
        namespace=namespace,
        replicas=replicas,
        memory=memory,
        memory_limit=memory_limit,
        scheduler=SchedulerOptions(split_names(scheduler_name), scheduler_config),
        options=[] if is_usual else [f"--default-strategy={default_strategy}"],
    )
    check_installation(installation)
    click.echo(as_yaml(build_manifests(installation)), nl=False)
