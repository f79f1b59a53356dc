"""`wukong ledger list`: what is recorded of every workload now."""

from __future__ import annotations

import asyncio

import click

from wukong.cli.inputs import options
from wukong.cli.inputs.ledger import add_ledger_options, read_latest
from wukong.cli.views.console import note, show, show_document
from wukong.cli.views.ledger import build_records_document, build_records_table


@click.command("list")
@add_ledger_options
@click.option("-n", "--namespace", default="", metavar="NAME", help="Only of this one.  [default: all]")
@click.option("--closed", "with_closed", is_flag=True, help="Also workloads that are gone.")
@options.output
def command(path: str, cluster_name: str, namespace: str, with_closed: bool, output: str | None) -> None:
    """List what is recorded of every workload now.

    \b
    Example:
      wukong ledger list --ledger ledger.db
      wukong ledger list --ledger ledger.db --closed -o json
    """
    latest = asyncio.run(read_latest(path, cluster_name))
    records = [
        record for record in latest if namespace in ("", record.namespace) and (with_closed or not record.closed_at)
    ]
    if output in ("json", "yaml"):
        show_document(build_records_document(records), output)
    elif records:
        show(build_records_table(records, is_wide=output == "wide"))
    else:
        note(f"nothing is recorded{f' in namespace {namespace}' if namespace else ''} of cluster {cluster_name}.")
