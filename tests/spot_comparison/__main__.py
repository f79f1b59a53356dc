"""`python -m spot_comparison`: two spot nodes are reclaimed on real control planes, side by side: a table.

With S2 all other nodes are full, and new ones come 40 s after a pod waits for one.
`wukong` has `wukong run --components spot` beside it, `drain` is what kubectl drain does, with `nothing` nobody cares.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click

from spot_comparison.component import ACCOUNT, component_running, furnish_component
from spot_comparison.reclaim import Result, drain, play
from spot_comparison.workloads import REPLICAS
from testbed import supervisor
from testbed.processes import Identity
from testbed.pytest_plugin import Bed
from testbed.supervisor import Order

MODES = ("wukong", "drain", "nothing")


@click.command(help=__doc__)
@click.option("--scenario", type=click.Choice(["S1", "S2"]), default="S1", show_default=True, help="Room, or none yet.")
@click.option("--modes", default=",".join(MODES), show_default=True, help="Some of them, by commas.")
def main(scenario: str, modes: str) -> None:
    chosen = modes.split(",")
    if unknown := sorted(set(chosen) - set(MODES)):
        raise click.UsageError(f"--modes: unknown {', '.join(unknown)}. Known: {', '.join(MODES)}.")
    with tempfile.TemporaryDirectory(prefix="wukong-compare-spot-") as folder:
        click.echo(describe(asyncio.run(play_all(chosen, Path(folder), is_full=scenario == "S2"))))


async def play_all(modes: list[str], folder: Path, *, is_full: bool) -> list[Result]:
    with contextlib.ExitStack() as stack:
        beds = [stack.enter_context(running_bed(folder / mode)) for mode in modes]
        return await asyncio.gather(
            *(play_mode(mode, bed, folder, is_full=is_full) for mode, bed in zip(modes, beds, strict=True))
        )


@contextlib.contextmanager
def running_bed(folder: Path) -> Iterator[Bed]:
    state = supervisor.up(
        folder, Order(nodes=0, owner=Identity.of(os.getpid())), lambda line: click.echo(line, err=True)
    )
    try:
        yield Bed(state.kubeconfig, state.seconds)
    finally:
        supervisor.down(folder)


async def play_mode(mode: str, bed: Bed, folder: Path, *, is_full: bool) -> Result:
    if mode == "drain":
        return await play(bed, mode, drain, is_full=is_full)
    if mode == "nothing":
        return await play(bed, mode, is_full=is_full)
    kubeconfig = await furnish_component(bed, folder)
    with component_running(kubeconfig, folder / "run.log"):
        return await play(bed, mode, evictor=ACCOUNT, is_full=is_full)


def describe(results: list[Result]) -> str:
    rows: list[tuple[str, list[str]]] = [
        ("pods lost at the deadline", [str(len(result.lost)) for result in results]),
        ("missing replica-seconds", [f"{result.missing_seconds:.0f}" for result in results]),
        ("evictions refused by a budget", [str(result.refused) for result in results]),
        ("last pod that left in time", [f"{result.last_left:.0f} s" for result in results]),
        ("whole again, after the notice", [f"{result.whole_after:.0f} s" for result in results]),
    ]
    for name in REPLICAS:
        losses = [result.losses[name] for result in results]
        rows.append((name, [f"{loss.fewest}; {loss.short_seconds:.0f} s" for loss in losses]))
    head = ["| | " + " | ".join(result.mode for result in results) + " |", "|---" * (len(results) + 1) + "|"]
    return "\n".join([*head, *(f"| {title} | " + " | ".join(cells) + " |" for title, cells in rows)])


if __name__ == "__main__":
    main()
