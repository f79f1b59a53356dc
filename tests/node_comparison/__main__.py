"""`make compare-nodes`: random Deployments that need nodes, with the real Karpenter on the test bed and embedded.

As many nodes must come in nine of ten cases. Prints a table; ends with 1 if fewer are alike. Of a case that is not,
other seeds are played: where one of them is alike, chance decides, for kube-scheduler does not place pods where
Karpenter meant them to go. Karpenter is built first, once, and runs with its defaults; each case has a NodePool of one
to four instance types.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from pathlib import Path

import click

from node_comparison.random_case import Case, draw_case
from node_comparison.sides import Endings, play_embedded, play_real
from testbed import supervisor
from testbed.karpenter.installation import running
from testbed.processes import Identity
from testbed.pytest_plugin import Bed
from testbed.supervisor import Order

AT_ONCE = 10
LEAST_ALIKE = 0.9
OTHER_SEEDS = range(1, 16)


@click.command(help=__doc__)
@click.option("--seeds", default="1-40", show_default=True, help="FIRST-LAST, or one.")
def main(seeds: str) -> None:
    first, _, last = seeds.partition("-")
    cases = [draw_case(seed) for seed in range(int(first), int(last or first) + 1)]
    with tempfile.TemporaryDirectory(prefix="wukong-compare-nodes-") as folder:
        bed_folder = Path(folder) / "bed"
        order = Order(nodes=0, owner=Identity.of(os.getpid()))
        state = supervisor.up(bed_folder, order, say)
        try:
            with running(state.kubeconfig, Path(folder), say):
                real = asyncio.run(play_all(Bed(state.kubeconfig, state.seconds), cases))
        finally:
            supervisor.down(bed_folder)
    click.echo("| seed | Karpenter: nodes, waiting | ours | alike |\n|---|---|---|---|")
    alike = 0
    for case, endings in zip(cases, real, strict=True):
        ours = play_embedded(case)
        alike += is_alike(ours, endings)
        verdict = "yes" if is_alike(ours, endings) else find_seed(case, endings)
        click.echo(f"| {case.seed} | {describe(endings)} | {describe(ours)} | {verdict} |")
    click.echo(f"\n{alike} of {len(cases)} cases are alike.")
    sys.exit(alike < LEAST_ALIKE * len(cases))


def is_alike(ours: Endings, real: Endings) -> bool:
    return [ending.nodes for ending in ours] == [ending.nodes for ending in real]


def find_seed(case: Case, real: Endings) -> str:
    """With which other seed ours is as the real one."""
    alike = (seed for seed in OTHER_SEEDS if is_alike(play_embedded(case, seed), real))
    seed = next(alike, None)
    return "no" if seed is None else f"with seed {seed}"


def say(line: str) -> None:
    click.echo(line, err=True)


async def play_all(bed: Bed, cases: list[Case]) -> list[Endings]:
    slots = asyncio.Semaphore(AT_ONCE)

    async def play(case: Case) -> Endings:
        async with slots:
            return await play_real(client, case)

    async with bed.client() as client:
        return await asyncio.gather(*(play(case) for case in cases))


def describe(endings: Endings) -> str:
    return " → ".join(f"{ending.nodes}, {ending.waiting}" for ending in endings)


if __name__ == "__main__":
    main()
