"""`wukong manifests spot`: who moves pods off leaving nodes, to apply. It talks to no cluster and makes no keys."""

from __future__ import annotations

import click

from wukong.app.component_choice import choose_components, split_names
from wukong.app.components.hook.install import add_hook, read_secrets, with_hook
from wukong.app.components.spot.install import make_installation
from wukong.app.install.controller import build_manifests, check_installation
from wukong.app.install.installation import NAMESPACE
from wukong.app.install.text import as_yaml


@click.command("spot")
@click.option("--image", required=True, metavar="IMAGE", help="Of Wukong, as the cluster's nodes pull it.")
@click.option("--namespace", "-n", default=NAMESPACE, show_default=True, help="One of its own; it is made.")
@click.option("--components", default="spot", show_default=True, metavar="NAMES", help="What the pods run.")
@click.option("--replicas", type=click.IntRange(min=1), default=2, show_default=True, help="One leads.")
@click.option("--memory", default="256Mi", show_default=True, metavar="QUANTITY", help="Requested for each pod.")
@click.option(
    "--memory-limit",
    default="1Gi",
    show_default=True,
    metavar="QUANTITY",
    help="Of each pod: 100Mi, and 4Ki for each pod of the cluster.",
)
@click.option("--hook-token", default="", metavar="SECRET", help="Take notices over HTTP; its key token has the token.")
@click.option("--hook-certificate", default="", metavar="SECRET", help="Of type kubernetes.io/tls, for the hook.")
def command(
    image: str,
    namespace: str,
    components: str,
    replicas: int,
    memory: str,
    memory_limit: str,
    hook_token: str,
    hook_certificate: str,
) -> None:
    """Print who moves pods away from leaving nodes: kind, workload, rights.

    The kind Move; two replicas off spot nodes, spread, with a budget and under Pod Security "restricted"; exactly the
    rights it uses. With --hook-token and --hook-certificate also a Service by which other programs say that a node is
    about to go; both Secrets are yours.

    \b
    Example:
      wukong manifests spot --image wukong:0.1.0 | kubectl apply --server-side -f -
    """
    installation = make_installation(
        image=image,
        components=tuple(choose_components(split_names(components), "--components")),
        namespace=namespace,
        replicas=replicas,
        memory=memory,
        memory_limit=memory_limit,
    )
    check_installation(installation)
    secrets = read_secrets(hook_token, hook_certificate)
    if secrets is None:
        documents = build_manifests(installation)
    else:
        installation = with_hook(installation)
        documents = add_hook(build_manifests(installation), installation, secrets)
    click.echo(as_yaml(documents), nl=False)
