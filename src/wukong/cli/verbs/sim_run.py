"""`wukong sim run`: plays a scenario, or a change to a snapshot, shows its story and what it expected.

What it reads is in inputs/sim_source.py, how it looks on in views/spectator.py, what it prints in views/story.py; with
--seeds it shows how many stories end how (views/endings.py).
"""

from __future__ import annotations

import os
import shlex
from contextlib import nullcontext
from typing import Any

import click
import msgspec

from wukong.app.embedded import play_scenario
from wukong.app.endings import ending_player, find_endings
from wukong.app.snapshots import make_baseline
from wukong.cli.inputs import options
from wukong.cli.inputs.namespaces import Namespace, choose_namespace
from wukong.cli.inputs.node_groups import add_node_groups, add_node_groups_option
from wukong.cli.inputs.pod_durations import add_duration_options, add_durations, list_arguments
from wukong.cli.inputs.save_file import SaveFile, add_save_option
from wukong.cli.inputs.seeds import read_seeds
from wukong.cli.inputs.sim_cluster import add_cluster_options, play_on_cluster, refuse_without_live
from wukong.cli.inputs.sim_source import add_changes, add_files_option, note_unrest, read_scenario_file, read_start
from wukong.cli.inputs.source import Source
from wukong.cli.main import INTERRUPTED, keep_until_exit
from wukong.cli.views.console import busy, is_terminal, progress, say, show, show_document
from wukong.cli.views.endings import build_document, render_endings
from wukong.cli.views.spectator import LiveSpectator, read_speed
from wukong.cli.views.story import render_story
from wukong.cli.views.trace_file import TraceFile
from wukong.cluster import pause_garbage_collector, place_name
from wukong.embedded.faults import read_types
from wukong.embedded.scenario import Scenario, Story
from wukong.embedded.scenario.expectations import (
    find_differences,
    find_differences_under_faults,
    list_unmet_expectations,
)
from wukong.errors import InputError

NOT_MET = 1


class Inputs(msgspec.Struct, kw_only=True):
    """What is played: a scenario, or changes to a snapshot, or both."""

    scenario: Scenario
    path: str | None  # of its file
    name: str  # of the file, for messages
    source: Source | None  # of the cluster it begins with; None: with the scenario's nodes
    changes: tuple[str, ...]  # manifest files
    seed: int
    files_below: str | None = None  # the folder that its files may be below, besides its own
    durations: dict[str, tuple[str, ...]] = {}  # the options of how long pods take, as they were given
    node_groups: str | None = None  # a file
    namespace: str | None = None  # of changes that name none, as -n says
    context: Source | None = None  # whose namespace that is otherwise

    def choose_namespace(self) -> Namespace:
        return choose_namespace(self.namespace, self.context)


@click.command("run")
@click.argument("scenario", metavar="[SCENARIO]", required=False)
@click.option(
    "-s",
    "--snapshot",
    metavar="PATH",
    help="Begin with this cluster: what `wukong snapshot` or `kubectl get -o json|yaml` wrote; - is stdin. "
    "Without it, -f is played on the cluster of the current context, which is only read.",
)
@click.option(
    "-f", "--filename", "changes", multiple=True, metavar="FILE", help="Manifests to apply, as kubectl would."
)
@options.namespace
@click.option("--seed", type=int, default=0, show_default=True, help="Draws what Kubernetes leaves to chance.")
@click.option("--seeds", metavar="A-B", help="Play each of these seeds, on all cores; tell how many end how.")
@click.option("--speed", metavar="X", help="Watch at X times real time, such as 10x.  [default: as fast as it goes]")
@click.option("--no-view", is_flag=True, help="No live view in the terminal.")
@click.option("-o", "--output", type=click.Choice(["json", "yaml"]), help="The story as a document for programs.")
@click.option("--faults", default="none", metavar="all|none|A,B", help="Types of faults to inject; then it gets calm.")
@click.option("--trace", metavar="FILE", help="Write every action of everybody there, one JSON line each.")
@add_save_option
@add_duration_options
@add_node_groups_option
@add_files_option
@add_cluster_options
def command(
    scenario: str | None,
    snapshot: str | None,
    changes: tuple[str, ...],
    namespace: str | None,
    seed: int,
    seeds: str | None,
    speed: str | None,
    no_view: bool,
    output: str | None,
    faults: str,
    trace: str | None,
    save: str | None,
    start_seconds: tuple[str, ...],
    stop_seconds: tuple[str, ...],
    node_groups: str | None,
    files_below: str | None,
    **place: Any,
) -> int:
    """Play a scenario and tell what became of its workloads.

    SCENARIO is a YAML file; - is stdin. With -s it is played on top of a snapshot of a cluster, and may be left out if
    -f names what to change. Nothing is written to a cluster but with --live, which asks first. The same seed gives the
    same story. Ends with 1 if the story is not as the scenario expects; who expects nothing expects to settle. With
    --faults that is all that is expected.

    On a real cluster chance decides which of two controllers is faster, and here the seed does: --seeds shows which
    endings there are, each with a seed that replays it.

    \b
    Examples:
      wukong sim run examples/sim/deadlock.yaml                 # a rollout that never ends
      wukong sim run examples/sim/drain.yaml --seeds 1-16       # does it always end like this?
      wukong sim run examples/sim/spot-loss.yaml --speed 60x    # watch it
      wukong snapshot -o cluster.json.gz                        # what would this change do to my cluster?
      wukong sim run -s cluster.json.gz -f deployment.yaml
      wukong sim run -f deployment.yaml                         # the same, on the cluster of the current context
      wukong sim run drain.yaml -s cluster.json.gz -o json      # a timeline, on my cluster
    """
    if scenario is None and not changes:
        raise InputError("expected a SCENARIO, or -f with manifests to apply. Try: wukong sim run --help")
    options.refuse_stdin_twice(
        scenario=scenario,
        snapshot=snapshot,
        filename=next((path for path in changes if path == "-"), None),
        node_groups=node_groups,
    )
    spectator = LiveSpectator(read_speed(speed), is_live=output is None and not no_view and is_terminal())
    content = read_scenario_file(scenario, files_below) if scenario is not None else Scenario()
    durations = {"start_seconds": start_seconds, "stop_seconds": stop_seconds}
    source = _choose_source(snapshot, content, changes, place)
    inputs = Inputs(
        scenario=content,
        path=scenario,
        name=place_name(scenario or changes[0]),
        source=source,
        changes=changes,
        seed=seed,
        files_below=files_below,
        durations=durations,
        node_groups=node_groups,
        namespace=namespace,
        context=Source(None, place["kubeconfig"], place["context"]) if place["live"] else source,
    )
    if node_groups is not None and place["live"]:
        raise InputError("--node-groups and --live: a real cluster has an autoscaler of its own. Leave one out.")
    if namespace and not changes:
        raise InputError("--namespace is that of manifests that name none: add them with -f, or leave it out.")
    add_durations(content, durations, lambda: inputs.choose_namespace().name)
    types = read_types(faults)
    has_faults = types or any(entry.fault for entry in inputs.scenario.timeline)
    if has_faults and (place["live"] or inputs.source):
        raise InputError("faults strike a scenario that begins empty. Leave out the cluster, or them.")
    if not place["live"]:
        refuse_without_live(**place)
    if seeds is not None:
        _refuse_for_seeds(speed=speed, trace=trace, live=place["live"], save=save)
        return _show_endings(inputs, read_seeds(seeds), types, faults, output)
    if save is not None and place["live"]:
        raise InputError("--save keeps an embedded cluster. Leave it out with --live, and take a wukong snapshot.")
    save_file = SaveFile(save)
    with TraceFile(trace) as file:
        if place["live"]:
            story = _play_on_cluster(inputs, speed, place)
            file.write_all(story.trace)
        else:
            story = _play_embedded(inputs, spectator, types, file, save_file)
            save_file.write(is_interrupted=story.interrupted)
    find_unmet = find_differences_under_faults if types else find_differences
    unmet = [] if story.interrupted else find_unmet(inputs.scenario.expect, story)
    if inputs.source is not None:
        note_unrest(inputs.source.place, story)
    if output is not None:
        show_document(story.document(), output)
        unmet_expectations = list_unmet_expectations(unmet, [*story.stuck, *story.findings])
        for difference in unmet:
            say(f"expectation not met: {difference}" if difference in unmet_expectations else difference)
    else:
        show(*render_story(story, unmet))
    return INTERRUPTED if story.interrupted else NOT_MET if unmet else 0


def _choose_source(
    snapshot: str | None, scenario: Scenario, changes: tuple[str, ...], place: dict[str, Any]
) -> Source | None:
    """The cluster it begins with: the snapshot, or that of the context for a change that comes without nodes."""
    if place["live"]:
        if snapshot is not None:
            raise InputError("--snapshot and --live: a scenario begins with one cluster or the other. Leave one out.")
        return None
    is_named = bool(place["kubeconfig"] or place["context"])
    if snapshot is not None and is_named:
        raise InputError("--snapshot and --kubeconfig or --context name two clusters. Leave one out.")
    if snapshot is not None or is_named or (changes and not scenario.nodes):
        return Source(snapshot, place["kubeconfig"], place["context"])
    return None


def _refuse_for_seeds(**options: str | bool | None) -> None:
    """--seed does no harm beside --seeds; these would mean nothing."""
    if named := [f"--{name}" for name, value in options.items() if value]:
        raise InputError(f"--seeds plays many stories at once, and {named[0]} is for a single one. Leave one out.")


def _show_endings(inputs: Inputs, seeds: range, types: list[str], faults: str, output: str | None) -> int:
    """Play all seeds and show how they end."""
    scenario, source = inputs.scenario, inputs.source
    start = read_start(source, scenario, inputs.changes, inputs.choose_namespace) if source is not None else None
    if start is None:
        add_changes(scenario, inputs.changes, inputs.choose_namespace)
    add_node_groups(scenario, inputs.node_groups, start)
    try:
        with busy("Letting the cluster come to rest …") if start is not None else nullcontext():
            play = ending_player(scenario, start, types)
        with progress("seeds") as report:
            endings = find_endings(play, seeds, os.cpu_count() or 1, lambda so_far: report(so_far.seeds, len(seeds)))
    except InputError as error:
        raise error.at(inputs.name) from None
    replay = _build_replay(inputs, faults)
    if output is not None:
        show_document(build_document(endings, len(seeds), replay), output)
    else:
        show(*render_endings(endings, len(seeds), replay))
    return INTERRUPTED if endings.was_interrupted else NOT_MET if endings.has_unmet else 0


def _build_replay(inputs: Inputs, faults: str) -> str:
    """The command that plays one seed again, which is to be added."""
    arguments = [inputs.path] if inputs.path is not None else []
    if inputs.source is not None:
        snapshot, kubeconfig, context = inputs.source
        arguments += ["-s", snapshot] if snapshot is not None else []
        arguments += ["--kubeconfig", kubeconfig] if kubeconfig else []
        arguments += ["--context", context] if context else []
    arguments += [argument for path in inputs.changes for argument in ("-f", path)]
    arguments += ["-n", inputs.namespace] if inputs.namespace else []
    arguments += ["--faults", faults] if faults != "none" else []
    arguments += list_arguments(inputs.durations)
    arguments += ["--files-below", inputs.files_below] if inputs.files_below else []
    arguments += ["--node-groups", inputs.node_groups] if inputs.node_groups else []
    return f"wukong sim run {shlex.join(arguments)} --seed"


def _play_embedded(
    inputs: Inputs, spectator: LiveSpectator, faults: list[str], file: TraceFile, save_file: SaveFile
) -> Story:
    scenario, source = inputs.scenario, inputs.source
    if source is not None:
        with pause_garbage_collector():  # hardly anything of a large cluster is garbage before the process ends
            return _play_on_snapshot(source, inputs, spectator, file, save_file)
    add_changes(scenario, inputs.changes, inputs.choose_namespace)
    add_node_groups(scenario, inputs.node_groups)
    try:
        with spectator.handle_interrupts():
            return play_scenario(scenario, inputs.seed, spectator, file.write, faults=faults, at_end=save_file.keep)
    except InputError as error:
        raise error.at(inputs.name) from None


def _play_on_snapshot(
    source: Source, inputs: Inputs, spectator: LiveSpectator, file: TraceFile, save_file: SaveFile
) -> Story:
    start = read_start(source, inputs.scenario, inputs.changes, inputs.choose_namespace)
    add_node_groups(inputs.scenario, inputs.node_groups, start)
    try:
        with spectator.handle_interrupts():
            with busy("Letting the cluster come to rest …"):
                baseline = make_baseline(start, inputs.scenario)
            keep_until_exit(baseline)
            return baseline.play(inputs.scenario, inputs.seed, spectator, file.write, save_file.keep)
    except InputError as error:
        raise error.at(inputs.name) from None


def _play_on_cluster(inputs: Inputs, speed: str | None, cluster: dict[str, Any]) -> Story:
    add_changes(inputs.scenario, inputs.changes, inputs.choose_namespace)
    try:
        return play_on_cluster(inputs.scenario, inputs.seed, speed, **cluster)
    except InputError as error:
        raise error.at(inputs.name) from None
