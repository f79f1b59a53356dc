"""`wukong spot plan NODE`: where the pods of nodes would go if these got notice now: by the engine, on a copy."""

from __future__ import annotations

import asyncio
import time

import click

from wukong.api.core import Node
from wukong.api.kinds import HORIZONTAL_POD_AUTOSCALERS, KINDS, MOVES, RESOURCE_QUOTAS
from wukong.api.objects import Objects
from wukong.api.resources import Key
from wukong.cli.inputs import options
from wukong.cli.inputs.machine_source import read_machines
from wukong.cli.inputs.source import Source, read_source
from wukong.cli.views.console import note, show, show_document
from wukong.cli.views.departures import build_plan_document, build_plan_view
from wukong.controllers.spot.plan import plan_departure
from wukong.errors import InputError, nearest
from wukong.state import State
from wukong.state.controller import Watch

KINDS_PLANNED_BY = tuple(
    {
        kind.resource: Watch(kind.resource, optional=not kind.is_built_in)
        for kind in (
            *KINDS.list_deciding(),
            *map(KINDS.of_resource, (HORIZONTAL_POD_AUTOSCALERS, RESOURCE_QUOTAS, MOVES)),
        )
        if kind is not None
    }.values()
)
UNSAFE = 1


@click.command("plan")
@click.argument("nodes", nargs=-1, required=True, metavar="NODE...")
@options.snapshot
@options.kubeconfig
@options.context
@options.output
def command(
    nodes: tuple[str, ...], snapshot: str | None, kubeconfig: str, context: str, output: str | None
) -> int | None:
    """Say where the pods of nodes would go if these got notice now.

    Who is replaced first, who is evicted, who would fit nowhere or at whose cost, and who goes with the node. Nothing
    is changed. Ends with 1 if a pod has nowhere to go.

    \b
    Example:
      wukong spot plan spot-1 spot-2
      wukong spot plan spot-1 -s cluster.json -o json
    """
    source = Source(snapshot, kubeconfig, context)
    if snapshot is not None:
        state = build_state(read_source(source).objects)
        note("autoscalers, quotas and Moves are not read from a snapshot; planned as if there were none.")
    else:
        state = asyncio.run(read_machines(source, "", KINDS_PLANNED_BY))
    names = list(dict.fromkeys(nodes))
    known = sorted(key.name for key in state.of(Node))
    if missing := [name for name in names if name not in known]:
        raise InputError(*(f"{source.place}: no node {name} there.{nearest(name, known)}" for name in missing))
    doomed = [node for name in names if (node := state.get(Node, Key("", name))) is not None]
    moves = plan_departure(doomed, state, time.time())
    if output in ("json", "yaml"):
        show_document(build_plan_document(names, moves), output)
    else:
        show(*build_plan_view(names, moves, is_wide=output == "wide"))
    return None if all(move.is_safe for move in moves) else UNSAFE


def build_state(objects: Objects) -> State:
    """A mirror of what was read."""
    state = State()
    for kind in KINDS:
        if items := objects.of(kind.group_kind):
            state.replace(kind.group_kind, items)
    return state
