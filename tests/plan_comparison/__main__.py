"""`python -m plan_comparison`: random changes planned from a snapshot of a real control plane, and then made there.

What is advised for those that are stuck is followed there, too, each piece from a fresh start, and must complete.
Prints a table; ends with 1 if anything is not as one of the plays said, or if what was advised does not complete.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from pathlib import Path

import click

from plan_comparison.changes import RandomChange, draw_change
from plan_comparison.comparison import SEEDS, Comparison, compare_all, plan_endings
from testbed import supervisor
from testbed.processes import Identity
from testbed.supervisor import Order


@click.command(help=__doc__)
@click.option("--seeds", default="1-200", show_default=True, help="FIRST-LAST, or one.")
@click.option("--at-once", default=16, show_default=True, help="Changes made side by side.")
@click.option("--advice/--no-advice", default=True, show_default=True, help="Follow what is advised.")
@click.option("--only-stuck", is_flag=True, help="Leave out changes of which a first plan says that they complete.")
def main(seeds: str, at_once: int, *, advice: bool, only_stuck: bool) -> None:
    first, _, last = seeds.partition("-")
    changes = [draw_change(seed) for seed in range(int(first), int(last or first) + 1)]
    if only_stuck:
        changes = [change for change in changes if is_stuck(change)]
    with tempfile.TemporaryDirectory(prefix="wukong-compare-plan-") as folder:
        bed_folder = Path(folder) / "bed"
        order = Order(nodes=0, owner=Identity.of(os.getpid()))
        state = supervisor.up(bed_folder, order, lambda line: click.echo(line, err=True))

        async def run() -> list[Comparison]:
            comparisons = []
            async for comparison in compare_all(state.kubeconfig, changes, at_once, with_advice=advice):
                comparisons.append(comparison)
                click.echo(f"{len(comparisons)} of {len(changes)}: {describe(comparison)}", err=True)
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
        for followed in comparison.advice:
            if not followed.ending.is_complete:
                click.echo(f"\npython -m plan_comparison --seeds {comparison.change.seed}: {comparison.change.text}")
                click.echo(f"  advised  {followed.title}\n  real     {followed.ending}")
    sys.exit(not all(comparison.is_right for comparison in comparisons))


def describe(comparison: Comparison) -> str:
    """In a line, so that of a run that is broken off something is known."""
    completed = sum(followed.ending.is_complete for followed in comparison.advice)
    ending = (
        "complete" if comparison.is_complete else f"stuck, {completed} of {len(comparison.advice)} advised complete"
    )
    return f"seed {comparison.change.seed} {'as planned' if comparison.is_equal else 'NOT as planned'}, {ending}"


def is_stuck(change: RandomChange) -> bool:
    (play,) = plan_endings(change, [*change.nodes, *change.before], SEEDS[:1])
    return play.kind != "completes"


def summarize(seeds: str, comparisons: list[Comparison]) -> str:
    stuck = [comparison for comparison in comparisons if not comparison.is_complete]
    advised = sum(bool(comparison.advice) for comparison in stuck)
    followed = [entry.ending for comparison in stuck for entry in comparison.advice]
    completed = sum(ending.is_complete for ending in followed)
    drawn = sum(comparison.is_drawn for comparison in comparisons)
    equal = sum(comparison.is_equal for comparison in comparisons)
    columns = {
        "seeds": seeds,
        "changes": len(comparisons),
        "complete": len(comparisons) - len(stuck),
        "stuck or short": len(stuck),
        "where chance decides": drawn,
        "as planned": equal,
        "of the stuck with advice": advised,
        "pieces of advice": len(followed),
        "of them completed": completed,
    }
    rows = (columns, ["---"] * len(columns), map(str, columns.values()))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


if __name__ == "__main__":
    main()
