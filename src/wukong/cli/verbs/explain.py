"""`wukong explain`: how every node fares for a pod, plugin by plugin; where it goes, or what would help."""

from __future__ import annotations

from typing import Any, NamedTuple

import click
import msgspec

from wukong.api.core import Pod
from wukong.api.objects import Objects
from wukong.app.extender_question import ExtenderQuestion
from wukong.cli.inputs import options
from wukong.cli.inputs.extender import PlacingOptions, placing_options, read_extender_question
from wukong.cli.inputs.manifest import read_manifest
from wukong.cli.inputs.scheduler import note_other_scheduler
from wukong.cli.inputs.source import Source, make_scheduler, read_source
from wukong.cli.views.console import name_some
from wukong.cli.views.results import show_explanation
from wukong.cluster import pause_garbage_collector
from wukong.engine import Scheduler
from wukong.engine.explain import Explanation, explain
from wukong.errors import InputError, nearest
from wukong.replies.extender.plugin import add_extender
from wukong.replies.extender.policy_report import PolicyReport, build_report


class Target(NamedTuple):
    pod: Pod
    name: str
    key: str = ""  # of the pod in the snapshot, to be taken away before it is placed again
    runs_on: str = ""


@click.command("explain")
@click.argument("pod", required=False, metavar="[pod/NAMESPACE/NAME]")
@options.snapshot
@options.manifest(required=False)
@options.kubeconfig
@options.context
@options.kubernetes
@options.scheduler_config
@placing_options
@options.output
def command(
    pod: str | None,
    snapshot: str | None,
    manifest: str | None,
    kubeconfig: str,
    context: str,
    kubernetes: str | None,
    scheduler_config: str | None,
    output: str | None,
    **placing: Any,
) -> None:
    """Show how every node fares for a pod, rule by rule.

    The pod is one of the snapshot (pod/NAMESPACE/NAME) or a manifest (-f). A pod that runs already is placed again,
    as if it were not there. For a pod that fits nowhere: the reasons, and each single change that would make it fit.
    Nodes that every rule judges alike share a line; -o wide has a line for every node.

    Where there are placement policies, in the cluster or by --policy, it is decided as by a kube-scheduler that asks
    Wukong's extender: the column EXT has the points it adds, and below is what they are made of.

    \b
    Example:
      wukong explain -s cluster.json pod/shop/web-7d9f-x2x
      wukong explain -s cluster.json -f stuck.yaml
      wukong explain -s cluster.json -f web.yaml --policy policy.yaml
    """
    asked = PlacingOptions(**placing)
    options.refuse_stdin_twice(
        snapshot=snapshot,
        filename=manifest,
        scheduler_config=scheduler_config,
        prices=asked.prices,
        latencies=asked.latencies,
        policy="-" if "-" in asked.policies else None,
    )
    if (pod is None) == (manifest is None):
        raise click.UsageError("Name one pod: pod/NAMESPACE/NAME for one of the snapshot, or -f FILE.")
    with pause_garbage_collector():
        source = Source(snapshot, kubeconfig, context)
        found = read_source(source)
        target = (
            _from_manifest(manifest, found.objects)
            if manifest
            else _from_cluster(pod or "", found.objects, source.place)
        )
        scheduler = make_scheduler(found, kubernetes, scheduler_config, takes_extenders=True)
        question = read_extender_question(asked, source, found.objects, scheduler.profile, target.pod, target.key)
        note_other_scheduler(target.pod)
        explanation, report = _explain(_without(scheduler, target.key), target.pod, question)
    show_explanation(explanation, target.name, target.runs_on, output, report)


def _explain(
    scheduler: Scheduler, pod: Pod, question: ExtenderQuestion | None
) -> tuple[Explanation, PolicyReport | None]:
    if question is None:
        return explain(scheduler, pod), None
    alone = scheduler.decide(pod)
    extended, plugin = add_extender(scheduler, question.extender, question.entry, question.now)
    explanation = explain(extended, pod)
    return explanation, build_report(plugin, extended.view_of(pod), pod, alone)


def _from_manifest(path: str, objects: Objects) -> Target:
    question = read_manifest(path, objects)
    return Target(question.pod, question.name)


def _from_cluster(text: str, objects: Objects, place: str) -> Target:
    """The pod with this name, as it was before it got its node."""
    key = _parse_key(text)
    placed_pod = next((pod for pod in objects.pods if pod.key == key), None)
    if placed_pod is None:
        raise InputError(f"{place}: no pod {key} there.{_suggest_pods(key, objects)}")
    replace = msgspec.structs.replace
    meta = replace(placed_pod.metadata, deletion_timestamp=None)
    unbound = replace(placed_pod, metadata=meta, spec=replace(placed_pod.spec, node_name=""))
    return Target(unbound, f"Pod {key}", key, placed_pod.spec.node_name)


def _suggest_pods(key: str, objects: Objects) -> str:
    """Return a hint: pods whose names begin like the key, or else the nearest name."""
    keys = [pod.key for pod in objects.pods]
    longer = [candidate for candidate in keys if candidate.startswith(key)]
    if longer:
        return f" There is {name_some(sorted(longer))}."
    namespace = key.partition("/")[0]
    neighbours = [candidate for candidate in keys if candidate.partition("/")[0] == namespace]
    return nearest(key, neighbours) if neighbours else f" The namespace {namespace} has no pods."


def _parse_key(text: str) -> str:
    kind, *names = text.split("/")
    if kind not in ("pod", "pods", "po") or len(names) not in (1, 2) or not all(names):
        raise InputError(f"{text}: expected pod/NAMESPACE/NAME, or pod/NAME in the namespace default.")
    return "/".join(names if len(names) == 2 else ["default", *names])


def _without(scheduler: Scheduler, key: str) -> Scheduler:
    if key not in scheduler.snapshot.pods:
        return scheduler
    fork = scheduler.snapshot.fork()
    fork.forget(key)
    return Scheduler(fork, scheduler.profile)
