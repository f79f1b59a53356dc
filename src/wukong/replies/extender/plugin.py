"""A scheduler that asks our extender: the engine's decision with the extender as the last plugin of the profile.

Called by `wukong explain`, and by schedulers of the same process. As in kube-scheduler (schedule_one.go) the extender
is offered the nodes that passed every filter, the scores are worked out among those it leaves, and its own, 0–10, are
added × weight × 10. Preemption leaves out the nodes it refused, which it does for good, and asks which of the
candidates it agrees to. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

import msgspec
import numpy as np

from wukong.actions import Note
from wukong.api.core import Node, Pod
from wukong.api.profile import ExtenderEntry, Profile
from wukong.engine.arrays import Index, Ints, Mask, Rows
from wukong.engine.plugin import FilterPart, Load, Plugin, Reason, ScorePart
from wukong.engine.scheduler import Scheduler
from wukong.engine.snapshot import Snapshot
from wukong.engine.view import Plugins, View
from wukong.placement.fleet import Fleet, Nodes
from wukong.replies.extender.verbs import Extender, FilterResult

NAME = "Extender"
DEFAULT_ENTRY = ExtenderEntry(filter_verb="filter", prioritize_verb="prioritize", preempt_verb="preempt", weight=5)
PER_POINT = 10  # kube-scheduler counts to 100, an extender to 10
replace = msgspec.structs.replace


class Answer(NamedTuple):
    """What the extender answered about one pod. Arrays are over the nodes offered."""

    fleet: Fleet
    names: list[str]  # the nodes offered
    rows: Index  # where the fleet has them
    filtered: FilterResult
    scores: Ints  # 0–10; of those kept


def add_extender(
    scheduler: Scheduler, extender: Extender, entry: ExtenderEntry, now: float, pod: Pod | None = None
) -> tuple[Scheduler, ExtenderPlugin]:
    """The same scheduler with the extender in its configuration, and the plugin that keeps its answer.

    Asked about `pod`, where one is given, else about that of the view: the first of all that look like it.
    """
    plugin = ExtenderPlugin(extender, entry, scheduler.profile, scheduler.plugins, now, pod)
    base = scheduler.profile
    scores = (*base.scores, (NAME, entry.weight)) if entry.prioritize_verb else base.scores
    profile = replace(base, filters=(*base.filters, NAME), scores=scores)
    plugins = {**scheduler.plugins, NAME: plugin}
    return Scheduler(scheduler.snapshot, profile, ties=scheduler.ties, plugins=plugins), plugin


def is_interested(entry: ExtenderEntry, pod: Pod) -> bool:
    """Whether kube-scheduler asks this extender about the pod: about all pods, or those that want its resources."""
    managed = {resource.name for resource in entry.managed_resources}
    wanted = (
        name
        for container in (*pod.spec.containers, *pod.spec.init_containers)
        for name in (*container.resources.requests, *container.resources.limits)
    )
    return not managed or any(name in managed for name in wanted)


class ExtenderPlugin(Plugin):
    """Asks once per compiled pod. `fixes` compile changed pods, and so ask anew."""

    name = NAME

    def __init__(
        self,
        extender: Extender,
        entry: ExtenderEntry,
        profile: Profile,
        plugins: Plugins,
        now: float,
        pod: Pod | None = None,
    ) -> None:
        self.extender, self.entry, self.now, self._pod = extender, entry, now, pod
        self._profile, self._plugins = profile, plugins  # without the extender
        self._answer: tuple[View, Answer] | None = None

    def filter(self, view: View) -> FilterPart | None:
        answer = self.answer_of(view)
        row_of, size = view.snapshot.row_of, len(view.snapshot.rows)
        failing: list[tuple[Reason, Mask]] = []
        for refusal in answer.filtered.refusals:
            mask: Mask = np.zeros(size, dtype=np.bool_)
            mask[[row_of[answer.names[number]] for number in np.flatnonzero(refusal.mask)]] = True
            failing.append((Reason(refusal.reason, refusal.is_final), mask))
        return ExtenderFilter(failing) if failing else None

    def score(self, view: View) -> ScorePart | None:
        answer = self.answer_of(view)
        points: Ints = np.zeros(len(view.snapshot.rows), dtype=np.int64)
        for number, score in zip(np.flatnonzero(answer.filtered.kept).tolist(), answer.scores.tolist(), strict=True):
            points[view.snapshot.row_of[answer.names[number]]] = score * PER_POINT
        return ExtenderScore(points)

    def filter_candidates(self, view: View, candidates: dict[str, tuple[str, ...]]) -> Collection[str]:
        if not self.entry.preempt_verb:
            return candidates
        placed = view.snapshot.pods
        victims = {node: [placed[key].template.pod for key in keys] for node, keys in candidates.items()}
        return self.extender.preempt(self._pod or view.template.pod, victims, self.now)

    def answer_of(self, view: View) -> Answer:
        """What the extender answers about the nodes that pass all other filters."""
        if self._answer is None or self._answer[0] is not view:
            self._answer = view, self._ask(view)
        return self._answer[1]

    def _ask(self, view: View) -> Answer:
        offering = View(view.snapshot, view.template, self._profile, self._plugins, view.node_name)
        offering.sync()
        names = [view.snapshot.rows[row].name for row in np.flatnonzero(offering.feasible).tolist()]
        fleet, pod = self._read_fleet(view.snapshot), self._pod or view.template.pod
        rows: Index = np.array([fleet.row_of.get(name, -1) for name in names], dtype=np.intp)
        filtered = self.extender.filter(pod, fleet, rows, self.now)
        if not self.entry.filter_verb:
            filtered = FilterResult(np.ones(len(rows), dtype=np.bool_), (), filtered.plan)
        scores = self.extender.prioritize(pod, fleet, rows[filtered.kept], self.now)
        return Answer(fleet, names, rows, filtered, scores)

    def _read_fleet(self, snapshot: Snapshot) -> Fleet:
        """The fleet, with the nodes that a counterfactual adds to it: each as the first that it is like."""
        fleet = self.extender.fleet(self.now)
        added = [row for row in snapshot.rows if row.name not in fleet.row_of]
        if not added:
            return fleet
        nodes = [fleet.node(row) for row in range(fleet.size)]
        examples: dict[object, str] = {}
        for row in snapshot.rows:
            if row.name in fleet.row_of:
                examples.setdefault(row.shape(), row.name)
        for row in added:
            if (example := examples.get(row.shape())) is not None:
                nodes.append(_rename(fleet.node(fleet.row_of[example]), row.name))
        return self.extender.fleet_of(nodes, self.now)


class PointFinder:
    """What the extender adds to the totals of a view that was made without it. Equal to asking by ExtenderPlugin."""

    def __init__(self, extender: Extender, entry: ExtenderEntry) -> None:
        self.extender, self.entry = extender, entry
        self._places: tuple[Nodes, Mapping[str, int], Index] | None = None  # the fleet's row of each row of a snapshot

    def find(self, view: View, pod: Pod, now: float) -> tuple[Ints, tuple[Note, ...]] | None:
        """Return the points of every node, and notes; None if it refuses one of the feasible nodes."""
        fleet, rows = self.extender.fleet(now), np.flatnonzero(view.feasible)
        places = self._find_places(fleet.nodes, view.snapshot)[rows]
        filtered = self.extender.filter(pod, fleet, places, now)
        if self.entry.filter_verb and not filtered.kept.all():
            return None
        points: Ints = np.zeros(len(view.snapshot.rows), dtype=np.int64)
        if self.entry.prioritize_verb:
            points[rows] = self.extender.prioritize(pod, fleet, places, now) * (PER_POINT * self.entry.weight)
        return points, filtered.notes

    def _find_places(self, nodes: Nodes, snapshot: Snapshot) -> Index:
        """Return where the fleet has each node of the snapshot; -1 where it has not."""
        row_of = snapshot.row_of  # another dict whenever nodes came or went
        if self._places is None or self._places[0] is not nodes or self._places[1] is not row_of:
            places = np.array([nodes.row_of.get(row.name, -1) for row in snapshot.rows], dtype=np.intp)
            self._places = nodes, row_of, places
        return self._places[2]


class ExtenderFilter(FilterPart):
    def __init__(self, reasons: list[tuple[Reason, Mask]]) -> None:
        self.reasons = reasons

    def failing(self, rows: Rows, load: Load) -> list[tuple[Reason, Mask]]:
        return [(reason, mask[rows]) for reason, mask in self.reasons]


class ExtenderScore(ScorePart):
    def __init__(self, points: Ints) -> None:
        self.points = points

    def raw(self, rows: Rows, load: Load) -> Ints:
        return self.points[rows]


def _rename(node: Node, name: str) -> Node:
    return replace(node, metadata=replace(node.metadata, name=name))
