"""`wukong manifests rollout`: the controller of Rollouts, to apply. It talks to no cluster and makes no keys."""

from __future__ import annotations

from typing import Unpack

import click

from wukong.app.components.rollout.install import make_installation
from wukong.app.install.controller import build_manifests, check_installation
from wukong.app.install.text import as_yaml
from wukong.cli.inputs.installation import InstallationInput, installation_options, read_installation


@click.command("rollout")
@installation_options("rollout")
def command(**given: Unpack[InstallationInput]) -> None:
    """Print the controller of Rollouts: kind, workload, rights.

    The kind Rollout; two replicas off spot nodes, spread, with a budget and under Pod Security "restricted"; exactly
    the rights it uses.

    \b
    Example:
      wukong manifests rollout --image wukong:0.1.0 | kubectl apply --server-side -f -
    """
    installation = make_installation(**read_installation(given))
    check_installation(installation)
    click.echo(as_yaml(build_manifests(installation)), nl=False)
