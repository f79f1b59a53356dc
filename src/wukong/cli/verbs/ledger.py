"""`wukong ledger`: how many replicas workloads truly had, as the component ledger recorded it."""

from __future__ import annotations

import click

from wukong.cli.command_group import Verb, VerbGroup

PARTS: dict[str, Verb] = {
    "list": Verb("wukong.cli.verbs.ledger_list", "List what is recorded of every workload now."),
    "show": Verb("wukong.cli.verbs.ledger_show", "Show all that is kept of one workload."),
    "verify": Verb("wukong.cli.verbs.ledger_verify", "Compare the ledger with the cluster."),
    "watch": Verb("wukong.cli.verbs.ledger_watch", "Print each record as it comes, until interrupted."),
}


@click.group("ledger", cls=VerbGroup, verbs=PARTS)
def command() -> None:
    """Show how many replicas workloads truly had, and since when."""
