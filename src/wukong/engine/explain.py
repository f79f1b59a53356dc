"""Explaining a decision: every node's verdict and points by plugin, equal nodes grouped, and what would help.

Called by `wukong explain` and by forecasts. Reads a scheduler and a pod, changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from wukong.api.core import Pod
from wukong.engine.arrays import ALL
from wukong.engine.decision import Decision, Preemption
from wukong.engine.fixes import Fix, find_fixes
from wukong.engine.plugin import Load
from wukong.engine.refusal_detail import GroupDetail, RefusalDetail, merge_details
from wukong.engine.scheduler import Scheduler
from wukong.engine.view import View

NodeDetails = list[tuple[str, list[RefusalDetail]]]  # by plugin, of one node


@dataclass(frozen=True)
class NodeGroup:
    """Nodes that every plugin judged alike, and refused for the same causes."""

    nodes: tuple[str, ...]  # by name
    refusals: dict[str, tuple[str, ...]]  # filter plugin → its reasons; empty: the pod fits here
    points: dict[str, int]  # score plugin → weighted points
    total: int | None  # None: the pod does not fit here, or fits only here
    is_best: bool
    details: tuple[GroupDetail, ...] = ()  # what the refusals are about, beside kube-scheduler's own words

    @property
    def is_feasible(self) -> bool:
        return not self.refusals

    def split(self) -> Iterator[NodeGroup]:
        """Each node by itself."""
        for node in self.nodes:
            details = tuple(detail.select_node(node) for detail in self.details)
            yield replace(self, nodes=(node,), details=details)

    def list_reasons(self) -> list[str]:
        """Why the pod does not fit here: the details of each plugin that gives some, else its own words."""
        reasons = []
        for plugin, texts in self.refusals.items():
            details = [detail.describe() for detail in self.details if detail.plugin == plugin]
            reasons += details or [text.removeprefix("node(s) ") for text in texts]
        return reasons


@dataclass(frozen=True)
class Explanation:
    pod: str
    nodes: int
    filters: tuple[str, ...]  # plugins that had something to say, in the order they are asked
    scores: tuple[tuple[str, int], ...]  # plugin and weight
    groups: tuple[NodeGroup, ...]  # the best first, then by points, then the refused ones, largest group first
    winner: str  # the best node, first by name; "" if there is none
    message: str  # the FailedScheduling text, if nothing fits
    error: str
    preemption: Preemption | None
    fixes: tuple[Fix, ...] = ()  # single changes that make an unplaceable pod fit, smallest first
    notes: tuple[str, ...] = field(default=())  # what was not modelled for this pod


def explain(scheduler: Scheduler, pod: Pod) -> Explanation:
    view = scheduler.view_of(pod)
    decision = scheduler.decide(pod)
    groups = group_nodes(view, decision)
    is_stuck = not decision.feasible
    return Explanation(
        pod=pod.key,
        nodes=len(scheduler.snapshot.rows),
        filters=tuple(name for name in view.profile.filters if any(name in group.refusals for group in groups)),
        scores=tuple((name, weight) for name, weight in view.profile.scores if _is_scored(name, view, decision)),
        groups=groups,
        winner=decision.best[0] if decision.feasible and not decision.error else "",
        message=decision.message,
        error=decision.error,
        preemption=decision.preemption,
        fixes=tuple(find_fixes(scheduler, pod)) if is_stuck else (),
        notes=tuple(list_unmodelled(pod)),
    )


def _is_scored(name: str, view: View, decision: Decision) -> bool:
    """Whether a plugin scored the pod; some appear with 0 for every pod that is not their business."""
    points = decision.scores.get(name)
    return points is not None and (name not in view.profile.zero_scores or bool(points.any()))


def group_nodes(view: View, decision: Decision) -> tuple[NodeGroup, ...]:
    """Nodes with the same reasons and causes from every filter and the same points from every score belong together."""
    names = [row.name for row in view.snapshot.rows]
    refusals, details = _find_all_refusals(view)
    position = {name: index for index, name in enumerate(decision.feasible)}
    columns = [(plugin, points.tolist()) for plugin, points in decision.scores.items()]
    best = set(decision.best)
    members: dict[tuple[object, ...], list[str]] = {}
    for number, name in enumerate(names):
        index = position.get(name)
        points = () if index is None else tuple(column[index] for _, column in columns)
        causes = tuple((plugin, *(entry[:2] for entry in entries)) for plugin, entries in details[number])
        members.setdefault((refusals[number], causes, points), []).append(name)
    row_of = view.snapshot.row_of
    groups = []
    for nodes in members.values():
        group = _make_group(tuple(nodes), refusals[row_of[nodes[0]]], decision, position, best)
        groups.append(group if group.is_feasible else _add_details(group, [details[row_of[node]] for node in nodes]))
    return tuple(sorted(groups, key=_sort_key))


def _add_details(group: NodeGroup, details: list[NodeDetails]) -> NodeGroup:
    merged: list[GroupDetail] = []
    for number, (plugin, _) in enumerate(details[0]):
        by_node = {node: entries[number][1] for node, entries in zip(group.nodes, details, strict=True)}
        merged += merge_details(plugin, by_node)
    return replace(group, details=tuple(merged))


def _make_group(
    nodes: tuple[str, ...],
    refusals: tuple[tuple[str, tuple[str, ...]], ...],
    decision: Decision,
    position: dict[str, int],
    best: set[str],
) -> NodeGroup:
    index = position.get(nodes[0])
    is_scored = index is not None and bool(decision.final)
    return NodeGroup(
        nodes=nodes,
        refusals=dict(refusals) if index is None else {},
        points={plugin: int(values[index]) for plugin, values in decision.scores.items()} if is_scored else {},
        total=decision.final[index] if index is not None and is_scored else None,
        is_best=nodes[0] in best,
    )


def _sort_key(group: NodeGroup) -> tuple[object, ...]:
    return (
        not group.is_feasible,
        not group.is_best,
        -(group.total or 0),
        len(group.refusals),
        -len(group.nodes),
        group.nodes,
    )


def _find_all_refusals(view: View) -> tuple[list[tuple[tuple[str, tuple[str, ...]], ...]], list[NodeDetails]]:
    """[node] every filter that refuses it, not only the first, with its reasons; and with what these are about."""
    view.sync()  # deciding may have taken pods away on trial, and put them back
    load = Load(view.snapshot.load)
    details: list[NodeDetails] = [[] for _ in view.snapshot.rows]
    refusals: list[list[tuple[str, tuple[str, ...]]]] = [[] for _ in view.snapshot.rows]
    for plugin, part in view.filters:
        failing = part.failing(ALL, load)
        codes = np.zeros(len(view.snapshot.rows), dtype=np.int64)
        for bit, (_, mask) in enumerate(failing):
            codes |= mask.astype(np.int64) << bit
        texts = {
            code: tuple(reason.text for bit, (reason, _) in enumerate(failing) if code >> bit & 1)
            for code in np.unique(codes).tolist()
        }
        refused_rows = np.flatnonzero(codes).tolist()
        descriptions = part.describe(refused_rows)
        for number in refused_rows:
            refusals[number].append((plugin, texts[int(codes[number])]))
            if entries := descriptions.get(number):
                details[number].append((plugin, entries))
    return [tuple(entries) for entries in refusals], details


def list_unmodelled(pod: Pod) -> list[str]:
    """What the engine does not model about this pod, so that nobody takes the answer for more than it is."""
    notes = []
    if pod.spec.resource_claims:
        notes.append("resource claims (DynamicResources) are not modelled: treated as satisfied everywhere")
    if pod.spec.scheduling_gates:
        gates = ", ".join(gate.name for gate in pod.spec.scheduling_gates)
        notes.append(f"scheduling gates are set ({gates}): the scheduler does not try this pod until they are removed")
    if pod.spec.runtime_class_name and not pod.spec.overhead:
        notes.append(f"runtimeClass {pod.spec.runtime_class_name} may add overhead that the manifest does not show")
    return notes
