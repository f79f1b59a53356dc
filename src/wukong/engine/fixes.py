"""Counterfactuals: which single change would make an unplaceable pod fit. Each is tried before it is named.

Called by explain.py. Changes are made to copies of the pod or to forks of the snapshot; nothing the caller has changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec
import numpy as np

from wukong.api.core import Pod
from wukong.api.quantity import format_amount
from wukong.engine.arrays import ALL
from wukong.engine.cluster_changes import try_cluster_changes
from wukong.engine.plugin import Load
from wukong.engine.plugins.node_resources_fit import ResourceFilter
from wukong.engine.pod_changes import list_pod_changes
from wukong.engine.scheduler import Scheduler
from wukong.engine.template import Template


@dataclass(frozen=True)
class Fix:
    """One change, and on how many nodes the pod fits after it."""

    kind: str  # soften, drop, tolerate, request, uncordon, other, node
    sentence: str
    nodes: int
    size: float  # how much it changes: smaller first

    def order(self) -> tuple[float, int, str]:
        return self.size, -self.nodes, self.sentence


def find_fixes(scheduler: Scheduler, pod: Pod) -> list[Fix]:
    """All single changes that make the pod fit somewhere, smallest first."""
    filters_only = msgspec.structs.replace(scheduler.profile, scores=(), zero_scores=())
    scheduler = Scheduler(scheduler.snapshot.fork(), filters_only, plugins=scheduler.plugins)
    fixes = []
    for change in list_pod_changes(pod, scheduler.snapshot.rows):
        if count := scheduler.compile(scheduler.snapshot.table.intern(change.pod)).count_feasible():
            fixes.append(Fix(change.kind, change.sentence, count, change.size))
    fixes += _find_smaller_requests(scheduler, pod)
    fixes += [Fix(kind, sentence, count, size) for kind, sentence, size, count in try_cluster_changes(scheduler, pod)]
    return sorted(fixes, key=Fix.order)


def _find_smaller_requests(scheduler: Scheduler, pod: Pod) -> Iterator[Fix]:
    """For each resource: the most the pod could ask for and still fit somewhere, all else unchanged."""
    template = scheduler.snapshot.table.intern(pod)
    view = scheduler.compile(template)
    view.sync()
    resource_filter = next((part for _, part in view.filters if isinstance(part, ResourceFilter)), None)
    if resource_filter is None:
        return
    others_pass = np.ones(len(scheduler.snapshot.rows), dtype=np.bool_)
    load = Load(scheduler.snapshot.load)
    for _, part in view.filters:
        if part is not resource_filter:
            for _, mask in part.failing(ALL, load):
                others_pass &= ~mask
    short = resource_filter.find_short(ALL, load)
    for number, name in enumerate(resource_filter.names, start=1):
        only_this = others_pass & ~np.delete(short, number, axis=0).any(axis=0)
        line = int(resource_filter.lines[number])
        left = (scheduler.snapshot.room[line] - scheduler.snapshot.load[line])[only_this]
        most = int(left.max()) if len(left) else 0
        requested = int(resource_filter.amounts[number, 0])
        if 0 < most < requested and (count := _count_asking(scheduler, template, name, most)):
            sentence = f"ask for at most {format_amount(name, most)} {name} (now {format_amount(name, requested)})"
            yield Fix("request", sentence, count, 0.5 + 3.0 * (requested - most) / requested)


def _count_asking(scheduler: Scheduler, template: Template, resource: str, amount: int) -> int:
    """On how many nodes the pod fits if it asks for this much of the resource."""
    changed = template.with_needed({**template.requests.needed, resource: amount})
    return scheduler.compile(changed).count_feasible()
