"""`wukong sim run`: reads a scenario and the files it names, plays it, shows its story and what it expected."""

from __future__ import annotations

from collections import Counter as Tally
from pathlib import Path
from typing import Any

import click

from wukong.app.embedded import play_scenario
from wukong.cli.console import is_terminal, note, show, show_document
from wukong.cli.main import INTERRUPTED
from wukong.cli.sim_cluster import on_cluster, play_on_cluster
from wukong.cli.story_view import story_view
from wukong.cli.watching import Watching, read_speed
from wukong.cluster import place_name, read_text
from wukong.embedded.scenario import Scenario, read_scenario
from wukong.embedded.scenario.expecting import differences
from wukong.embedded.scenario.reading import read_manifests
from wukong.errors import InputError
from wukong.ports import Document

NOT_MET = 1


@click.command("run")
@click.argument("scenario", metavar="SCENARIO")
@click.option("--seed", type=int, default=0, show_default=True, help="Draws what Kubernetes leaves to chance.")
@click.option("-o", "--output", type=click.Choice(["json", "yaml"]), help="The story as a document for programs.")
@click.option("--speed", metavar="X", help="Watch at X times real time, such as 10x.  [default: as fast as it goes]")
@click.option("--no-live", is_flag=True, help="No live view in the terminal.")
@click.option("--trace", metavar="FILE", help="Write every action of everybody there, one JSON line each.")
@on_cluster
def command(
    scenario: str, seed: int, output: str | None, speed: str | None, no_live: bool, trace: str | None, **place: Any
) -> int:
    """Play a scenario and tell what became of its workloads.

    SCENARIO is a YAML file; - is stdin. The same seed gives the same story. Ends with 1 if the story is not as the
    scenario expects; a scenario that expects nothing expects to settle.

    \b
    Example:
      wukong sim run examples/sim/deadlock.yaml
    """
    read = read_file(scenario)
    watching = Watching(read_speed(speed), is_live=output is None and not no_live and is_terminal())
    try:
        if place["kubeconfig"]:
            story = play_on_cluster(read, seed, speed, **place)
        else:
            with watching.attentive():
                story = play_scenario(read, seed, watching)
    except InputError as error:
        raise error.at(place_name(scenario)) from None
    unmet = [] if story.interrupted else differences(read.expect, story)
    if trace is not None:
        write(trace, "".join(story.trace))
    if output is not None:
        show_document(story.document(), output)
        for each in unmet:
            click.echo(f"expectation not met: {each}", err=True)
    else:
        show(*story_view(story, unmet))
    return INTERRUPTED if story.interrupted else NOT_MET if unmet else 0


def read_file(path: str) -> Scenario:
    """The scenario, with the documents of its `files` before its own manifests."""
    name = place_name(path)
    try:
        scenario = read_scenario(bytes(read_text(path)))
    except InputError as error:
        if str(error).startswith(f"{name}: "):  # the file itself cannot be read
            raise
        raise error.at(name) from None
    found: list[Document] = []
    problems: list[str] = []
    skipped: Tally[str] = Tally()
    for file in scenario.files:
        where = str(Path(path).parent / file)
        try:
            found += read_manifests(bytes(read_text(where)), skipped)
        except InputError as error:
            problems += [text if text.startswith(where) else f"{where}: {text}" for text in error.problems]
    if problems:
        raise InputError(*problems)
    if skipped:
        note(f"left out of the files, for they do not decide placement: {', '.join(sorted(skipped))}.")
    scenario.manifests = [*found, *scenario.manifests]
    return scenario


def write(path: str, text: str) -> None:
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"--trace {path}: cannot be written: {error.strerror or error}.") from None
