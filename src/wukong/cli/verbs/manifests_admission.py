"""`wukong manifests admission`: the admission webhooks, to apply. It talks to no cluster and makes no keys."""

from __future__ import annotations

import click

from wukong.app.component_choice import choose_components, split_names
from wukong.app.components.admission.install import AdmissionInstallation, build_manifests, check_installation
from wukong.app.install.installation import NAMESPACE
from wukong.app.install.text import as_yaml
from wukong.cli.views.console import note
from wukong.cluster import read_settings


@click.command("admission")
@click.option("--image", required=True, metavar="IMAGE", help="Of Wukong, as the cluster's nodes pull it.")
@click.option("--namespace", "-n", default=NAMESPACE, show_default=True, help="One of its own; it is made.")
@click.option("--components", default="admission,policy", show_default=True, metavar="NAMES", help="What the pods run.")
@click.option("--replicas", type=click.IntRange(min=1), default=2, show_default=True, help="One leads, and answers.")
@click.option("--memory", default="256Mi", show_default=True, metavar="QUANTITY", help="Requested for each pod.")
@click.option(
    "--memory-limit",
    default="1Gi",
    show_default=True,
    metavar="QUANTITY",
    help="Of each pod: 100Mi, and 4Ki for each pod of the cluster.",
)
@click.option(
    "--certificate-secret",
    default="",
    metavar="NAME",
    help="A Secret with tls.crt and tls.key that you keep.  [default: one that it makes and renews]",
)
@click.option("--ca-file", metavar="FILE", help="Who signs that certificate (PEM); without it you write caBundle.")
@click.option("--api-server-cidrs", default="", metavar="CIDRS", help="From where they may be called.  [default: all]")
def command(
    image: str,
    namespace: str,
    components: str,
    replicas: int,
    memory: str,
    memory_limit: str,
    certificate_secret: str,
    ca_file: str | None,
    api_server_cidrs: str,
) -> None:
    """Print the admission webhooks: workload, rights, configurations.

    Two replicas off spot nodes, spread, with a budget and under Pod Security "restricted"; exactly the rights they use;
    a Service that finds the one that leads; a webhook for new pods and one for Wukong's own kinds. Both are ignored
    when they fail, and never asked about kube-system and their own namespace.

    \b
    Example:
      wukong manifests admission --image wukong:0.1.0 | kubectl apply --server-side -f -
    """
    installation = AdmissionInstallation(
        image=image,
        components=tuple(choose_components(split_names(components), "--components")),
        namespace=namespace,
        replicas=replicas,
        memory=memory,
        memory_limit=memory_limit,
        certificate_secret=certificate_secret,
        ca_bundle=read_settings(ca_file) if ca_file else b"",
        api_server_cidrs=split_names(api_server_cidrs),
    )
    check_installation(installation)
    click.echo(as_yaml(build_manifests(installation)), nl=False)
    if certificate_secret and not ca_file:
        note("the webhooks are not called before somebody writes caBundle into their configurations.")
