"""`wukong plan`: says what a change will do before it is applied.

What it reads is in inputs/planned_change.py and inputs/sim_source.py, what it prints in views/plan.py and
views/plan_markdown.py, what --report writes in views/report/; the plan itself is made in forecast/.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Any

import click
import msgspec

from wukong.app.many_seeds import ProcessExecutor
from wukong.app.snapshots import Baseline, list_documents, make_baseline
from wukong.cli.inputs import options
from wukong.cli.inputs.namespaces import Namespace, choose_namespace
from wukong.cli.inputs.node_groups import NONE, add_cluster_groups, add_node_groups
from wukong.cli.inputs.plan_limits import read_min_available
from wukong.cli.inputs.planned_change import Wishes, build_change
from wukong.cli.inputs.pod_durations import add_duration_options, add_durations, list_arguments
from wukong.cli.inputs.report_file import add_report_option, check_report_path, write_report
from wukong.cli.inputs.seeds import choose_seeds
from wukong.cli.inputs.sim_source import read_manifest_files, read_start
from wukong.cli.inputs.source import Source
from wukong.cli.main import keep_until_exit
from wukong.cli.views.advice import show_patch_note
from wukong.cli.views.console import busy, count, note, progress, show, show_document
from wukong.cli.views.plan import render_plan
from wukong.cli.views.plan_markdown import render_markdown
from wukong.cli.views.story import render_story
from wukong.cluster import pause_garbage_collector, place_name, read_settings
from wukong.cluster.whole_folder import check_new_folder, write_new_folder
from wukong.embedded.scenario import Scenario
from wukong.embedded.scenario.format.durations import build_durations
from wukong.embedded.scenario.format.fields import seconds_of
from wukong.errors import InputError
from wukong.forecast.advice import find_advice
from wukong.forecast.advice.kustomize import build_files, choose_writable
from wukong.forecast.fields import Plan
from wukong.forecast.placement_history import record_placement
from wukong.forecast.plan import PlanOptions, make_plan
from wukong.forecast.planned_change import PlannedChange
from wukong.forecast.play import PlayOptions, tell_story
from wukong.forecast.start_times import add_probe_delays, learn_start_times
from wukong.forecast.start_times import build_durations as merge_durations
from wukong.forecast.stop_times import learn_stop_times
from wukong.forecast.verdict import Limits
from wukong.forecast.warnings import find_warnings
from wukong.placement.prices import Prices, read_prices

UNSAFE = 1
UNTIL = "4h"
_MANIFESTS = (".yaml", ".yml", ".json")


class Request(msgspec.Struct, kw_only=True):
    """What is asked, as it was given."""

    source: Source
    files: tuple[str, ...]
    wishes: Wishes
    durations: dict[str, tuple[str, ...]]  # by the names of their options
    node_groups: str | None  # a file, or none
    until: str
    namespace: Namespace = Namespace("default", "")


class Inputs(msgspec.Struct):
    """The same, read and checked."""

    baseline: Baseline
    change: PlannedChange
    options: PlanOptions


@click.command("plan")
@options.snapshot
@click.option(
    "-f", "--filename", "files", multiple=True, metavar="FILE", help="Manifests to apply: a file, a folder, or -."
)
@options.namespace
@click.option("--image", multiple=True, metavar="KIND/NAME[:CONTAINER]=IMAGE", help="Set an image: deploy/web=web:2.")
@click.option("--scale", multiple=True, metavar="KIND/NAME=REPLICAS", help="Scale a workload: deploy/web=5.")
@click.option("--drain", multiple=True, metavar="NODE", help="Drain a node, as kubectl drain does.")
@click.option("--remove-node", multiple=True, metavar="NODE", help="Drain a node, then take it away.")
@click.option("--add-nodes", multiple=True, metavar="GROUP=N", help="Add nodes like one, of its group or type.")
@click.option("--lose", multiple=True, metavar="zone=NAME", help="Lose nodes at once: zone=a, node=NAME, LABEL=VALUE.")
@click.option("--prune", is_flag=True, help="Delete what -l selects and the files no longer have.")
@click.option("-l", "--selector", default="", metavar="SELECTOR", help="Labels of what --prune may delete.")
@click.option("--seeds", default="16", show_default=True, metavar="N|A-B", help="So many plays, or these seeds.")
@click.option("--story", type=click.IntRange(0), metavar="SEED", help="Show the story of this seed instead.")
@click.option(
    "--min-available",
    multiple=True,
    metavar="[KIND/NAME=]N|N%",
    help="Unsafe below so many available: of what is changed, or of a workload.",
)
@click.option("--until", default=UNTIL, show_default=True, help="Play no longer than this, in virtual time.")
@click.option("--prices", metavar="FILE", help="What nodes cost: see docs/policies.md.")
@click.option("--advice/--no-advice", default=True, help="Look for what would make it safe.  [default: yes]")
@click.option("--write-patch", metavar="FOLDER", help="Write the best advice there, as a kustomize component.")
@click.option(
    "--fail-on",
    type=click.Choice(["unsafe", "warning"]),
    default="unsafe",
    show_default=True,
    help="End with 1 if it is not safe, or already if there is a warning.",
)
@click.option(
    "-o", "--output", type=click.Choice(["json", "yaml", "markdown"]), help="For programs, or a pull request."
)
@add_report_option
@add_duration_options
@click.option(
    "--node-groups",
    metavar="FILE|none",
    help="Let a cluster autoscaler add and remove nodes of these groups: nodeGroups as in a scenario, the ConfigMap "
    "cluster-autoscaler-status, or Karpenter's NodePools.  [default: what the cluster tells of them]",
)
@options.kubeconfig
@options.context
def command(
    snapshot: str | None,
    files: tuple[str, ...],
    namespace: str | None,
    seeds: str,
    story: int | None,
    min_available: tuple[str, ...],
    until: str,
    prices: str | None,
    advice: bool,
    write_patch: str | None,
    fail_on: str,
    output: str | None,
    report: str | None,
    start_seconds: tuple[str, ...],
    stop_seconds: tuple[str, ...],
    node_groups: str | None,
    kubeconfig: str,
    context: str,
    **wishes: Any,
) -> int:
    """Say what a change will do, before it is applied.

    The change is played on a copy of the cluster, with many seeds: they draw what Kubernetes leaves to chance. Nothing
    is written to the cluster, and what was wrong before is not held against the change. Ends with 0 if it is safe, 1 if
    it never ends, degrades something or needs nodes, 2 for wrong input, 3 if the cluster says no.

    \b
    Examples:
      wukong plan -f web.yaml                                  # on the cluster of the current context
      wukong plan -s cluster.json.gz -f manifests/             # on a snapshot, everything in a folder
      wukong plan -s cluster.json.gz --image deploy/web=web:2 -n shop
      wukong plan -s cluster.json.gz --drain node-7 --min-available 80%
      wukong plan -s cluster.json.gz --lose zone=eu-1a -o json
      wukong plan -s cluster.json.gz -f web.yaml --report plan.html
    """
    wished = Wishes(**wishes)
    check_report_path(report)
    if write_patch is not None:
        if not advice:
            raise InputError("--write-patch writes advice, and --no-advice looks for none. Leave one of them out.")
        check_new_folder(write_patch)
    if report is not None and story is not None:
        raise InputError("--report writes a plan, and --story shows one of its stories instead. Leave one of them out.")
    if not files and wished.is_empty:
        raise InputError("expected a change: -f FILE, --image, --scale, --drain, … Try: wukong plan --help")
    standard_input = next((path for path in files if path == "-"), None)
    options.refuse_stdin_twice(snapshot=snapshot, filename=standard_input, prices=prices, node_groups=node_groups)
    asked = Request(
        source=Source(snapshot, kubeconfig, context),
        files=files,
        durations={"start_seconds": start_seconds, "stop_seconds": stop_seconds},
        node_groups=node_groups,
        until=until,
        wishes=wished,
    )
    chosen_seeds = choose_seeds(seeds)
    asked.namespace = choose_namespace(namespace, asked.source)
    wished.namespace = asked.namespace.name
    limits = read_min_available(min_available, wished.namespace)
    with pause_garbage_collector():
        inputs = _read_inputs(asked, _make_options(until, limits, prices))
    keep_until_exit(inputs.baseline)
    if story is not None:
        told = tell_story(inputs.baseline, inputs.change, PlayOptions(inputs.options.until), story)
        show(*render_story(told, []))
        return 0 if told.settled else UNSAFE
    with progress("seeds") as report_progress:
        executor = ProcessExecutor(min(os.cpu_count() or 1, len(chosen_seeds)))
        plan = make_plan(inputs.baseline, inputs.change, chosen_seeds, executor, inputs.options, report_progress)
        plan.warnings = find_warnings(inputs.baseline, inputs.change)
    plan.replay = _build_replay(asked)
    if advice and not plan.verdict.is_safe:
        with busy("Looking for what would make it safe …"):
            plan.advice = find_advice(inputs.baseline, inputs.change, plan, chosen_seeds, executor, inputs.options)
    for finding in plan.shown.findings:  # a mistake of ours, for checkers judge whoever plays
        note(f"seed {plan.shown.seed}: {finding}")
    if report is not None:  # before anything is printed, to somebody who may not listen to the end
        _write_report(report, inputs, plan)
    _show(plan, output)
    if write_patch is not None and not plan.verdict.is_safe:
        _write_patch(write_patch, plan)
    is_good = plan.verdict.is_safe and not (fail_on == "warning" and plan.warnings)
    return 0 if is_good else UNSAFE


def _write_patch(path: str, plan: Plan) -> None:
    chosen = choose_writable(plan.advice)
    if chosen is not None:
        write_new_folder(path, build_files(chosen))
    note(show_patch_note(path, chosen))


def _write_report(path: str, inputs: Inputs, plan: Plan) -> None:
    from wukong.cli.views.report import render_report

    with busy("Writing the report …"):
        history = record_placement(inputs.baseline, inputs.change, PlayOptions(inputs.options.until), plan.shown.seed)
        write_report(path, render_report(plan, history))
    note(f"wrote {path}: open it in a browser.")


def _show(plan: Plan, output: str | None) -> None:
    if output == "markdown":
        show(*render_markdown(plan))
    elif output is not None:
        show_document(plan.document(), output)
    else:
        show(*render_plan(plan))


def _make_options(until: str, limits: Limits, prices: str | None) -> PlanOptions:
    if not seconds_of(until):
        raise InputError(f'--until: expected a duration such as 90s, 10m or 4h, got "{until:.50}".')
    return PlanOptions(until, limits, _read_prices(prices) if prices is not None else Prices())


def _read_prices(path: str) -> Prices:
    try:
        return read_prices(read_settings(path))
    except InputError as error:
        raise error.at(place_name(path)) from None


def _read_inputs(asked: Request, settings: PlanOptions) -> Inputs:
    manifests = read_manifest_files(_list_files(asked.files), lambda: asked.namespace)
    scenario = Scenario(manifests=list(manifests))
    add_durations(scenario, asked.durations, lambda: asked.namespace.name)
    start = read_start(asked.source, scenario, (), lambda: asked.namespace)
    if asked.node_groups is None:
        add_cluster_groups(scenario, start, asked.source.place)
    elif asked.node_groups != NONE:
        add_node_groups(scenario, asked.node_groups, start)
    change = build_change(asked.wishes, scenario.manifests, start)
    given = build_durations(scenario, list_documents(start))
    times, stop_times = add_probe_delays(learn_start_times(start), manifests), learn_stop_times(start)
    with busy("Letting the cluster come to rest …"):
        baseline = make_baseline(start, scenario, merge_durations(times, given, stop_times))
    _note_unrest(asked.source.place, baseline)
    settings = msgspec.structs.replace(settings, start_times=times, stop_times=stop_times, given_durations=given)
    return Inputs(baseline, change, settings)


def _note_unrest(place: str, baseline: Baseline) -> None:
    before = baseline.before
    if before.changes:
        took = f"{count(before.changes, 'change')} in {before.virtual_seconds:g} s"
        note(f"{place} was not at rest: what was under way was played to its end first ({took}).")


def _list_files(paths: tuple[str, ...]) -> list[str]:
    """Of a folder the manifests in it, by name, as kubectl takes them."""
    files: list[str] = []
    for path in paths:
        if path == "-" or not Path(path).is_dir():
            files.append(path)
            continue
        try:
            inside = sorted(str(file) for file in Path(path).iterdir() if file.suffix in _MANIFESTS and file.is_file())
        except OSError as error:
            raise InputError(f"{path}: cannot be read: {error.strerror}.") from None
        if not inside:
            raise InputError(f"{path}: expected files that end with {', '.join(_MANIFESTS)}, found none.")
        files += inside
    return files


def _build_replay(asked: Request) -> str:
    """The command that shows the story of one seed, which is to be added."""
    snapshot, kubeconfig, context = asked.source
    arguments = ["-s", snapshot] if snapshot is not None else []
    arguments += ["--kubeconfig", kubeconfig] if kubeconfig else []
    arguments += ["--context", context] if context else []
    arguments += [argument for path in asked.files for argument in ("-f", path)]
    arguments += ["-n", asked.namespace.name] if asked.namespace.is_required else []
    for name in ("image", "scale", "drain", "remove_node", "add_nodes", "lose"):
        option = f"--{name.replace('_', '-')}"
        arguments += [argument for text in getattr(asked.wishes, name) for argument in (option, text)]
    arguments += ["--prune", "-l", asked.wishes.selector] if asked.wishes.prune else []
    arguments += list_arguments(asked.durations)
    arguments += ["--node-groups", asked.node_groups] if asked.node_groups is not None else []
    arguments += ["--until", asked.until] if asked.until != UNTIL else []
    return f"wukong plan {shlex.join(arguments)} --story"
