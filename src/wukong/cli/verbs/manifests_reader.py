"""`wukong manifests reader`: the rights by which snapshot, explain and capacity ask a cluster; none to write."""

from __future__ import annotations

import click

from wukong.app.install.reader import build_reader
from wukong.app.install.text import as_yaml


@click.command("reader")
@click.option("--user", "users", multiple=True, metavar="NAME", help="Bind it to this user; may be repeated.")
@click.option("--group", "groups", multiple=True, metavar="NAME", help="Bind it to this group; may be repeated.")
@click.option(
    "--service-account",
    "accounts",
    multiple=True,
    metavar="NAMESPACE:NAME",
    help="Bind it to this service account; may be repeated.",
)
def command(users: tuple[str, ...], groups: tuple[str, ...], accounts: tuple[str, ...]) -> None:
    """Print the rights of who only asks: a role that reads.

    The ClusterRole wukong-reader: listing what decides placement, on the whole cluster, and nothing else; no secrets,
    no config maps but cluster-autoscaler's status, and no writing. With --user, --group or --service-account it is
    bound to them as well.

    \b
    Example:
      wukong manifests reader --group sre | kubectl apply -f -
    """
    click.echo(as_yaml(build_reader(users, groups, accounts)), nl=False)
