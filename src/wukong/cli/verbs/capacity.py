"""`wukong capacity`: how many more pods like this one fit, where they would go, and why no more do."""

from __future__ import annotations

from typing import Any

import click

from wukong.app.policy_capacity import count_policy_capacity
from wukong.cli.inputs import options
from wukong.cli.inputs.extender import PlacingOptions, placing_options, read_extender_question
from wukong.cli.inputs.manifest import read_manifest
from wukong.cli.inputs.namespaces import choose_namespace
from wukong.cli.inputs.scheduler import note_other_scheduler
from wukong.cli.inputs.source import Source, make_scheduler, read_source
from wukong.cli.views.console import note, progress
from wukong.cli.views.results import show_capacity
from wukong.cluster import pause_garbage_collector
from wukong.engine.capacity import copy_claims, count_capacity
from wukong.engine.explain import list_unmodelled


@click.command("capacity")
@options.snapshot
@options.manifest(required=True)
@options.namespace
@click.option("--max", "limit", type=click.IntRange(min=1), metavar="N", help="Stop after this many.")
@options.kubeconfig
@options.context
@options.kubernetes
@options.scheduler_config
@placing_options
@options.output
def command(
    snapshot: str | None,
    manifest: str,
    namespace: str | None,
    limit: int | None,
    kubeconfig: str,
    context: str,
    kubernetes: str | None,
    scheduler_config: str | None,
    output: str | None,
    **placing: Any,
) -> None:
    """Count how many more pods like this one fit, and why no more do.

    Copies of the pod are placed one after the other, each where kube-scheduler would put it, until one fits nowhere.
    Nothing is evicted for them. Where there are placement policies, in the cluster or by --policy, each is placed as by
    a kube-scheduler that asks Wukong's extender. The snapshot is what `kubectl get` writes:

    \b
      kubectl get nodes,pods,ns,svc,rc,rs,sts,deploy,ds,pdb,pc,pvc,pv,sc,csinodes,csidrivers,\\
      csistoragecapacities,volumeattachments -A -o json > cluster.json

    \b
    Example:
      wukong capacity -s cluster.json -f web.yaml
      wukong capacity -s cluster.json -f web.yaml --max 100 -o json
    """
    placing_options = PlacingOptions(**placing)
    placing_options.refuse_stdin_twice(snapshot=snapshot, filename=manifest, scheduler_config=scheduler_config)
    with pause_garbage_collector(), progress("Placing") as report_progress:
        source = Source(snapshot, kubeconfig, context)
        chosen = choose_namespace(namespace, source)
        cluster = read_source(source)
        question = read_manifest(manifest, cluster.objects, chosen)
        scheduler = make_scheduler(cluster, kubernetes, scheduler_config, takes_extenders=True)
        asked = read_extender_question(
            placing_options, source, cluster.objects, scheduler.profile, question.pod, namespace=chosen
        )
        note_other_scheduler(question.pod)
        if asked is None:
            copies = copy_claims(question.pod, question.own_claims) if question.own_claims else None
            capacity = count_capacity(scheduler, question.pod, limit, report_progress, copies)
        else:
            if question.own_claims:
                note("its copies are taken to share their claims: by placement policies no others are counted.")
            capacity = count_policy_capacity(scheduler, question.pod, asked, limit, report_progress)
    for text in list_unmodelled(question.pod):
        note(f"{text}.")
    show_capacity(capacity, question.name, output)
