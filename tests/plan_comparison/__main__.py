"""`python -m plan_comparison`: random changes planned from a snapshot of a real control plane, and then made there.

Prints a table; ends with 1 if anything is not as one of the plays said.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from pathlib import Path

import click

from plan_comparison.changes import draw_change
from plan_comparison.comparison import Comparison, compare_all
from testbed import supervisor
from testbed.processes import Identity
from testbed.supervisor import Order


@click.command(help=__doc__)
@click.option("--seeds", default="1-200", show_default=True, help="FIRST-LAST, or one.")
@click.option("--at-once", default=16, show_default=True, help="Changes made side by side.")
def main(seeds: str, at_once: int) -> None:
    first, _, last = seeds.partition("-")
    changes = [draw_change(seed) for seed in range(int(first), int(last or first) + 1)]
    with tempfile.TemporaryDirectory(prefix="wukong-compare-plan-") as folder:
        bed_folder = Path(folder) / "bed"
        order = Order(nodes=0, owner=Identity.of(os.getpid()))
        state = supervisor.up(bed_folder, order, lambda line: click.echo(line, err=True))

        async def run() -> list[Comparison]:
            comparisons = []
            async for comparison in compare_all(state.kubeconfig, changes, at_once):
                comparisons.append(comparison)
                click.echo(f"{len(comparisons)} of {len(changes)}\r", nl=False, err=True)
            return comparisons

        try:
            comparisons = asyncio.run(run())
        finally:
            supervisor.down(bed_folder)
    click.echo(summarize(seeds, comparisons))
    for comparison in sorted(comparisons, key=lambda entry: entry.change.seed):
        if not comparison.is_equal:
            click.echo(f"\npython -m plan_comparison --seeds {comparison.change.seed}: {comparison.change.text}")
            click.echo(f"  real     {comparison.real}")
            for ending in sorted(set(comparison.planned), key=str):
                click.echo(f"  planned  {ending}")
    sys.exit(not all(comparison.is_equal for comparison in comparisons))


def summarize(seeds: str, comparisons: list[Comparison]) -> str:
    complete = sum(comparison.is_complete for comparison in comparisons)
    drawn = sum(comparison.is_drawn for comparison in comparisons)
    equal = sum(comparison.is_equal for comparison in comparisons)
    head = (
        "| seeds | changes | complete | stuck or short | where chance decides | as planned |\n|---|---|---|---|---|---|"
    )
    return f"{head}\n| {seeds} | {len(comparisons)} | {complete} | {len(comparisons) - complete} | {drawn} | {equal} |"


if __name__ == "__main__":
    main()
