"""`make compare-vm`: made-up Wukongs through real virt-api and virt-controller, beside what we build. A table.

Ends with 1 if anything differs; a line replays each difference.
"""

from __future__ import annotations

import asyncio
import secrets
import sys
import tempfile
from pathlib import Path

import click

from testbed import supervisor
from testbed.client import Client
from testbed.errors import TestbedError
from testbed.pytest_plugin import Bed, make_namespace
from testbed.supervisor import Order
from vm_comparison.case import Comparison, compare
from vm_comparison.machinery import component_running, furnish

AT_ONCE = 4


@click.command(help=__doc__)
@click.option("--seeds", default="1-60", show_default=True, help="FIRST-LAST, or one.")
def main(seeds: str) -> None:
    first, _, last = seeds.partition("-")
    chosen = range(int(first), int(last or first) + 1)
    folder = Path(tempfile.mkdtemp(prefix="wukong-compare-vm-"))
    click.echo(f"control plane with KubeVirt; logs in {folder}", err=True)
    state = supervisor.up(folder / "bed", Order(nodes=3, kubevirt=True), lambda line: click.echo(line, err=True))
    try:
        comparisons = asyncio.run(_compare_all(Bed(state.kubeconfig, state.seconds), folder, chosen))
    finally:
        supervisor.down(folder / "bed", keep_logs=True)
    differing = [comparison for comparison in comparisons if comparison.differences]
    vms, pods = sum(item.vms for item in comparisons), sum(item.pods for item in comparisons)
    click.echo("| seeds | Wukongs | VirtualMachines as built | pods with every rule | differing seeds |")
    click.echo("|---|---|---|---|---|")
    click.echo(f"| {seeds} | {len(comparisons)} | {vms} | {pods} | {len(differing)} |")
    for comparison in differing:
        click.echo(f"\nmake compare-vm ARGS='--seeds {comparison.seed}'")
        for line in comparison.differences:
            click.echo(f"  {line}")
    sys.exit(bool(differing))


async def _compare_all(bed: Bed, folder: Path, seeds: range) -> list[Comparison]:
    kubeconfig = await furnish(bed, folder)
    slots, comparisons = asyncio.Semaphore(AT_ONCE), []

    async def compare_one(client: Client, seed: int) -> None:
        async with slots:
            namespace = f"compare-{seed}-{secrets.token_hex(3)}"
            await make_namespace(bed, namespace)
            try:
                comparison = await compare(client, namespace, seed, is_placeable=seed % 2 == 1)
            except TestbedError as error:
                comparison = Comparison(seed, 0, 0, [str(error)])
            comparisons.append(comparison)
            click.echo(f"{len(comparisons)}/{len(seeds)} seed {seed}", err=True)

    with component_running(kubeconfig, folder / "vm.log"):
        async with bed.client() as client, asyncio.TaskGroup() as group:
            for seed in seeds:
                group.create_task(compare_one(client, seed))
    return sorted(comparisons)


if __name__ == "__main__":
    main()
