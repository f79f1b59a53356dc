"""`wukong get wk`: Wukongs with all that belongs to them, from a cluster or a snapshot; -w until interrupted.

`wukong get moves`: the Moves of workloads whose pods leave their nodes (get_moves.py).
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter as Tally
from functools import partial

import click

from wukong.api.vm import Wukong
from wukong.cli.inputs import options
from wukong.cli.inputs.machine_source import KINDS_READ, follow_machines, read_machines
from wukong.cli.inputs.namespaces import choose_namespace
from wukong.cli.inputs.source import Source
from wukong.cli.verbs.get_moves import show_moves
from wukong.cli.views.console import Part, note, redraw, show, show_document
from wukong.cli.views.machine_tree import TreeEntry, build_document, build_tree, build_view, list_names
from wukong.cluster import read_objects
from wukong.errors import InputError, nearest
from wukong.state import State

MOVE_WORDS = ("moves", "move")
WORDS = ("wk", "wukong", "wukongs")
OUTPUTS = ("json", "yaml", "name", "wide")
Trees = list[tuple[Wukong, TreeEntry]]


@click.command("get")
@click.argument("kind", metavar="wk|moves")
@click.argument("name", required=False, metavar="[NAME]")
@options.namespace
@options.all_namespaces
@click.option("-w", "--watch", is_flag=True, help="Show it again whenever something changes, until interrupted.")
@options.snapshot
@options.kubeconfig
@options.context
@click.option("-o", "--output", type=click.Choice(OUTPUTS), help="A document, names, or a table that cuts nothing.")
def command(
    kind: str,
    name: str | None,
    namespace: str | None,
    all_namespaces: bool,
    watch: bool,
    snapshot: str | None,
    kubeconfig: str,
    context: str,
    output: str | None,
) -> None:
    """Show Wukongs with all that belongs to them, or Moves.

    A tree for each Wukong, of its virtual machines, instances, pods and nodes: what is ready, which migrations are
    under way, and why something is not where it should be. Of a Move, which workload has more replicas meanwhile
    because its pods leave their nodes.

    \b
    Example:
      wukong get wk -A
      wukong get wk web -n shop -w
      wukong get wk -s cluster.json -o json
      wukong get moves -A
    """
    kind, slash, named = kind.partition("/")
    if kind not in (*WORDS, *MOVE_WORDS):
        raise InputError(f"{kind}: expected wk, the Wukongs, or moves.{nearest(kind, (*WORDS, *MOVE_WORDS))}")
    if slash and name:
        raise click.UsageError(f"Name it once: {kind}/NAME, or {kind} NAME.")
    name = named if slash else name
    if name and all_namespaces:
        raise click.UsageError("A name is one of a namespace: leave out --all-namespaces.")
    if watch and (snapshot is not None or output in ("json", "yaml", "name")):
        raise click.UsageError("--watch shows a table of a live cluster: leave out --snapshot and --output.")
    source = Source(snapshot, kubeconfig, context)
    chosen_namespace = "" if all_namespaces else choose_namespace(namespace, source).name

    if kind in MOVE_WORDS:
        show_moves(source, chosen_namespace, name or "", output, watch=watch)
        return
    if watch:
        asyncio.run(
            follow_machines(source, chosen_namespace, partial(redraw_trees, chosen_namespace, name or "", output))
        )
        return
    state = read_snapshot(source) if snapshot is not None else asyncio.run(read_machines(source, chosen_namespace))
    print_trees(choose_trees(state, chosen_namespace, name or "", source.place), output, chosen_namespace)


def redraw_trees(namespace: str, name: str, output: str | None, state: State) -> None:
    """Show what there is now; that there is none is no reason to stop watching."""
    wukongs = list_wukongs(state, namespace)
    trees = build_trees([wukong for wukong in wukongs if name in ("", wukong.metadata.name)], state)
    redraw(*(build_parts(trees, output, namespace) if trees else ["No Wukong is there."]))


def read_snapshot(source: Source) -> State:
    state, skipped = State(), Tally[str]()
    objects = read_objects(source.snapshot or "", skipped)
    for watch in KINDS_READ:
        state.replace(watch.resource.group_kind, objects.of(watch.resource.group_kind))
    return state


def choose_trees(state: State, namespace: str, name: str, place: str) -> Trees:
    """The Wukongs of a namespace ("" for all), or the one of a name. Raises InputError if that is not there."""
    wukongs = list_wukongs(state, namespace)
    if name:
        names = [wukong.metadata.name for wukong in wukongs]
        wukongs = [wukong for wukong in wukongs if wukong.metadata.name == name]
        if not wukongs:
            raise InputError(f"{place}: no Wukong {namespace}/{name} there.{nearest(name, names)}")
    return build_trees(wukongs, state)


def list_wukongs(state: State, namespace: str) -> list[Wukong]:
    return [wukong for wukong in state.all(Wukong) if namespace in ("", wukong.metadata.namespace)]


def build_trees(wukongs: list[Wukong], state: State) -> Trees:
    now = time.time()
    return [(wukong, build_tree(wukong, state, now)) for wukong in wukongs]


def print_trees(trees: Trees, output: str | None, namespace: str) -> None:
    if output in ("json", "yaml"):
        show_document(build_document(trees), output)
    elif trees:
        show(*build_parts(trees, output, namespace))
    else:
        note(f"no Wukongs{f' in namespace {namespace}' if namespace else ''}.")


def build_parts(trees: Trees, output: str | None, namespace: str) -> list[Part]:
    if output == "name":
        return list(list_names(trees))
    return build_view(trees, all_namespaces=not namespace, is_wide=output == "wide")
