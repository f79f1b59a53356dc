"""`wukong get moves`: whose pods leave their nodes, and how far that is. Called by get.py."""

from __future__ import annotations

import asyncio

from wukong.api.kinds import MOVES
from wukong.api.spot import Move
from wukong.cli.inputs.machine_source import follow_machines, read_machines
from wukong.cli.inputs.source import Source
from wukong.cli.views.console import Part, note, redraw, show, show_document
from wukong.cli.views.departures import build_moves_document, build_moves_view
from wukong.errors import InputError, nearest
from wukong.state import State
from wukong.state.controller import Watch

KINDS_SHOWN = (Watch(MOVES),)


def show_moves(source: Source, namespace: str, name: str, output: str | None, *, watch: bool) -> None:
    """Of a namespace ("" for all), all of them or the one of a name. Raises InputError if that is not there."""
    if source.snapshot is not None:
        raise InputError("--snapshot: Moves are read from a cluster only. Leave it out.")
    if watch:

        def show_again(state: State) -> None:
            moves = [move for move in list_moves(state, namespace) if name in ("", move.metadata.name)]
            redraw(*build_parts(moves, output, namespace))

        asyncio.run(follow_machines(source, namespace, show_again, KINDS_SHOWN))
        return
    moves = list_moves(asyncio.run(read_machines(source, namespace, KINDS_SHOWN)), namespace)
    if name:
        names = [move.metadata.name for move in moves]
        moves = [move for move in moves if move.metadata.name == name]
        if not moves:
            raise InputError(f"{source.place}: no Move {namespace}/{name} there.{nearest(name, names)}")
    if output in ("json", "yaml"):
        show_document(build_moves_document(moves), output)
    elif moves:
        show(*build_parts(moves, output, namespace))
    else:
        note(f"no Moves{f' in namespace {namespace}' if namespace else ''}.")


def list_moves(state: State, namespace: str) -> list[Move]:
    return [move for move in state.all(Move) if namespace in ("", move.metadata.namespace)]


def build_parts(moves: list[Move], output: str | None, namespace: str) -> list[Part]:
    if output == "name":
        return [f"move.placement.novasphere.dev/{move.metadata.name}" for move in moves]
    if not moves:
        return ["No Move is there."]
    return [build_moves_view(moves, all_namespaces=not namespace, is_wide=output == "wide")]
