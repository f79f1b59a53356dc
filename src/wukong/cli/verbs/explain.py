"""`wukong explain`: how every node fares for a pod, plugin by plugin; where it goes, or what would help."""

from __future__ import annotations

from typing import Any, NamedTuple

import click
import msgspec

from wukong.api.core import Pod
from wukong.api.kinds import WUKONGS
from wukong.api.objects import Objects
from wukong.api.vm import Wukong
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

POD_WORDS = ("pod", "pods", "po")
WUKONG_WORDS = ("wk", "wukong", "wukongs")


class Target(NamedTuple):
    pod: Pod
    name: str
    key: str = ""  # of the pod in the snapshot, to be taken away before it is placed again
    runs_on: str = ""


@click.command("explain")
@click.argument("pod", required=False, metavar="[pod/NAMESPACE/NAME|wk/NAMESPACE/NAME]")
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
    Of a Wukong (wk/NAMESPACE/NAME) it is the pod of a virtual machine that has no node, or else of the first: the one
    that is there, or the one that KubeVirt would make.
    Nodes that every rule judges alike share a line; -o wide has a line for every node.

    Where there are placement policies, in the cluster or by --policy, it is decided as by a kube-scheduler that asks
    Wukong's extender: the column EXT has the points it adds, and below is what they are made of.

    \b
    Example:
      wukong explain -s cluster.json pod/shop/web-7d9f-x2x
      wukong explain -s cluster.json -f stuck.yaml
      wukong explain wk/shop/db
      wukong explain -s cluster.json -f web.yaml --policy policy.yaml
    """
    placing_options = PlacingOptions(**placing)
    options.refuse_stdin_twice(
        snapshot=snapshot,
        filename=manifest,
        scheduler_config=scheduler_config,
        prices=placing_options.prices,
        latencies=placing_options.latencies,
        policy="-" if "-" in placing_options.policies else None,
    )
    if (pod is None) == (manifest is None):
        raise click.UsageError("Name one pod: pod/NAMESPACE/NAME or wk/NAMESPACE/NAME of the snapshot, or -f FILE.")
    with pause_garbage_collector():
        source = Source(snapshot, kubeconfig, context)
        cluster = read_source(source)
        target = (
            _from_manifest(manifest, cluster.objects)
            if manifest
            else _from_cluster(pod or "", cluster.objects, source.place)
        )
        scheduler = make_scheduler(cluster, kubernetes, scheduler_config, takes_extenders=True)
        question = read_extender_question(
            placing_options, source, cluster.objects, scheduler.profile, target.pod, target.key
        )
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
    """The pod with this name, or of the Wukong with it, as it was before it got its node."""
    kind, key = _parse_key(text)
    if kind in WUKONG_WORDS:
        return _from_wukong(key, objects, place)
    placed_pod = next((pod for pod in objects.pods if pod.key == key), None)
    if placed_pod is None:
        raise InputError(f"{place}: no pod {key} there.{_suggest_pods(key, objects)}")
    return Target(_without_node(placed_pod), f"Pod {key}", key, placed_pod.spec.node_name)


def _without_node(placed_pod: Pod) -> Pod:
    replace = msgspec.structs.replace
    meta = replace(placed_pod.metadata, deletion_timestamp=None)
    return replace(placed_pod, metadata=meta, spec=replace(placed_pod.spec, node_name=""))


def _from_wukong(key: str, objects: Objects, place: str) -> Target:
    """The pod of one of its virtual machines."""
    from wukong.app.rules import load_rules
    from wukong.app.wukong_pods import choose_pod  # brings KubeVirt as the embedded cluster has it

    wukongs = {wukong.key: wukong for wukong in objects.of(WUKONGS.group_kind)}
    wukong = wukongs.get(key)
    if not isinstance(wukong, Wukong):
        raise InputError(f"{place}: no Wukong {key} there.{nearest(key, wukongs)}")
    chosen = choose_pod(wukong, objects, load_rules())
    name = f"Wukong {key}, virtual machine {chosen.machine}"
    if chosen.is_built:
        return Target(chosen.pod, name)
    return Target(_without_node(chosen.pod), name, chosen.pod.key, chosen.pod.spec.node_name)


def _suggest_pods(key: str, objects: Objects) -> str:
    """Return a hint: pods whose names begin like the key, or else the nearest name."""
    keys = [pod.key for pod in objects.pods]
    longer = [candidate for candidate in keys if candidate.startswith(key)]
    if longer:
        return f" There is {name_some(sorted(longer))}."
    namespace = key.partition("/")[0]
    neighbours = [candidate for candidate in keys if candidate.partition("/")[0] == namespace]
    return nearest(key, neighbours) if neighbours else f" The namespace {namespace} has no pods."


def _parse_key(text: str) -> tuple[str, str]:
    """The word for the kind, and namespace/name."""
    kind, *names = text.split("/")
    if kind not in (*POD_WORDS, *WUKONG_WORDS) or len(names) not in (1, 2) or not all(names):
        expected = "pod/NAMESPACE/NAME or wk/NAMESPACE/NAME, or pod/NAME or wk/NAME in the namespace default"
        raise InputError(f"{text}: expected {expected}.")
    return kind, "/".join(names if len(names) == 2 else ["default", *names])


def _without(scheduler: Scheduler, key: str) -> Scheduler:
    if key not in scheduler.snapshot.pods:
        return scheduler
    fork = scheduler.snapshot.fork()
    fork.forget(key)
    return Scheduler(fork, scheduler.profile)
