"""PodTopologySpread: keeps pods of an application evenly over zones, hosts or any other topology.

DoNotSchedule constraints filter, ScheduleAnyway ones score. Pods without constraints of their own get the profile's
default ones when a service or workload selects them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from wukong.engine.arrays import ALL, Floats, Index, Ints, Mask, Rows
from wukong.engine.domain_counter import DomainCounter
from wukong.engine.nodes import HOSTNAME
from wukong.engine.plugin import MAX_SCORE, FeasibleScorePart, FilterPart, Load, Plugin, Reason, Scope, ScorePart
from wukong.engine.plugins.node_affinity import match_required_affinity
from wukong.engine.plugins.taint_toleration import find_untolerated
from wukong.engine.refusal_detail import RefusalDetail
from wukong.engine.snapshot import Snapshot
from wukong.engine.template import Spread, Template, compile_spreads
from wukong.engine.view import View
from wukong.semantics.selectors import selects

SKEW = Reason("node(s) didn't match pod topology spread constraints", is_final=False)
MISSING_LABEL = Reason("node(s) didn't match pod topology spread constraints (missing required label)")


class PodTopologySpread(Plugin):
    name = "PodTopologySpread"

    def filter(self, view: View) -> FilterPart | None:
        spreads = _constraints_of(view, "DoNotSchedule")
        return SpreadFilter(view, spreads) if spreads else None

    def score(self, view: View) -> ScorePart | None:
        spreads = _constraints_of(view, "ScheduleAnyway")
        return SpreadScore(view, spreads) if spreads else None


def _constraints_of(view: View, action: str) -> list[Spread]:
    """The pod's own constraints, or else the profile's defaults for the application the pod belongs to."""
    template, profile = view.template, view.profile
    if template.has_own_spreads:
        return template.hard_spreads if action == "DoNotSchedule" else template.soft_spreads
    defaults = compile_spreads(profile.default_constraints, template.labels, action)
    selector = view.snapshot.facts.default_selector_of(template) if defaults else ()
    return [spread._replace(selector=selector) for spread in defaults] if selector else []


def counts_pod(spread: Spread, namespace: str, placed_template: Template) -> bool:
    """Whether a placed pod is one of those being spread. An empty selector counts nobody."""
    if not spread.selector or placed_template.is_terminating or placed_template.namespace != namespace:
        return False
    return selects(spread.selector, placed_template.labels)


def _add_counter(view: View, spread: Spread, counted_nodes: Mask | None, *, per_node: bool = False) -> DomainCounter:
    namespace = view.template.namespace

    def weigh(placed_template: Template) -> tuple[int, int]:
        weight = int(counts_pod(spread, namespace, placed_template))
        return weight, weight

    snapshot = view.snapshot
    column = snapshot.column_of_rows() if per_node else snapshot.column(spread.topology_key)
    return snapshot.register_counter(DomainCounter(column, weigh, counted_nodes, namespace))


def _find_labelled(snapshot: Snapshot, spreads: list[Spread]) -> Mask:
    labelled: Mask = np.logical_and.reduce([snapshot.column(spread.topology_key).ids >= 0 for spread in spreads])
    return labelled


def _find_counted_nodes(view: View, spread: Spread) -> Mask:
    """[node] whether the constraint's policies let the node's pods count."""
    counted = np.ones(len(view.snapshot.rows), dtype=np.bool_)
    if spread.honors_affinity:
        counted &= match_required_affinity(view.snapshot, view.template)
    if spread.honors_taints:
        counted &= ~find_untolerated(view.snapshot.rows, view.template.tolerations)
    return counted


class SpreadFilter(FilterPart):
    scope = Scope.CLUSTER

    def __init__(self, view: View, spreads: list[Spread]) -> None:
        self.view, self.spreads = view, spreads
        labelled = _find_labelled(view.snapshot, spreads)
        self.counters: list[DomainCounter] = []
        self.present: list[Index] = []  # per constraint: the domains with at least one node that counts
        for spread in spreads:
            counted_nodes = labelled & _find_counted_nodes(view, spread)
            counter = _add_counter(view, spread, counted_nodes)
            self.counters.append(counter)
            self.present.append(np.unique(counter.column.ids[counted_nodes]))
        self.own_counts = [int(selects(spread.selector, view.template.labels)) for spread in spreads]
        self._lowest = [self._count_lowest(number) for number in range(len(spreads))]

    def _count_lowest(self, number: int) -> int:
        """The fewest pods in any domain; 0 while there are fewer domains than minDomains."""
        present = self.present[number]
        if len(present) < max(self.spreads[number].min_domains, 1):
            return 0
        return int(self.counters[number].counts[present].min())

    def refresh(self) -> Index | slice | None:
        if not any(counter.changed_domains for counter in self.counters):
            return None
        for counter in self.counters:
            counter.changed_domains.clear()
        self._lowest = [self._count_lowest(number) for number in range(len(self.spreads))]
        return ALL

    def failing(self, rows: Rows, load: Load) -> list[tuple[Reason, Mask]]:
        missing: Mask | None = None
        skewed: Mask | None = None
        for number, spread in enumerate(self.spreads):
            counter = self.counters[number]
            limit = spread.max_skew - self.own_counts[number] + self._lowest[number]
            over_limit = counter.counts > limit
            over_limit[-1] = False  # a node without the label fails by that alone
            over = over_limit[counter.column.ids[rows]]
            lacks = None if counter.column.is_everywhere else counter.column.ids[rows] < 0
            if skewed is not None:  # the first constraint that fails decides
                lacks = None if lacks is None else lacks & ~skewed
                over = skewed | (over if missing is None else over & ~missing)
            missing = lacks if missing is None else missing if lacks is None else missing | lacks
            skewed = over
        assert skewed is not None
        return [(SKEW, skewed)] if missing is None else [(MISSING_LABEL, missing), (SKEW, skewed)]

    def describe(self, rows: list[int]) -> dict[int, list[RefusalDetail]]:
        return {row: list(self._describe_node(row)) for row in rows}

    def _describe_node(self, row: int) -> Iterator[RefusalDetail]:
        for number, spread in enumerate(self.spreads):
            counter, key = self.counters[number], spread.topology_key
            cause, kind = f"topologySpreadConstraints ({key}, maxSkew {spread.max_skew})", "topologySpread"
            fields = (("topologyKey", key), ("maxSkew", spread.max_skew))
            if counter.column.numbers[row] < 0:
                yield RefusalDetail(kind, cause, fields, value="it has no such label")
                continue
            pods, lowest = counter.count_at(row), self._count_lowest(number)
            if pods + self.own_counts[number] - lowest > spread.max_skew:
                domain = self.view.snapshot.rows[row].labels[key]
                value = f"{domain} has {pods} of them, another {lowest}"
                actual = {"domain": domain, "pods": pods, "least": lowest}
                yield RefusalDetail(kind, cause, fields, value=value, actual=actual)

    def allows(self, row: int, snapshot: Snapshot) -> bool:
        for number, spread in enumerate(self.spreads):
            counter = self.counters[number]
            if counter.column.numbers[row] < 0:
                return False
            if counter.count_at(row) + self.own_counts[number] - self._count_lowest(number) > spread.max_skew:
                return False
        return True

    def blocks_itself(self) -> bool | None:
        own = self.view.template
        return None if any(counter.weigh(own)[1] for counter in self.counters) else False

    def count_trial(self, template: Template, row: int, change: int) -> None:
        """Correct the counts after a trial removal (-1) or return (+1) of a placed pod.

        While kube-scheduler tries out victims it counts terminating pods and takes an empty selector as matching all,
        unlike when it counted them in the first place; its predictions differ accordingly, so ours must.
        """
        for spread, counter in zip(self.spreads, self.counters, strict=True):
            matches = template.namespace == self.view.template.namespace and selects(spread.selector, template.labels)
            if matches and not counts_pod(spread, self.view.template.namespace, template):
                counter.add(row, change, 0)


class SpreadScore(FeasibleScorePart):
    def __init__(self, view: View, spreads: list[Spread]) -> None:
        self.view, self.spreads = view, spreads
        snapshot = view.snapshot
        needs_labels = view.template.has_own_spreads or not view.profile.has_system_default_constraints
        labelled = _find_labelled(snapshot, spreads) if needs_labels else None
        self.labelled = None if labelled is None or labelled.all() else labelled  # None: every node counts
        self.counters: list[DomainCounter] = []
        for spread in spreads:
            if spread.topology_key == HOSTNAME:  # counted on the node itself, whatever the policies
                self.counters.append(_add_counter(view, spread, None, per_node=True))
                continue
            counted_nodes = _find_counted_nodes(view, spread)
            self.counters.append(
                _add_counter(view, spread, counted_nodes if self.labelled is None else counted_nodes & self.labelled)
            )
        self.columns = [snapshot.column(spread.topology_key) for spread in spreads]

    def refresh(self) -> bool:
        is_changed = any(counter.changed_domains for counter in self.counters)
        for counter in self.counters:
            counter.changed_domains.clear()
        return is_changed

    def depends_on_own_pods(self) -> bool:
        return any(counter.weigh(self.view.template)[1] for counter in self.counters)

    def score_feasible(self, feasible: Mask) -> Ints:
        counted = feasible if self.labelled is None else feasible & self.labelled
        if not counted.any():
            return np.zeros(len(feasible), dtype=np.int64)
        raw: Floats | None = None
        for number, spread in enumerate(self.spreads):
            counter, column = self.counters[number], self.columns[number]
            weight = math.log(self._count_domains(number, counted) + 2)
            # What a domain is worth: [domain], the last for nodes without the label, which get nothing.
            worth: Floats = np.asarray(counter.counts * weight + (spread.max_skew - 1), dtype=np.float64)
            if counter.column is column:
                worth[-1] = 0.0
                points: Floats = worth[column.ids]
            else:
                points = worth[:-1] if column.is_everywhere else worth[:-1] * (column.ids >= 0)
            raw = points if raw is None else raw + points
        assert raw is not None
        scores = _normalise(np.floor(raw + 0.5).astype(np.int64), counted)
        return scores if self.labelled is None else np.where(self.labelled, scores, 0)

    def _count_domains(self, number: int, counted: Mask) -> int:
        """Over how many domains the feasible nodes lie. A node without the label lies in the domain ""."""
        if self.spreads[number].topology_key == HOSTNAME:
            return int(np.count_nonzero(counted))
        column = self.columns[number]
        seen = np.zeros(column.size + 1, dtype=np.bool_)
        seen[column.ids[counted]] = True
        unlabelled_twice = seen[-1] and "" in column.domains and seen[column.domains[""]]
        return int(np.count_nonzero(seen)) - int(unlabelled_twice)


def _normalise(raw: Ints, counted: Mask) -> Ints:
    """Fewer pods, more points: 100 × (highest + lowest - own) / highest."""
    counted_raw = raw[counted]
    highest = int(counted_raw.max())
    if highest <= 0:
        return np.full_like(raw, MAX_SCORE)
    scores: Ints = MAX_SCORE * (highest + int(counted_raw.min()) - raw) // highest
    return scores
