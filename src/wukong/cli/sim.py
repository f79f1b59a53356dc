"""`wukong sim`: an embedded cluster on virtual time, for what would take hours or a cluster of one's own to see."""

from __future__ import annotations

import click

from wukong.cli.verbs import Verb, VerbGroup

PARTS: dict[str, Verb] = {
    "run": Verb("wukong.cli.sim_run", "Play a scenario and tell what became of its workloads."),
    "soak": Verb("wukong.cli.sim_soak", "Play a scenario with many seeds, with faults, on all cores."),
}


@click.group("sim", cls=VerbGroup, verbs=PARTS)
def command() -> None:
    """Play scenarios in an embedded cluster, on virtual time."""
