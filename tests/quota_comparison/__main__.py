"""`make compare-quota`: random pods, claims, Services and workloads under quotas, limit ranges and pod security.

Each case is sent to a real API server and to the embedded one. Prints a table; ends with 1 if anything differs.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from pathlib import Path

import click

from quota_comparison.comparison import Comparison, compare
from testbed import supervisor
from testbed.processes import Identity
from testbed.pytest_plugin import Bed
from testbed.supervisor import Order

BATCH = 40


@click.command(help=__doc__)
@click.option("--seeds", default="1-250", show_default=True, help="FIRST-LAST, or one.")
def main(seeds: str) -> None:
    first, _, last = seeds.partition("-")
    chosen = range(int(first), int(last or first) + 1)
    with tempfile.TemporaryDirectory(prefix="wukong-compare-quota-") as folder:
        bed_folder = Path(folder) / "bed"
        state = supervisor.up(
            bed_folder, Order(nodes=0, owner=Identity.of(os.getpid())), lambda line: click.echo(line, err=True)
        )
        try:
            comparisons = asyncio.run(_compare(Bed(state.kubeconfig, state.seconds), chosen))
        finally:
            supervisor.down(bed_folder)
    click.echo(summarize(comparisons, seeds))
    for comparison in comparisons:
        if comparison.differences:
            click.echo(f"\nmake compare-quota ARGS='--seeds {comparison.case.seed}'")
            for text in comparison.differences:
                click.echo(f"  {text}")
    sys.exit(any(comparison.differences for comparison in comparisons))


async def _compare(bed: Bed, seeds: range) -> list[Comparison]:
    comparisons: list[Comparison] = []
    async with bed.client() as client:
        for start in range(0, len(seeds), BATCH):
            comparisons += await compare(client, seeds[start : start + BATCH])
            click.echo(f"{len(comparisons)}/{len(seeds)}", err=True)
    return comparisons


def summarize(comparisons: list[Comparison], seeds: str) -> str:
    objects = [answer for comparison in comparisons for answer in comparison.answers.objects]
    refused = [answer for answer in objects if isinstance(answer, str)]
    rows = [
        ("seeds", seeds),
        ("pods, claims and Services sent", len(objects)),
        ("refused by a limit range", sum(" per " in answer for answer in refused)),
        ("refused by pod security", sum("PodSecurity" in answer for answer in refused)),
        ("refused by a quota", sum("quota: " in answer for answer in refused)),
        (
            "defaulted by a limit range",
            sum(isinstance(answer, dict) and bool(answer.get("annotation")) for answer in objects),
        ),
        ("workloads", len(comparisons)),
        ("of them short of pods", sum(bool(comparison.answers.ending.failures) for comparison in comparisons)),
        ("quotas raised afterwards", sum(comparison.answers.raised is not None for comparison in comparisons)),
        ("cases that differ", sum(bool(comparison.differences) for comparison in comparisons)),
    ]
    return "\n".join(["| what | how many |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)])


if __name__ == "__main__":
    main()
