"""`make compare-vm`: Wukongs and virtual machines on real KubeVirt, beside what we build and what we play. Two tables.

Objects: made-up Wukongs through `wukong run --components vm`, virt-api and virt-controller. Stories: virtual machines
that are to leave a node, by eviction, drain, taint or migration. Ends with 1 if anything differs; a line replays it.
"""

from __future__ import annotations

import asyncio
import secrets
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import TypeVar

import click

from testbed import supervisor
from testbed.errors import TestbedError
from testbed.pytest_plugin import Bed, make_namespace
from testbed.supervisor import Order
from vm_comparison.case import Comparison, compare
from vm_comparison.machinery import component_running, furnish
from vm_comparison.story_comparison import StoryComparison, compare_stories

T = TypeVar("T")
OBJECTS_AT_ONCE = 4
STORIES_AT_ONCE = 2  # each migrates two at a time, and the cluster allows five


@click.command(help=__doc__)
@click.option("--objects", default="1-60", show_default=True, help="Seeds, FIRST-LAST or one; none for no objects.")
@click.option("--stories", default="1-40", show_default=True, help="Seeds likewise.")
def main(objects: str, stories: str) -> None:
    folder = Path(tempfile.mkdtemp(prefix="wukong-compare-vm-"))
    click.echo(f"control plane with KubeVirt; logs in {folder}", err=True)
    state = supervisor.up(folder / "bed", Order(nodes=0, kubevirt=True), lambda line: click.echo(line, err=True))
    bed = Bed(state.kubeconfig, state.seconds)
    try:
        is_same = [
            asyncio.run(_compare_objects(bed, folder, _seeds(objects), objects)),
            asyncio.run(_compare_stories(bed, _seeds(stories), stories)),
        ]
    finally:
        supervisor.down(folder / "bed", keep_logs=True)
    sys.exit(not all(is_same))


def _seeds(text: str) -> range:
    if text == "none":
        return range(0)
    first, _, last = text.partition("-")
    if not first.isdecimal() or not (last or first).isdecimal():
        raise click.BadParameter(f"expected seeds such as 1-60, 7 or none, got {text!r}")
    return range(int(first), int(last or first) + 1)


async def _compare_objects(bed: Bed, folder: Path, seeds: range, title: str) -> bool:
    if not seeds:
        return True
    kubeconfig = await furnish(bed, folder)
    with component_running(kubeconfig, folder / "vm.log"):
        async with bed.client() as client:

            async def compare_one(namespace: str, seed: int) -> Comparison:
                try:
                    return await compare(client, namespace, seed, is_placeable=seed % 2 == 1)
                except TestbedError as error:
                    return Comparison(seed, 0, 0, [str(error)])

            comparisons = sorted(await _run_all(bed, seeds, OBJECTS_AT_ONCE, compare_one))
    differing = [comparison for comparison in comparisons if comparison.differences]
    vms, pods = sum(item.vms for item in comparisons), sum(item.pods for item in comparisons)
    click.echo("| seeds | Wukongs | VirtualMachines as built | pods with every rule | differing seeds |")
    click.echo("|---|---|---|---|---|")
    click.echo(f"| {title} | {len(comparisons)} | {vms} | {pods} | {len(differing)} |")
    for comparison in differing:
        click.echo(f"\nmake compare-vm ARGS='--objects {comparison.seed} --stories none'")
        for line in comparison.differences:
            click.echo(f"  {line}")
    return not differing


async def _compare_stories(bed: Bed, seeds: range, title: str) -> bool:
    if not seeds:
        return True
    async with bed.client() as client:

        async def compare_one(namespace: str, seed: int) -> StoryComparison:
            return await compare_stories(client, namespace, seed)

        comparisons = await _run_all(bed, seeds, STORIES_AT_ONCE, compare_one)
    differing = [comparison for comparison in comparisons if not comparison.is_same]
    click.echo("| seeds | happening | cases | the same story |")
    click.echo("|---|---|---|---|")
    for happening in sorted({comparison.case.happening for comparison in comparisons}):
        cases = [comparison for comparison in comparisons if comparison.case.happening == happening]
        click.echo(f"| {title} | {happening} | {len(cases)} | {sum(case.is_same for case in cases)} |")
    for comparison in differing:
        click.echo(f"\nmake compare-vm ARGS='--objects none --stories {comparison.case.seed}'")
        click.echo(comparison.describe())
    return not differing


async def _run_all(
    bed: Bed, seeds: Iterable[int], at_once: int, compare_one: Callable[[str, int], Awaitable[T]]
) -> list[T]:
    """All seeds, some at a time, each in a namespace of its own."""
    slots, done, chosen = asyncio.Semaphore(at_once), 0, list(seeds)

    async def run(seed: int) -> T:
        nonlocal done
        async with slots:
            namespace = f"seed-{seed}-{secrets.token_hex(3)}"
            await make_namespace(bed, namespace)
            result = await compare_one(namespace, seed)
        done += 1
        click.echo(f"{done}/{len(chosen)} seed {seed}", err=True)
        return result

    return list(await asyncio.gather(*(run(seed) for seed in chosen)))


if __name__ == "__main__":
    main()
