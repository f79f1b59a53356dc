"""`wukong sim soak`: one scenario, many seeds, faults; a table of what struck, and how to replay what failed."""

from __future__ import annotations

import os
import shlex
import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from wukong.app.embedded import asks_extender, list_striking
from wukong.app.soak import SoakResult, soak
from wukong.cli.inputs.seeds import read_seeds
from wukong.cli.inputs.sim_source import add_files_option, read_scenario_file
from wukong.cli.main import INTERRUPTED
from wukong.cli.views.console import Part, count, progress, show, show_document
from wukong.cli.views.table import Table
from wukong.cluster import place_name
from wukong.embedded.faults import TYPES, read_types
from wukong.errors import InputError

FAILED = 1
MOST_FAILURES = 5
MOST_REASONS = 3


@click.command("soak")
@click.argument("scenario", metavar="SCENARIO")
@click.option("--seeds", default="1-100", show_default=True, metavar="A-B", help="One seed, or a range.")
@click.option("--faults", default="all", show_default=True, metavar="all|none|A,B", help="Types of faults to inject.")
@click.option("--jobs", type=click.IntRange(min=1), default=None, metavar="N", help="Processes.  [default: all cores]")
@click.option("-o", "--output", type=click.Choice(["json", "yaml"]), help="The result as a document for programs.")
@add_files_option
def command(
    scenario: str, seeds: str, faults: str, jobs: int | None, output: str | None, files_below: str | None
) -> int:
    """Play a scenario with many seeds, with faults, and look for what should not be.

    Each seed draws its own faults; they end some time after the timeline, and then the cluster must come to rest, with
    every workload complete, every mirror current, and nothing for the checkers to find. Ends with 1 if a seed failed,
    or if a type of fault that was asked for never made a difference. SIGINT and SIGTERM end it with what it has.

    \b
    Example:
      wukong sim soak examples/sim/soak.yaml --seeds 1-200
    """
    content, types, chosen_seeds = read_scenario_file(scenario, files_below), read_types(faults), read_seeds(seeds)
    if "extender" in types and faults == "all" and not asks_extender(content):
        types.remove("extender")  # nobody is asked
    if faults == "all":
        types = list_striking(content, types)
    with progress("seeds") as report, _end_on_signals():
        try:
            result = soak(
                content,
                chosen_seeds,
                types,
                jobs or os.cpu_count() or 1,
                lambda so_far: report(so_far.seeds, len(chosen_seeds)),
            )
        except InputError as error:
            raise error.at(place_name(scenario)) from None
    arguments = [scenario, "--faults", faults, *(["--files-below", files_below] if files_below else [])]
    replay = f"wukong sim run {shlex.join(arguments)} --seed"
    if output is not None:
        show_document(_build_document(result, len(chosen_seeds), replay), output)
    else:
        show(*_render(result, len(chosen_seeds), replay))
    if result.was_interrupted:
        return INTERRUPTED
    return FAILED if result.has_failed else 0


@contextmanager
def _end_on_signals() -> Iterator[None]:
    """Let SIGTERM interrupt what is done in here as SIGINT does, and SIGINT also where it was ignored before, as by a
    shell that put us into the background: a soak takes hours, and what it has found by then should not be lost."""
    before = {number: signal.signal(number, signal.default_int_handler) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _render(result: SoakResult, requested: int, replay: str) -> Iterable[Part]:
    if result.faults:
        yield from (_fault_table(result), "")
    hours = f"{result.virtual_seconds / 3600:.1f} virtual hours"
    of = f" of {requested}" if result.seeds < requested else ""
    yield f"{result.seeds}{of} {'seed' if requested == 1 else 'seeds'}, {count(result.writes, 'write')} in {hours}."
    if result.was_interrupted:
        yield "Interrupted."
    for name in result.ineffective:
        yield f"The fault {name} never made a difference: give it more seeds, or a scenario it can strike."
    for failure in result.failures[:MOST_FAILURES]:
        yield from ("", f"Seed {failure.seed} failed. Replay it: {replay} {failure.seed}")
        yield from (f"  {reason}" for reason in failure.reasons[:MOST_REASONS])
    yield ""
    yield f"{count(len(result.failures), 'seed')} failed." if result.failures else "No seed failed."


def _fault_table(result: SoakResult) -> Table:
    table = Table("FAULT", "INJECTED", "EFFECTIVE", "WHAT IT IS", numbers=("INJECTED", "EFFECTIVE"))
    for name in result.faults:
        table.add_row(name, str(result.injected[name]), str(result.effective[name]), TYPES[name].description)
    return table


def _build_document(result: SoakResult, requested: int, replay: str) -> dict[str, Any]:
    return {
        "version": 1,
        "seeds": {"asked": requested, "played": result.seeds, "failed": len(result.failures)},
        "interrupted": result.was_interrupted,
        "faults": {
            name: {"injected": result.injected[name], "effective": result.effective[name]} for name in result.faults
        },
        "ineffective": result.ineffective,
        "failures": [
            {
                "seed": failure.seed,
                "digest": failure.digest,
                "reasons": failure.reasons,
                "replay": f"{replay} {failure.seed}",
            }
            for failure in result.failures
        ],
        "writes": result.writes,
        "virtualSeconds": result.virtual_seconds,
    }
