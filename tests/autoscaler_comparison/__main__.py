"""`make compare-autoscaler`: random HorizontalPodAutoscalers, pods and usage, on a real control plane and embedded.

What the autoscaler decides and says must be the same. Prints a table; ends with 1 if anything differs.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections import Counter as Tally
from pathlib import Path

import click

from autoscaler_comparison.random_case import draw_case
from autoscaler_comparison.sides import compare, play_embedded
from testbed import supervisor
from testbed.processes import Identity
from testbed.pytest_plugin import Bed
from testbed.supervisor import Order

AT_ONCE = 20


@click.command(help=__doc__)
@click.option("--seeds", default="1-150", show_default=True, help="FIRST-LAST, or one.")
def main(seeds: str) -> None:
    first, _, last = seeds.partition("-")
    cases = [draw_case(seed) for seed in range(int(first), int(last or first) + 1)]
    with tempfile.TemporaryDirectory(prefix="wukong-compare-autoscaler-") as folder:
        bed_folder = Path(folder) / "bed"
        state = supervisor.up(
            bed_folder, Order(nodes=0, owner=Identity.of(os.getpid())), lambda line: click.echo(line, err=True)
        )
        bed = Bed(state.kubeconfig, state.seconds)

        async def run() -> dict[int, list[str]]:
            async with bed.client() as client:
                return await compare(client, cases, AT_ONCE)

        try:
            differences = asyncio.run(run())
        finally:
            supervisor.down(bed_folder)
    endings = [ending for case in cases for ending in play_embedded(case)]
    reasons = Tally(reason for ending in endings for _, reason, _ in ending.conditions.values())
    click.echo("| seeds | endings | cases that differ |\n|---|---|---|")
    click.echo(f"| {seeds} | {len(endings)} | {sum(map(bool, differences.values()))} |\n")
    click.echo("| reason | endings |\n|---|---|")
    for reason, count in sorted(reasons.items()):
        click.echo(f"| {reason} | {count} |")
    for seed, texts in differences.items():
        if texts:
            click.echo(f"\nmake compare-autoscaler ARGS='--seeds {seed}'")
            for text in texts:
                click.echo(f"  {text}")
    sys.exit(any(differences.values()))


if __name__ == "__main__":
    main()
