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
from wukong.cli.inputs.seeds import read_seeds
from wukong.cli.inputs.sim_cluster import add_cluster_options, play_on_cluster, refuse_without_cluster
from wukong.cli.inputs.sim_source import add_changes, add_files_option, note_unrest, read_scenario_file, read_start
from wukong.cli.main import INTERRUPTED, keep_until_exit
from wukong.cli.views.console import busy, is_terminal, progress, say, show, show_document
from wukong.cli.views.endings import build_document, render_endings
from wukong.cli.views.spectator import LiveSpectator, read_speed
from wukong.cli.views.story import render_story
from wukong.cli.views.trace_file import TraceFile
from wukong.cluster import pause_garbage_collector, place_name
from wukong.embedded.faults import read_types
from wukong.embedded.scenario import Scenario, Story
from wukong.embedded.scenario.expectations import find_differences, find_differences_under_faults
from wukong.errors import InputError

NOT_MET = 1


class Inputs(msgspec.Struct, kw_only=True):
    """What is played: a scenario, or changes to a snapshot, or both."""

    scenario: Scenario
    path: str | None  # of its file
    name: str  # of the file, for messages
    snapshot: str | None
    changes: tuple[str, ...]  # manifest files
    seed: int
    files_below: str | None = None  # the folder that its files may be below, besides its own


@click.command("run")
@click.argument("scenario", metavar="[SCENARIO]", required=False)
@click.option(
    "-s",
    "--snapshot",
    metavar="PATH",
    help="Begin with this cluster: what `wukong snapshot` or `kubectl get -o json|yaml` wrote; - is stdin.",
)
@click.option(
    "-f", "--filename", "changes", multiple=True, metavar="FILE", help="Manifests to apply, as kubectl would."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Draws what Kubernetes leaves to chance.")
@click.option("--seeds", metavar="A-B", help="Play each of these seeds, on all cores; tell how many end how.")
@click.option("--speed", metavar="X", help="Watch at X times real time, such as 10x.  [default: as fast as it goes]")
@click.option("--no-live", is_flag=True, help="No live view in the terminal.")
@click.option("-o", "--output", type=click.Choice(["json", "yaml"]), help="The story as a document for programs.")
@click.option("--faults", default="none", metavar="all|none|A,B", help="Types of faults to inject; then it gets calm.")
@click.option("--trace", metavar="FILE", help="Write every action of everybody there, one JSON line each.")
@add_files_option
@add_cluster_options
def command(
    scenario: str | None,
    snapshot: str | None,
    changes: tuple[str, ...],
    seed: int,
    seeds: str | None,
    speed: str | None,
    no_live: bool,
    output: str | None,
    faults: str,
    trace: str | None,
    files_below: str | None,
    **place: Any,
) -> int:
    """Play a scenario and tell what became of its workloads.

    SCENARIO is a YAML file; - is stdin. With -s it is played on top of a snapshot of a cluster, and may be left out if
    -f names what to change. The same seed gives the same story. Ends with 1 if the story is not as the scenario
    expects; who expects nothing expects to settle. With --faults that is all that is expected.

    On a real cluster chance decides which of two controllers is faster, and here the seed does: --seeds shows which
    endings there are, each with a seed that replays it.

    \b
    Examples:
      wukong sim run examples/sim/deadlock.yaml                 # a rollout that never ends
      wukong sim run examples/sim/drain.yaml --seeds 1-16       # does it always end like this?
      wukong sim run examples/sim/spot-loss.yaml --speed 60x    # watch it
      wukong snapshot -o cluster.json.gz                        # what would this change do to my cluster?
      wukong sim run -s cluster.json.gz -f deployment.yaml
      wukong sim run drain.yaml -s cluster.json.gz -o json      # a timeline, on my cluster
    """
    if scenario is None and not changes:
        raise InputError("expected a SCENARIO, or -f with manifests to apply. Try: wukong sim run --help")
    options.refuse_stdin_twice(
        scenario=scenario, snapshot=snapshot, filename=next((path for path in changes if path == "-"), None)
    )
    spectator = LiveSpectator(read_speed(speed), is_live=output is None and not no_live and is_terminal())
    inputs = Inputs(
        scenario=read_scenario_file(scenario, files_below) if scenario is not None else Scenario(),
        path=scenario,
        name=place_name(scenario or changes[0]),
        snapshot=snapshot,
        changes=changes,
        seed=seed,
        files_below=files_below,
    )
    types = read_types(faults)
    has_faults = types or any(entry.fault for entry in inputs.scenario.timeline)
    if has_faults and (place["kubeconfig"] or snapshot):
        raise InputError("faults strike a scenario that begins empty. Leave out --kubeconfig and --snapshot, or them.")
    if not place["kubeconfig"]:
        refuse_without_cluster(**place)
    if seeds is not None:
        _refuse_for_seeds(speed=speed, trace=trace, kubeconfig=place["kubeconfig"])
        return _show_endings(inputs, read_seeds(seeds), types, faults, output)
    with TraceFile(trace) as file:
        if place["kubeconfig"]:
            story = _play_on_cluster(inputs, speed, place)
            file.write_all(story.trace)
        else:
            story = _play_embedded(inputs, spectator, types, file)
    find_unmet = find_differences_under_faults if types else find_differences
    unmet = [] if story.interrupted else find_unmet(inputs.scenario.expect, story)
    if snapshot is not None:
        note_unrest(snapshot, story)
    if output is not None:
        show_document(story.document(), output)
        for difference in unmet:
            say(f"expectation not met: {difference}")
    else:
        show(*render_story(story, unmet))
    return INTERRUPTED if story.interrupted else NOT_MET if unmet else 0


def _refuse_for_seeds(**options: str | None) -> None:
    """--seed does no harm beside --seeds; these would mean nothing."""
    if named := [f"--{name}" for name, value in options.items() if value]:
        raise InputError(f"--seeds plays many stories at once, and {named[0]} is for a single one. Leave one out.")


def _show_endings(inputs: Inputs, seeds: range, types: list[str], faults: str, output: str | None) -> int:
    """Play all seeds and show how they end."""
    scenario, snapshot = inputs.scenario, inputs.snapshot
    start = read_start(snapshot, scenario, inputs.changes) if snapshot is not None else None
    if start is None:
        add_changes(scenario, inputs.changes)
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
    arguments += ["-s", inputs.snapshot] if inputs.snapshot is not None else []
    arguments += [argument for path in inputs.changes for argument in ("-f", path)]
    arguments += ["--faults", faults] if faults != "none" else []
    arguments += ["--files-below", inputs.files_below] if inputs.files_below else []
    return f"wukong sim run {shlex.join(arguments)} --seed"


def _play_embedded(inputs: Inputs, spectator: LiveSpectator, faults: list[str], file: TraceFile) -> Story:
    scenario, snapshot = inputs.scenario, inputs.snapshot
    if snapshot is not None:
        with pause_garbage_collector():  # hardly anything of a large cluster is garbage before the process ends
            return _play_on_snapshot(snapshot, inputs, spectator, file)
    add_changes(scenario, inputs.changes)
    try:
        with spectator.handle_interrupts():
            return play_scenario(scenario, inputs.seed, spectator, file.write, faults=faults)
    except InputError as error:
        raise error.at(inputs.name) from None


def _play_on_snapshot(snapshot: str, inputs: Inputs, spectator: LiveSpectator, file: TraceFile) -> Story:
    start = read_start(snapshot, inputs.scenario, inputs.changes)
    try:
        with spectator.handle_interrupts():
            with busy("Letting the cluster come to rest …"):
                baseline = make_baseline(start, inputs.scenario)
            keep_until_exit(baseline)
            return baseline.play(inputs.scenario, inputs.seed, spectator, file.write)
    except InputError as error:
        raise error.at(inputs.name) from None


def _play_on_cluster(inputs: Inputs, speed: str | None, cluster: dict[str, Any]) -> Story:
    if inputs.snapshot is not None:
        raise InputError("--snapshot and --kubeconfig: a scenario begins with one cluster or the other. Leave one out.")
    add_changes(inputs.scenario, inputs.changes)
    try:
        return play_on_cluster(inputs.scenario, inputs.seed, speed, **cluster)
    except InputError as error:
        raise error.at(inputs.name) from None
