"""`python -m testbed fidelity`: random scenarios by seed, embedded and real, side by side."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple, NoReturn

import click
import yaml

from testbed import supervisor
from testbed.fidelity.examples import is_playable, move
from testbed.fidelity.mixed_scenarios import a_mixed_scenario
from testbed.fidelity.run import Comparison, compare_all, describe, summarize
from testbed.fidelity.scenarios import KINDS, Json, a_scenario
from testbed.processes import Identity
from testbed.supervisor import Order

AT_ONCE = 4
EXAMPLES = Path(__file__).parents[2] / "examples" / "sim"
GENERATORS = ("mixed", "single")


@click.command(help="Play random scenarios embedded and on test beds; ends with 1 if two stories differ.")
@click.option("--seed", type=int, default=1, show_default=True, help="The first.")
@click.option("--count", type=click.IntRange(min=1), default=1, show_default=True, help="How many, from that seed on.")
@click.option(
    "--generator",
    type=click.Choice(GENERATORS),
    default="mixed",
    show_default=True,
    help="Several workloads and happenings, or one of each.",
)
@click.option("--kinds", default=",".join(KINDS), show_default=True, help="Of workloads, by commas; of single ones.")
@click.option("--at-once", type=click.IntRange(min=1), default=AT_ONCE, show_default=True, help="Side by side.")
@click.option("--shared", is_flag=True, help="All on one control plane, instead of one for each.")
@click.option("--repeat", type=click.IntRange(min=1), default=1, show_default=True, help="Play each so often for real.")
@click.option("--examples", is_flag=True, help="Play those of examples/sim instead.")
@click.option("--file", "files", multiple=True, type=click.Path(exists=True, path_type=Path), help="Play this instead.")
@click.option("--show", is_flag=True, help="Print the scenario of the seed instead of playing it.")
def fidelity(
    seed: int,
    count: int,
    generator: str,
    kinds: str,
    at_once: int,
    shared: bool,
    repeat: int,
    examples: bool,
    files: tuple[Path, ...],
    show: bool,
) -> None:
    chosen = tuple(kinds.split(","))
    if not chosen or not set(chosen) <= set(KINDS):
        raise click.BadParameter(f"expected some of {', '.join(KINDS)}, got {kinds}", param_hint="--kinds")

    def draw(number: int, own: str = "") -> Json:
        return a_mixed_scenario(number, own=own) if generator == "mixed" else a_scenario(number, chosen, own=own)

    if show:
        click.echo(yaml.safe_dump(draw(seed), sort_keys=False))
        return
    options = f"--generator {generator}" + (f" --kinds {kinds}" if generator == "single" else "")
    play = Play(at_once, shared, options)
    if examples:
        play.finish(read_examples(repeat))
    if files:
        play.finish({path.stem: yaml.safe_load(path.read_text("utf-8")) for path in files})
    prefix = "mix" if generator == "mixed" else "fid"
    play.finish(
        {
            f"seed {number}" + (f", time {turn + 1}" if repeat > 1 else ""): draw(
                number, f"{prefix}-{number}" + (f"-{turn}" if repeat > 1 else "")
            )
            for number in range(seed, seed + count)
            for turn in range(repeat)
        }
    )


def read_examples(repeat: int = 1) -> dict[str, Json]:
    """The examples that a bare control plane can play."""
    documents = {path.stem: yaml.safe_load(path.read_text("utf-8")) for path in sorted(EXAMPLES.glob("*.yaml"))}
    return {
        f"{name}" + (f", time {turn + 1}" if repeat > 1 else ""): move(document, f"fid-{name}-{turn}")
        for name, document in documents.items()
        if is_playable(document)
        for turn in range(repeat)
    }


class Play(NamedTuple):
    """Where scenarios are played: each alone on one of several control planes, or all on a shared one."""

    at_once: int
    is_shared: bool
    options: str  # by which a seed is played again

    def finish(self, scenarios: dict[str, Json]) -> NoReturn:
        with tempfile.TemporaryDirectory(prefix="wukong-fidelity-") as folder:
            comparisons = asyncio.run(self._play(Path(folder), scenarios))
        click.echo(summarize(comparisons))
        sys.exit(1 if any(comparison.differences for comparison in comparisons) else 0)

    async def _play(self, folder: Path, scenarios: dict[str, Json]) -> list[Comparison]:
        order = Order(nodes=0, owner=Identity.of(os.getpid()))
        count = 1 if self.is_shared else min(self.at_once, len(scenarios))
        beds = [folder / f"bed-{number}" for number in range(count)]
        comparisons: list[Comparison] = []
        try:
            kubeconfigs = [supervisor.up(bed, order, _say).kubeconfig for bed in beds]
            began = time.monotonic()
            async for comparison in compare_all(kubeconfigs, scenarios, self.at_once if self.is_shared else 1):
                comparisons.append(comparison)
                progress = f"{len(comparisons)} of {len(scenarios)}, {time.monotonic() - began:.0f} s"
                self._show(comparison, progress)
        finally:
            for bed in beds:
                supervisor.down(bed)
        return comparisons

    def _show(self, comparison: Comparison, progress: str) -> None:
        verdict = "settled" if comparison.real.settled else "stuck"
        word = "differ" if comparison.differences else "agree"
        click.echo(f"{comparison.name}: {word} ({verdict}; {progress})")
        if comparison.differences:
            for line in describe(comparison):
                click.echo(line)
        if comparison.differences and comparison.name.startswith("seed "):
            number = comparison.name.removeprefix("seed ").partition(",")[0]
            click.echo(f"  again: python -m testbed fidelity --seed {number} {self.options}")


def _say(line: str) -> None:
    click.echo(line, err=True)
