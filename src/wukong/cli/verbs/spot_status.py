"""`wukong spot status`: which nodes leave, until when, and whose pods move; -w until interrupted."""

from __future__ import annotations

import asyncio
import time

import click

from wukong.api.kinds import MOVES, NODES, PODS
from wukong.cli.inputs import options
from wukong.cli.inputs.machine_source import follow_machines, read_machines
from wukong.cli.inputs.source import Source
from wukong.cli.views.console import redraw, show, show_document
from wukong.cli.views.departures import build_status_document, build_status_view
from wukong.state import State
from wukong.state.controller import Watch

KINDS_SHOWN = (Watch(NODES), Watch(PODS), Watch(MOVES, optional=True))


@click.command("status")
@click.option("-w", "--watch", is_flag=True, help="Show it again whenever something changes, until interrupted.")
@options.kubeconfig
@options.context
@options.output
def command(watch: bool, kubeconfig: str, context: str, output: str | None) -> None:
    """Show which nodes leave, until when, and whose pods move.

    \b
    Example:
      wukong spot status
      wukong spot status -w
      wukong spot status -o json
    """
    if watch and output in ("json", "yaml"):
        raise click.UsageError("--watch shows a table: leave out --output.")
    source, is_wide = Source(None, kubeconfig, context), output == "wide"
    if watch:

        def show_again(state: State) -> None:
            redraw(*build_status_view(state, time.time(), is_wide=is_wide))

        asyncio.run(follow_machines(source, "", show_again, KINDS_SHOWN))
        return
    state = asyncio.run(read_machines(source, "", KINDS_SHOWN))
    if output in ("json", "yaml"):
        show_document(build_status_document(state), output)
    else:
        show(*build_status_view(state, time.time(), is_wide=is_wide))
