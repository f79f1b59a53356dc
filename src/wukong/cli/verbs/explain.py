"""`wukong explain`: how every node fares for a pod, plugin by plugin; where it goes, or what would help."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import click
import msgspec

from wukong.api.core import Pod
from wukong.api.kinds import WUKONGS
from wukong.api.meta import Object
from wukong.api.objects import Objects
from wukong.api.vm import Wukong
from wukong.app.extender_question import ExtenderQuestion
from wukong.cli.inputs import options
from wukong.cli.inputs.extender import PlacingOptions, placing_options, read_extender_question
from wukong.cli.inputs.manifest import read_manifest
from wukong.cli.inputs.namespaces import Namespace, choose_namespace
from wukong.cli.inputs.scheduler import note_other_scheduler
from wukong.cli.inputs.source import Source, make_scheduler, read_source
from wukong.cli.views.results import show_explanation
from wukong.cli.views.table import name_some
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


class Name(NamedTuple):
    """A name of the command line."""

    kind: str  # the word for it
    namespace: str  # "": any
    name: str


@click.command("explain")
@click.argument("pod", required=False, metavar="[pod/[NAMESPACE/]NAME|wk/[NAMESPACE/]NAME]")
@options.snapshot
@options.manifest(required=False)
@options.namespace
@options.all_namespaces
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
    namespace: str | None,
    all_namespaces: bool,
    kubeconfig: str,
    context: str,
    kubernetes: str | None,
    scheduler_config: str | None,
    output: str | None,
    **placing: Any,
) -> None:
    """Show how every node fares for a pod, rule by rule.

    The pod is one of the cluster (pod/NAMESPACE/NAME, or pod/NAME in the namespace of -n or the context; with -A the
    only one of that name) or a manifest (-f). A pod that runs already is placed again,
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
    placing_options.refuse_stdin_twice(snapshot=snapshot, filename=manifest, scheduler_config=scheduler_config)
    if (pod is None) == (manifest is None):
        raise click.UsageError("Name one pod: pod/NAME or wk/NAME of the cluster, or -f FILE.")
    if all_namespaces and (manifest or namespace):
        raise click.UsageError("--all-namespaces is about names: leave out --namespace and --filename.")
    with pause_garbage_collector():
        source = Source(snapshot, kubeconfig, context)
        chosen = choose_namespace(namespace, source)
        name = None if pod is None else _parse_name(pod, chosen, all_namespaces=all_namespaces)
        cluster = read_source(source)
        target = (
            _from_manifest(manifest or "", cluster.objects, chosen)
            if name is None
            else _from_cluster(name, cluster.objects, source.place)
        )
        scheduler = make_scheduler(cluster, kubernetes, scheduler_config, takes_extenders=True)
        question = read_extender_question(
            placing_options,
            source,
            cluster.objects,
            scheduler.profile,
            target.pod,
            namespace=chosen,
            without=target.key,
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


def _from_manifest(path: str, objects: Objects, namespace: Namespace) -> Target:
    question = read_manifest(path, objects, namespace)
    return Target(question.pod, question.name)


def _from_cluster(name: Name, objects: Objects, place: str) -> Target:
    """The pod with this name, or of the Wukong with it, as it was before it got its node."""
    if name.kind in WUKONG_WORDS:
        return _from_wukong(_find_key(name, objects.of(WUKONGS.group_kind), "Wukong", place), objects, place)
    key = _find_key(name, objects.pods, "pod", place)
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


def _parse_name(text: str, namespace: Namespace, *, all_namespaces: bool) -> Name:
    """What `pod/NAME` or `pod/NAMESPACE/NAME` names."""
    kind, *names = text.split("/")
    if kind not in (*POD_WORDS, *WUKONG_WORDS) or len(names) not in (1, 2) or not all(names):
        expected = "pod/NAMESPACE/NAME or wk/NAMESPACE/NAME, or pod/NAME or wk/NAME in that of -n or the context"
        raise InputError(f"{text}: expected {expected}.")
    if len(names) == 1:
        return Name(kind, "" if all_namespaces else namespace.name, names[0])
    if namespace.is_required and names[0] != namespace.name:
        raise InputError(f"{text}: --namespace says {namespace.name}. Leave one of them out.")
    return Name(kind, *names)


def _find_key(name: Name, objects: Sequence[Object], kind: str, place: str) -> str:
    """Namespace/name; without a namespace that of the only one there is."""
    if name.namespace:
        return f"{name.namespace}/{name.name}"
    keys = [entry.key for entry in objects if entry.metadata.name == name.name]
    if len(keys) == 1:
        return keys[0]
    if keys:
        raise InputError(f"{place}: {name.name} is the name of {name_some(sorted(keys))}. Name one of them.")
    names = {entry.metadata.name for entry in objects}
    raise InputError(f"{place}: no {kind} {name.name} in any namespace there.{nearest(name.name, names)}")


def _without(scheduler: Scheduler, key: str) -> Scheduler:
    if key not in scheduler.snapshot.pods:
        return scheduler
    fork = scheduler.snapshot.fork()
    fork.forget(key)
    return Scheduler(fork, scheduler.profile)
