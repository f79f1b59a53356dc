"""`wukong sim`: an embedded cluster on virtual time, for what would take hours or a cluster of one's own to see."""

from __future__ import annotations

import click

from wukong.cli.command_group import Verb, VerbGroup

PARTS: dict[str, Verb] = {
    "run": Verb("wukong.cli.verbs.sim_run", "Play a scenario and tell what became of its workloads."),
    "soak": Verb("wukong.cli.verbs.sim_soak", "Play a scenario with many seeds, with faults, on all cores."),
}


@click.group("sim", cls=VerbGroup, verbs=PARTS)
def command() -> None:
    """Play scenarios in an embedded cluster, on virtual time.

    \b
    Examples:
      wukong sim run examples/sim/deadlock.yaml                 # a rollout that never ends, and why
      wukong sim run -s cluster.json.gz -f deployment.yaml      # what this change would do to a cluster
      wukong sim run examples/sim/demo.yaml --speed 6x          # watch it
      wukong sim soak examples/sim/soak.yaml --seeds 1-200      # the same with many seeds, under faults
    """
