"""`wukong manifests ledger`: who records replicas, to apply. It talks to no cluster and makes no keys."""

from __future__ import annotations

from typing import Unpack

import click

from wukong.app.components.ledger.install import build_ledger_manifests, check_ledger_installation, make_installation
from wukong.app.install.text import as_yaml
from wukong.cli.inputs.installation import InstallationInput, installation_options, read_installation


@click.command("ledger")
@installation_options("ledger", "One: its file is on a volume that one pod mounts.", replicas=1)
@click.option("--storage", default="1Gi", show_default=True, metavar="QUANTITY", help="Of the volume for its file.")
@click.option("--storage-class", default="", metavar="NAME", help="Of the volume.  [default: the cluster's]")
@click.option("--cluster-name", default="default", show_default=True, metavar="NAME", help="Of this cluster's records.")
@click.option(
    "--keep", type=click.IntRange(1, 1_000_000), default=1000, show_default=True, help="Records per workload."
)
def command(storage: str, storage_class: str, cluster_name: str, keep: int, **given: Unpack[InstallationInput]) -> None:
    """Print who records replicas: volume, workload, rights.

    One replica off spot nodes under Pod Security "restricted", which reads Deployments and StatefulSets and nothing
    else; a PersistentVolumeClaim for its file.

    \b
    Example:
      wukong manifests ledger --image wukong:0.1.0 | kubectl apply --server-side -f -
    """
    options = (f"--cluster-name={cluster_name}", f"--keep={keep}")
    fields = read_installation(given)
    installation = make_installation(**fields, storage=storage, storage_class=storage_class, options=options)
    check_ledger_installation(installation)
    click.echo(as_yaml(build_ledger_manifests(installation)), nl=False)
