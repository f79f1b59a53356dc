"""`wukong ledger show`: all that is kept of one workload, the oldest record first."""

from __future__ import annotations

import asyncio

import click

from wukong.api.ledger import ReplicaRecord
from wukong.cli.inputs import options
from wukong.cli.inputs.ledger import add_ledger_options, open_to_read, read_object_name
from wukong.cli.views.console import show, show_document
from wukong.cli.views.ledger import build_records_document, build_records_table
from wukong.errors import InputError


@click.command("show")
@click.argument("workload", metavar="KIND/NAME")
@add_ledger_options
@click.option("-n", "--namespace", default="default", show_default=True, metavar="NAME", help="Of the workload.")
@options.output
def command(workload: str, path: str, cluster_name: str, namespace: str, output: str | None) -> None:
    """Show all that is kept of one workload, the oldest record first.

    \b
    Example:
      wukong ledger show deploy/web -n shop --ledger ledger.db
    """
    object_name = read_object_name(workload, namespace)
    records = asyncio.run(read_history(path, cluster_name, object_name))
    if not records:
        raise InputError(f"--ledger {path}: nothing is recorded of {object_name} in cluster {cluster_name}.")
    if output in ("json", "yaml"):
        show_document(build_records_document(records), output)
    else:
        show(build_records_table(records, is_wide=output == "wide"))


async def read_history(path: str, cluster_name: str, object_name: str) -> list[ReplicaRecord]:
    async with open_to_read(path, cluster_name) as ledger:
        return await ledger.list_history(object_name)
