"""Counterfactuals that change the cluster, not the pod: uncordon a node, relax another workload's rule, add a node.

Called by fixes.py. Each is tried on a fork of the snapshot; new nodes are those of new_nodes.py.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from wukong.api.core import Pod, PodAffinity
from wukong.engine.arrays import ALL
from wukong.engine.new_nodes import add_new_node, list_fitting, list_new_nodes
from wukong.engine.plugin import Load
from wukong.engine.plugins.inter_pod_affinity import EXISTING
from wukong.engine.scheduler import Scheduler
from wukong.engine.snapshot import Snapshot
from wukong.engine.template import Template
from wukong.engine.view import View

replace = msgspec.structs.replace
_MOST_NEW_NODES = 8  # named; every shape of node is tried
_MOST_NODES = 16
_MOST_WORKLOADS = 8

Outcome = tuple[str, str, float, int]  # kind, sentence, size, on how many nodes the pod fits then


def try_cluster_changes(scheduler: Scheduler, pod: Pod) -> Iterator[Outcome]:
    yield from _try_uncordoning(scheduler, pod)
    yield from _try_relaxing_others(scheduler, pod)
    yield from _try_adding_node(scheduler, pod)


def _count_fitting(scheduler: Scheduler, snapshot: Snapshot, pod: Pod) -> int:
    view = View(snapshot, snapshot.table.intern(pod), scheduler.profile, scheduler.plugins)
    return view.count_feasible()


def _try_uncordoning(scheduler: Scheduler, pod: Pod) -> Iterator[Outcome]:
    """The first cordoned node on which that alone would help."""
    cordoned = [row for row in scheduler.snapshot.rows if row.is_unschedulable]
    for row in cordoned[:_MOST_NODES]:
        changed = row.copy()
        changed.is_unschedulable = False
        changed.taints = tuple(taint for taint in row.taints if taint[0] != "node.kubernetes.io/unschedulable")
        fork = scheduler.snapshot.fork()
        fork.put_row(changed)
        if count := _count_fitting(scheduler, fork, pod):
            yield "uncordon", f"uncordon node {row.name}", 2.5, count
            return


def _try_relaxing_others(scheduler: Scheduler, pod: Pod) -> Iterator[Outcome]:
    """Placed pods whose required anti-affinity keeps ours away: what if one workload's term were gone?"""
    template = scheduler.snapshot.table.intern(pod)
    view = scheduler.compile(template)
    view.sync()
    load = Load(scheduler.snapshot.load)
    refused = [mask for _, part in view.filters for reason, mask in part.failing(ALL, load) if reason is EXISTING]
    if not any(mask.any() for mask in refused):
        return
    labels = scheduler.snapshot.facts.labels_of(template.namespace)
    barring = [
        placed_template
        for placed_template in scheduler.snapshot.list_placed_templates()
        if any(
            term.selects(template.namespace, template.labels, labels) for term in placed_template.anti_affinity_terms
        )
    ]
    for placed_template in barring[:_MOST_WORKLOADS]:
        fork = _without_terms(scheduler.snapshot, placed_template, template, labels)
        if count := _count_fitting(scheduler, fork, pod):
            pods = f"pods like {placed_template.pod.key}"
            yield "other", f"drop the required podAntiAffinity of {pods} that keeps this pod away", 4.0, count


def _without_terms(
    snapshot: Snapshot, placed_template: Template, template: Template, labels: dict[str, str]
) -> Snapshot:
    """A fork in which pods of `placed_template` have lost the anti-affinity terms that select pods of `template`."""
    affinity = placed_template.affinity
    rules = affinity.pod_anti_affinity or PodAffinity()
    pairs = zip(rules.required, placed_template.anti_affinity_terms, strict=True)
    kept = [term for term, compiled in pairs if not compiled.selects(template.namespace, template.labels, labels)]
    changed = replace(affinity, pod_anti_affinity=replace(rules, required=kept))
    relaxed = replace(placed_template.pod, spec=replace(placed_template.pod.spec, affinity=changed))
    fork = snapshot.fork()
    for key in [key for key, placed in fork.pods.items() if placed.template is placed_template]:
        placed = fork.forget(key)
        fork.assume_template(key, fork.table.intern(relaxed), placed.row, placed.start)
    return fork


def _try_adding_node(scheduler: Scheduler, pod: Pod) -> Iterator[Outcome]:
    """One more node like one there is, with its daemons and nobody else: the commonest first, one of each type."""
    types: set[tuple[str, ...]] = set()
    for new_node in list_fitting(scheduler, pod, list_new_nodes(scheduler.snapshot)):
        if new_node.type in types:
            continue
        fork = scheduler.snapshot.fork()
        add_new_node(fork, new_node)
        if count := _count_fitting(scheduler, fork, pod):
            types.add(new_node.type)
            yield "node", f"add one node like {new_node.example.name}", 5.0, count
        if len(types) == _MOST_NEW_NODES:
            return
