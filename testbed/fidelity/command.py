"""`python -m testbed fidelity`: random scenarios by seed, embedded and real, side by side."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import NoReturn

import click
import yaml

from testbed import supervisor
from testbed.fidelity.examples import is_playable, move
from testbed.fidelity.run import Comparison, compare_all, describe, summarize
from testbed.fidelity.scenarios import KINDS, Json, a_scenario
from testbed.processes import Identity
from testbed.supervisor import Order

AT_ONCE = 16
EXAMPLES = Path(__file__).parents[2] / "examples" / "sim"


@click.command(help="Play random scenarios embedded and on a test bed; ends with 1 if two stories differ.")
@click.option("--seed", type=int, default=1, show_default=True, help="The first.")
@click.option("--count", type=click.IntRange(min=1), default=1, show_default=True, help="How many, from that seed on.")
@click.option("--kinds", default=",".join(KINDS), show_default=True, help="Of workloads, by commas.")
@click.option("--at-once", type=click.IntRange(min=1), default=AT_ONCE, show_default=True, help="Side by side.")
@click.option("--repeat", type=click.IntRange(min=1), default=1, show_default=True, help="Play each so often for real.")
@click.option("--examples", is_flag=True, help="Play those of examples/sim instead.")
@click.option("--show", is_flag=True, help="Print the scenario of the seed instead of playing it.")
def fidelity(seed: int, count: int, kinds: str, at_once: int, repeat: int, examples: bool, show: bool) -> None:
    chosen = tuple(kinds.split(","))
    if not chosen or not set(chosen) <= set(KINDS):
        raise click.BadParameter(f"expected some of {', '.join(KINDS)}, got {kinds}", param_hint="--kinds")
    if show:
        click.echo(yaml.safe_dump(a_scenario(seed, chosen), sort_keys=False))
        return
    if examples:
        _finish(read_examples(repeat), at_once, "")
    names = [(number, turn) for number in range(seed, seed + count) for turn in range(repeat)]
    scenarios = {
        f"seed {number}" + (f", time {turn + 1}" if repeat > 1 else ""): a_scenario(
            number, chosen, own=f"fid-{number}" + (f"-{turn}" if repeat > 1 else "")
        )
        for number, turn in names
    }
    _finish(scenarios, at_once, kinds)


def read_examples(repeat: int = 1) -> dict[str, Json]:
    """The examples that a bare control plane can play."""
    documents = {path.stem: yaml.safe_load(path.read_text("utf-8")) for path in sorted(EXAMPLES.glob("*.yaml"))}
    return {
        f"{name}" + (f", time {turn + 1}" if repeat > 1 else ""): move(document, f"fid-{name}-{turn}")
        for name, document in documents.items()
        if is_playable(document)
        for turn in range(repeat)
    }


def _finish(scenarios: dict[str, Json], at_once: int, kinds: str) -> NoReturn:
    with tempfile.TemporaryDirectory(prefix="wukong-fidelity-") as folder:
        comparisons = asyncio.run(_play(Path(folder) / "bed", scenarios, at_once, kinds))
    click.echo(summarize(comparisons))
    sys.exit(1 if any(comparison.differences for comparison in comparisons) else 0)


async def _play(folder: Path, scenarios: dict[str, Json], at_once: int, kinds: str) -> list[Comparison]:
    own = Identity.of(os.getpid())
    state = supervisor.up(folder, Order(nodes=0, owner=own), lambda line: click.echo(line, err=True))
    comparisons: list[Comparison] = []
    began = time.monotonic()
    try:
        async for comparison in compare_all(state.kubeconfig, scenarios, at_once):
            comparisons.append(comparison)
            verdict = "settled" if comparison.real.settled else "stuck"
            word = "differ" if comparison.differences else "agree"
            progress = f"{len(comparisons)} of {len(scenarios)}, {time.monotonic() - began:.0f} s"
            click.echo(f"{comparison.name}: {word} ({verdict}; {progress})")
            if comparison.differences:
                for line in describe(comparison):
                    click.echo(line)
                number = comparison.name.removeprefix("seed ").partition(",")[0]
                again = f"--seed {number} --kinds {kinds}" if kinds else "--examples"
                click.echo(f"  again: python -m testbed fidelity {again}")
    finally:
        supervisor.down(folder)
    return comparisons
