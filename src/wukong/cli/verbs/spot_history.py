"""`wukong spot history`: what became of the notices that nodes got, and of the pods that had to leave."""

from __future__ import annotations

import asyncio

import click

from wukong.api.kinds import NODE_NOTICES
from wukong.api.node_notices import NodeNotice
from wukong.cli.inputs import options
from wukong.cli.inputs.machine_source import read_machines
from wukong.cli.inputs.source import Source
from wukong.cli.views.console import Part, show, show_document
from wukong.cli.views.notice_history import build_history_document, build_history_view, build_pods_view
from wukong.errors import InputError, nearest
from wukong.state.controller import Watch


@click.command("history")
@click.argument("node", default="")
@options.kubeconfig
@options.context
@options.output
def command(node: str, kubeconfig: str, context: str, output: str | None) -> None:
    """Show what became of notices: how pods left, who was lost, who was short.

    The newest is last. With NODE its notices alone, pod by pod. The component spot keeps the last 100 that are finished
    (--kept-notices), also when their nodes are gone.

    \b
    Example:
      wukong spot history
      wukong spot history spot-1
      wukong spot history -o json
    """
    source = Source(None, kubeconfig, context)
    state = asyncio.run(read_machines(source, "", (Watch(NODE_NOTICES),)))
    notices = sorted(state.all(NodeNotice), key=lambda notice: (notice.spec.seen, notice.metadata.name))
    if node:
        names = sorted({notice.spec.node for notice in notices})
        notices = [notice for notice in notices if notice.spec.node == node]
        if not notices:
            raise InputError(f"{source.place}: no notice of a node {node} is known.{nearest(node, names)}")
    if output in ("json", "yaml"):
        show_document(build_history_document(notices), output)
        return
    is_wide = output == "wide"
    if not notices:
        parts: list[Part] = ["No node has had notice."]
    elif node:
        parts = [part for notice in notices for part in build_pods_view(notice, is_wide=is_wide)]
    else:
        parts = build_history_view(notices, is_wide=is_wide)
    show(*parts)
