"""`wukong manifests admission`: the admission webhooks, to apply. It talks to no cluster and makes no keys."""

from __future__ import annotations

from typing import Unpack

import click

from wukong.app.component_choice import split_names
from wukong.app.components.admission.install import AdmissionInstallation, build_manifests, check_installation
from wukong.app.install.text import as_yaml
from wukong.cli.inputs.installation import InstallationInput, installation_options, read_installation
from wukong.cli.views.console import note
from wukong.cluster import read_settings


@click.command("admission")
@installation_options("admission,policy", "One leads, and answers.")
@click.option(
    "--certificate-secret",
    default="",
    metavar="NAME",
    help="A Secret with tls.crt and tls.key that you keep.  [default: one that it makes and renews]",
)
@click.option("--ca-file", metavar="FILE", help="Who signs that certificate (PEM); without it you write caBundle.")
@click.option("--api-server-cidrs", default="", metavar="CIDRS", help="From where they may be called.  [default: all]")
def command(
    certificate_secret: str,
    ca_file: str | None,
    api_server_cidrs: str,
    **given: Unpack[InstallationInput],
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
        **read_installation(given),
        certificate_secret=certificate_secret,
        ca_bundle=read_settings(ca_file) if ca_file else b"",
        api_server_cidrs=split_names(api_server_cidrs),
    )
    check_installation(installation)
    click.echo(as_yaml(build_manifests(installation)), nl=False)
    if certificate_secret and not ca_file:
        note("the webhooks are not called before somebody writes caBundle into their configurations.")
