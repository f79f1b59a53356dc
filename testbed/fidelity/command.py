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
from testbed.fidelity.examples import is_playable, moved
from testbed.fidelity.run import Compared, compare_all, shown, summary
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
        _finish(named(repeat), at_once, "")
    names = [(number, turn) for number in range(seed, seed + count) for turn in range(repeat)]
    scenarios = {
        f"seed {number}" + (f", time {turn + 1}" if repeat > 1 else ""): a_scenario(
            number, chosen, own=f"fid-{number}" + (f"-{turn}" if repeat > 1 else "")
        )
        for number, turn in names
    }
    _finish(scenarios, at_once, kinds)


def named(repeat: int = 1) -> dict[str, Json]:
    """The examples that a bare control plane can play."""
    found = {path.stem: yaml.safe_load(path.read_text("utf-8")) for path in sorted(EXAMPLES.glob("*.yaml"))}
    return {
        f"{name}" + (f", time {turn + 1}" if repeat > 1 else ""): moved(document, f"fid-{name}-{turn}")
        for name, document in found.items()
        if is_playable(document)
        for turn in range(repeat)
    }


def _finish(scenarios: dict[str, Json], at_once: int, kinds: str) -> NoReturn:
    with tempfile.TemporaryDirectory(prefix="wukong-fidelity-") as folder:
        results = asyncio.run(_play(Path(folder) / "bed", scenarios, at_once, kinds))
    click.echo(summary(results))
    sys.exit(1 if any(each.differences for each in results) else 0)


async def _play(folder: Path, scenarios: dict[str, Json], at_once: int, kinds: str) -> list[Compared]:
    own = Identity.of(os.getpid())
    state = supervisor.up(folder, Order(nodes=0, owner=own), lambda line: click.echo(line, err=True))
    results: list[Compared] = []
    began = time.monotonic()
    try:
        async for each in compare_all(state.kubeconfig, scenarios, at_once):
            results.append(each)
            verdict = "settled" if each.real.settled else "stuck"
            word = "differ" if each.differences else "agree"
            click.echo(
                f"{each.name}: {word} ({verdict}; {len(results)} of {len(scenarios)}, {time.monotonic() - began:.0f} s)"
            )
            if each.differences:
                for line in shown(each):
                    click.echo(line)
                number = each.name.removeprefix("seed ").partition(",")[0]
                again = f"--seed {number} --kinds {kinds}" if kinds else "--examples"
                click.echo(f"  again: python -m testbed fidelity {again}")
    finally:
        supervisor.down(folder)
    return results
