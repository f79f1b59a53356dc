"""`wukong manifests`: what a cluster needs before Wukong can work there, printed for `kubectl apply -f -`.

One subcommand per part, each in a module of its own; a line in the table adds one.
"""

from __future__ import annotations

import click

from wukong.cli.command_group import Verb, VerbGroup

PARTS: dict[str, Verb] = {
    "admission": Verb(
        "wukong.cli.verbs.manifests_admission", "Print the admission webhooks: workload, rights, configurations."
    ),
    "agent": Verb(
        "wukong.cli.verbs.manifests_agent", "Print who asks the cloud on every node: DaemonSet, rights, policy."
    ),
    "crds": Verb("wukong.cli.verbs.manifests_crds", "Print the CustomResourceDefinitions of Wukong's kinds."),
    "extender": Verb(
        "wukong.cli.verbs.manifests_extender", "Print the scheduler extender: workload, rights, certificates."
    ),
    "ledger": Verb("wukong.cli.verbs.manifests_ledger", "Print who records replicas: volume, workload, rights."),
    "reader": Verb("wukong.cli.verbs.manifests_reader", "Print the rights of who only asks: a role that reads."),
    "rollout": Verb("wukong.cli.verbs.manifests_rollout", "Print the controller of Rollouts: kind, workload, rights."),
    "scheduler": Verb("wukong.cli.verbs.manifests_scheduler", "Print our scheduler: kinds, workload, rights."),
    "spot": Verb(
        "wukong.cli.verbs.manifests_spot", "Print who moves pods away from leaving nodes: kind, workload, rights."
    ),
    "vm": Verb("wukong.cli.verbs.manifests_vm", "Print the controller of Wukongs: kind, workload, rights."),
}


@click.group("manifests", cls=VerbGroup, verbs=PARTS)
def command() -> None:
    """Print what to install in a cluster."""
