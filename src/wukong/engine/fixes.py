"""Counterfactuals: which single change would make an unplaceable pod fit. Each is tried before it is named.

Called by explain.py. Changes are made to copies of the pod or to forks of the snapshot; nothing the caller has changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec
import numpy as np

from wukong.api.core import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    Pod,
    PodAffinity,
    PodSpec,
    Toleration,
    WeightedPodAffinityTerm,
)
from wukong.api.meta import LabelSelector
from wukong.api.quantity import format_amount
from wukong.engine.arrays import ALL
from wukong.engine.cluster_fixes import change_cluster
from wukong.engine.plugin import Load
from wukong.engine.plugins.node_resources_fit import Fits
from wukong.engine.plugins.taint_toleration import is_tolerated
from wukong.engine.scheduler import Scheduler
from wukong.engine.template import Template
from wukong.engine.view import View

replace = msgspec.structs.replace
_MOST_TAINTS = 16


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
    filters_only = replace(scheduler.profile, scores=(), zero_scores=())
    scheduler = Scheduler(scheduler.snapshot.fork(), filters_only, plugins=scheduler.plugins)
    fixes = [
        Fix(kind, sentence, count, size)
        for kind, sentence, size, changed in _changes(scheduler, pod)
        if (count := _fitting(scheduler, changed))
    ]
    fixes += _requests(scheduler, pod)
    fixes += [Fix(kind, sentence, count, size) for kind, sentence, size, count in change_cluster(scheduler, pod)]
    return sorted(fixes, key=Fix.order)


def _fitting(scheduler: Scheduler, pod: Pod) -> int:
    """On how many nodes this variant of the pod fits."""
    return count_feasible(
        View(scheduler.snapshot, scheduler.snapshot.table.intern(pod), scheduler.profile, scheduler.plugins)
    )


def count_feasible(view: View) -> int:
    view.sync()
    return int(np.count_nonzero(view.feasible))


Change = tuple[str, str, float, Pod]  # kind, sentence, size, the changed pod


def _changes(scheduler: Scheduler, pod: Pod) -> Iterator[Change]:
    yield from _inter_pod_changes(pod)
    yield from _spread_changes(pod)
    yield from _taint_changes(scheduler, pod)
    yield from _node_changes(pod)
    yield from _port_changes(pod)


def _with_spec(pod: Pod, **changes: object) -> Pod:
    spec: PodSpec = replace(pod.spec, **changes)
    return replace(pod, spec=spec)


def _inter_pod_changes(pod: Pod) -> Iterator[Change]:
    affinity = pod.spec.affinity or Affinity()
    for side, word in (("pod_affinity", "podAffinity"), ("pod_anti_affinity", "podAntiAffinity")):
        rules: PodAffinity | None = getattr(affinity, side)
        for number, term in enumerate(rules.required if rules else []):
            assert rules is not None
            rest = [*rules.required[:number], *rules.required[number + 1 :]]
            label = f"required {word}[{number}] ({_describe(term.label_selector)} per {term.topology_key})"
            soft = [*rules.preferred, WeightedPodAffinityTerm(weight=100, pod_affinity_term=term)]
            softened = replace(affinity, **{side: replace(rules, required=rest, preferred=soft)})
            yield "soften", f"make {label} preferred instead of required", 1.0, _with_spec(pod, affinity=softened)
            dropped = replace(affinity, **{side: replace(rules, required=rest)})
            yield "drop", f"drop {label}", 3.0, _with_spec(pod, affinity=dropped)


def _describe(selector: LabelSelector | None) -> str:
    if selector is None:
        return "no pods"
    parts = [f"{key}={value}" for key, value in sorted(selector.match_labels.items())]
    for entry in selector.match_expressions:
        values = f" ({', '.join(entry.values)})" if entry.values else ""
        parts.append(f"{entry.key} {entry.operator}{values}")
    return ", ".join(parts) or "all pods"


def _spread_changes(pod: Pod) -> Iterator[Change]:
    constraints = pod.spec.topology_spread_constraints
    for number, entry in enumerate(constraints):
        if entry.when_unsatisfiable != "DoNotSchedule":
            continue
        soft = [*constraints[:number], replace(entry, when_unsatisfiable="ScheduleAnyway"), *constraints[number + 1 :]]
        sentence = (
            f"set whenUnsatisfiable: ScheduleAnyway on topologySpreadConstraints[{number}] ({entry.topology_key})"
        )
        yield "soften", sentence, 1.0, _with_spec(pod, topology_spread_constraints=soft)


def _taint_changes(scheduler: Scheduler, pod: Pod) -> Iterator[Change]:
    taints = {
        taint: None
        for row in scheduler.snapshot.rows
        for taint in row.taints
        if taint[2] in ("NoSchedule", "NoExecute") and not is_tolerated(taint, pod.spec.tolerations)
    }
    for key, value, effect in list(taints)[:_MOST_TAINTS]:
        extra = Toleration(key=key, operator="Equal" if value else "Exists", value=value, effect=effect)
        written = f"{key}={value}:{effect}" if value else f"{key}:{effect}"
        tolerating = _with_spec(pod, tolerations=[*pod.spec.tolerations, extra])
        yield "tolerate", f"tolerate the taint {written}", 2.0, tolerating


def _node_changes(pod: Pod) -> Iterator[Change]:
    for key, value in sorted(pod.spec.node_selector.items()):
        rest = {other: text for other, text in pod.spec.node_selector.items() if other != key}
        yield "drop", f"drop {key}={value} from nodeSelector", 3.0, _with_spec(pod, node_selector=rest)
    affinity = pod.spec.affinity or Affinity()
    required = affinity.node_affinity.required if affinity.node_affinity else None
    if required is None:
        return
    for number, term in enumerate(required.node_selector_terms):
        for index, entry in enumerate(term.match_expressions):
            less = replace(
                term, match_expressions=[*term.match_expressions[:index], *term.match_expressions[index + 1 :]]
            )
            if not less.match_expressions and not less.match_fields:
                continue  # an empty term matches nothing
            terms = [*required.node_selector_terms[:number], less, *required.node_selector_terms[number + 1 :]]
            values = f" ({', '.join(entry.values)})" if entry.values else ""
            sentence = f"drop {entry.key} {entry.operator}{values} from required nodeAffinity term {number}"
            yield "drop", sentence, 3.0, _with_node_affinity(pod, affinity, NodeSelector(node_selector_terms=terms))
    yield "drop", "drop the required nodeAffinity", 3.5, _with_node_affinity(pod, affinity, None)


def _with_node_affinity(pod: Pod, affinity: Affinity, required: NodeSelector | None) -> Pod:
    node_affinity = replace(affinity.node_affinity or NodeAffinity(), required=required)
    return _with_spec(pod, affinity=replace(affinity, node_affinity=node_affinity))


def _port_changes(pod: Pod) -> Iterator[Change]:
    for index, container in enumerate(pod.spec.containers):
        for port in container.ports:
            if port.host_port:
                ports = [other for other in container.ports if other is not port]
                changed = [
                    *pod.spec.containers[:index],
                    replace(container, ports=ports),
                    *pod.spec.containers[index + 1 :],
                ]
                sentence = f"give up host port {port.host_port} of container {container.name}"
                yield "drop", sentence, 3.0, _with_spec(pod, containers=changed)


def _requests(scheduler: Scheduler, pod: Pod) -> Iterator[Fix]:
    """For each resource: the most the pod could ask for and still fit somewhere, all else unchanged."""
    template = scheduler.snapshot.table.intern(pod)
    view = View(scheduler.snapshot, template, scheduler.profile, scheduler.plugins)
    view.sync()
    fits = next((part for _, part in view.filters if isinstance(part, Fits)), None)
    if fits is None:
        return
    others_pass = np.ones(len(scheduler.snapshot.rows), dtype=np.bool_)
    load = Load(scheduler.snapshot.load)
    for _, part in view.filters:
        if part is not fits:
            for _, mask in part.failing(ALL, load):
                others_pass &= ~mask
    short = fits.short(ALL, load)
    for number, name in enumerate(fits.names, start=1):
        only_this = others_pass & ~np.delete(short, number, axis=0).any(axis=0)
        line = int(fits.lines[number])
        left = (scheduler.snapshot.room[line] - scheduler.snapshot.load[line])[only_this]
        most = int(left.max()) if len(left) else 0
        asked = int(fits.amounts[number, 0])
        if 0 < most < asked and (count := count_feasible(_asking(view, template, name, most))):
            sentence = f"ask for at most {format_amount(name, most)} {name} (now {format_amount(name, asked)})"
            yield Fix("request", sentence, count, 0.5 + 3.0 * (asked - most) / asked)


def _asking(view: View, template: Template, resource: str, amount: int) -> View:
    """The same pod, but asking for this much."""
    changed = template.with_needed({**template.requests.needed, resource: amount})
    return View(view.snapshot, changed, view.profile, view.plugins)
