"""`python -m testbed latencies`: how long each controller of a real control plane takes, as a table of quantiles."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from testbed import supervisor
from testbed.client import Client
from testbed.latencies.audit import (
    CONTROLLERS,
    REACTIONS,
    SHARES,
    Write,
    measure_hearing,
    measure_writing,
    quantiles_of,
    read_writes,
)
from testbed.latencies.rounds import busy_machine, play_round
from testbed.processes import Identity
from testbed.supervisor import Order

NODES = 4


@click.command(help="Measure how long the controllers of a real control plane take, from its audit log.")
@click.option("--rounds", type=click.IntRange(min=1), default=20, show_default=True, help="Each takes about 8 s.")
@click.option("--at-once", type=click.IntRange(min=1), default=2, show_default=True, help="Rounds side by side.")
@click.option("--busy", type=click.IntRange(min=0), default=0, show_default=True, help="Busy processes beside them.")
def latencies(rounds: int, at_once: int, busy: int) -> None:
    with tempfile.TemporaryDirectory(prefix="wukong-latencies-") as folder:
        writes = asyncio.run(_measure(Path(folder) / "bed", rounds, at_once, busy))
    load = ", ".join(f"{number:.1f}" for number in os.getloadavg())
    click.echo(f"{rounds} rounds, {at_once} at once, {os.cpu_count()} cores, load at the end {load}. Milliseconds:")
    for line in render(writes):
        click.echo(line)


def render(writes: Sequence[Write]) -> Iterator[str]:
    heads = [f"p{share * 100:g}" for share in SHARES]
    yield f"{'FROM A WRITE UNTIL THE NEXT ARRIVES':60} {'NUMBER':>6} " + " ".join(f"{head:>7}" for head in heads)
    for reaction in REACTIONS:
        yield _row(f"{reaction.controller}: {reaction.name}", measure_hearing(writes, reaction))
    yield _row("all", [seconds for reaction in REACTIONS for seconds in measure_hearing(writes, reaction)])
    yield ""
    yield f"{'A WRITE IN THE SERVER, BY':60} {'NUMBER':>6} " + " ".join(f"{head:>7}" for head in heads)
    for by in sorted(CONTROLLERS):
        yield _row(by, measure_writing(writes, by))
    yield _row("all", [seconds for by in sorted(CONTROLLERS) for seconds in measure_writing(writes, by)])


def _row(name: str, seconds: Sequence[float]) -> str:
    numbers = " ".join(f"{number:7.1f}" for number in quantiles_of(seconds))
    return f"{name:60} {len(seconds):6} {numbers}".rstrip()


async def _measure(folder: Path, rounds: int, at_once: int, busy: int) -> list[Write]:
    own = Identity.of(os.getpid())
    state = supervisor.up(folder, Order(nodes=NODES, owner=own), lambda line: click.echo(line, err=True))
    try:
        async with Client.of(state.kubeconfig) as client:
            nodes = await client.get("/api/v1/nodes")
            names = [node["metadata"]["name"] for node in nodes["items"]]
            async with busy_machine(busy):
                await _play_rounds(client, names, range(rounds), at_once)
        return read_writes((folder / "logs" / "audit.log").read_bytes().splitlines())
    finally:
        supervisor.down(folder)


async def _play_rounds(client: Client, nodes: list[str], rounds: range, at_once: int) -> None:
    """Those of one worker follow each other, and only it cordons its node."""

    async def play(worker: int) -> None:
        for number in rounds[worker::at_once]:
            await play_round(client, f"latency-{number}", nodes[worker % len(nodes)])
            click.echo(f"round {number + 1} is over", err=True)

    async with asyncio.TaskGroup() as tasks:
        for worker in range(at_once):
            tasks.create_task(play(worker))
