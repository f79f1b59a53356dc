"""`wukong manifests spot`: who moves pods off leaving nodes, to apply. It talks to no cluster and makes no keys."""

from __future__ import annotations

from typing import Unpack

import click

from wukong.app.components.hook.install import add_hook, read_secrets, with_hook
from wukong.app.components.spot.install import make_installation
from wukong.app.install.controller import build_manifests, check_installation
from wukong.app.install.text import as_yaml
from wukong.cli.inputs.installation import InstallationInput, installation_options, read_installation


@click.command("spot")
@installation_options("spot")
@click.option("--hook-token", default="", metavar="SECRET", help="Take notices over HTTP; its key token has the token.")
@click.option("--hook-certificate", default="", metavar="SECRET", help="Of type kubernetes.io/tls, for the hook.")
def command(hook_token: str, hook_certificate: str, **given: Unpack[InstallationInput]) -> None:
    """Print who moves pods away from leaving nodes: kind, workload, rights.

    The kind Move; two replicas off spot nodes, spread, with a budget and under Pod Security "restricted"; exactly the
    rights it uses. With --hook-token and --hook-certificate also a Service by which other programs say that a node is
    about to go; both Secrets are yours.

    \b
    Example:
      wukong manifests spot --image wukong:0.1.0 | kubectl apply --server-side -f -
    """
    installation = make_installation(**read_installation(given))
    check_installation(installation)
    secrets = read_secrets(hook_token, hook_certificate)
    if secrets is None:
        documents = build_manifests(installation)
    else:
        installation = with_hook(installation)
        documents = add_hook(build_manifests(installation), installation, secrets)
    click.echo(as_yaml(documents), nl=False)
