"""`wukong capacity`: how many more pods like this one fit, where they would go, and why no more do."""

from __future__ import annotations

import click

from wukong.api.kinds import KINDS
from wukong.cli.inputs import options
from wukong.cli.inputs.manifest import read_manifest
from wukong.cli.inputs.scheduler import note_other_scheduler
from wukong.cli.inputs.source import Source, make_scheduler, read_source
from wukong.cli.views.console import note, progress
from wukong.cli.views.results import show_capacity
from wukong.cluster import pause_garbage_collector
from wukong.engine.capacity import count_capacity
from wukong.engine.explain import list_unmodelled


@click.command("capacity")
@options.snapshot
@options.manifest(required=True)
@click.option("--max", "limit", type=click.IntRange(min=1), metavar="N", help="Stop after this many.")
@options.kubeconfig
@options.context
@options.kubernetes
@options.scheduler_config
@options.output
def command(
    snapshot: str | None,
    manifest: str,
    limit: int | None,
    kubeconfig: str,
    context: str,
    kubernetes: str | None,
    scheduler_config: str | None,
    output: str | None,
) -> None:
    """Count how many more pods like this one fit, and why no more do.

    Copies of the pod are placed one after the other, each where kube-scheduler would put it, until one fits nowhere.
    Nothing is evicted for them. The snapshot is what `kubectl get` writes:

    \b
      kubectl get nodes,pods,ns,svc,rc,rs,sts,deploy,ds,pdb,pc,pvc,pv -A -o json > cluster.json

    \b
    Example:
      wukong capacity -s cluster.json -f web.yaml
      wukong capacity -s cluster.json -f web.yaml --max 100 -o json
    """
    options.refuse_stdin_twice(snapshot=snapshot, filename=manifest, scheduler_config=scheduler_config)
    with pause_garbage_collector(), progress("Placing") as report_progress:
        source = Source(snapshot, kubeconfig, context)
        cluster = read_source(source)
        question = read_manifest(manifest, cluster.objects)
        scheduler = make_scheduler(cluster, kubernetes, scheduler_config)
        note_other_scheduler(question.pod)
        if any(cluster.objects.of(kind.group_kind) for kind in KINDS if kind.origin == "ours"):
            note("placement policies are not counted with: as many fit by the scheduler's own plugins.")
        capacity = count_capacity(scheduler, question.pod, limit, report_progress)
    for text in list_unmodelled(question.pod):
        note(f"{text}.")
    show_capacity(capacity, question.name, output)
