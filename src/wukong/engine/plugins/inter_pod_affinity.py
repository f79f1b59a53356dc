"""InterPodAffinity: pods that must, must not, or would rather be placed near others; rules of placed pods count too.

Every rule becomes a counter over its topology key (domain_counter.py): how many placed pods of a domain it is about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from wukong.api.core import PodAffinity, PodAffinityTerm
from wukong.engine.arrays import ALL, Index, Ints, Mask, Rows
from wukong.engine.domain_counter import DomainCounter
from wukong.engine.plugin import (
    FilterPart,
    Load,
    Plugin,
    Reason,
    Scope,
    ScorePart,
    between_lowest_and_highest,
    count_nodes,
)
from wukong.engine.refusal_detail import RefusalDetail, describe_pod_term, describe_selector, find_barring_pods
from wukong.engine.snapshot import Snapshot
from wukong.engine.template import Template
from wukong.engine.view import View
from wukong.semantics.pod_affinity import Term
from wukong.semantics.selectors import EVERYTHING, selects

AFFINITY = Reason("node(s) didn't match pod affinity rules")
ANTI_AFFINITY = Reason("node(s) didn't match pod anti-affinity rules", is_final=False)
EXISTING = Reason("node(s) didn't satisfy existing pods anti-affinity rules", is_final=False)
WeighByKey = Callable[[str, Template], int]
_FEW = 4  # up to so many changed nodes are judged one by one


class InterPodAffinity(Plugin):
    name = "InterPodAffinity"

    def filter(self, view: View) -> FilterPart:
        return InterPodFilter(view)

    def score(self, view: View) -> ScorePart | None:
        template = view.template
        has_own = bool(template.preferred_affinity_terms or template.preferred_anti_affinity_terms)
        if view.profile.ignore_preferred_terms_of_existing_pods and not has_own:
            return None
        return InterPodScore(view)


class OwnTerm:
    """A term of the pod being placed: its namespace selector is resolved to names beforehand."""

    def __init__(self, term: Term, view: View) -> None:
        self.selector, self.topology_key, self.weight = term.selector, term.topology_key, term.weight
        selector = term.namespace_selector
        selected = {name for name, labels in view.snapshot.facts.namespaces.items() if selects(selector, labels)}
        self.namespaces = term.namespaces | selected
        # Up to 1.36 the resolved selector is still asked, about a namespace without labels (see api/versions.py).
        sees_none = view.profile.version.own_namespace_selector_sees_no_labels and selects(selector, {})
        self.is_anywhere = selector == EVERYTHING or sees_none

    def selects(self, template: Template) -> bool:
        in_namespace = self.is_anywhere or template.namespace in self.namespaces
        return in_namespace and selects(self.selector, template.labels)


class InterPodFilter(FilterPart):
    """Required rules, both ways: the pod's own, and those of placed pods that forbid it."""

    scope = Scope.CLUSTER

    def __init__(self, view: View) -> None:
        template = view.template
        labels = view.snapshot.facts.labels_of(template.namespace)
        self.affinity_terms = [OwnTerm(term, view) for term in template.affinity_terms]
        self.anti_affinity_terms = [OwnTerm(term, view) for term in template.anti_affinity_terms]
        self.is_first_allowed = bool(self.affinity_terms) and all(
            term.selects(template) for term in self.affinity_terms
        )

        def count_near(key: str, placed_template: Template) -> int:
            if not all(term.selects(placed_template) for term in self.affinity_terms):
                return 0
            return sum(term.topology_key == key for term in self.affinity_terms)

        def count_avoided(key: str, placed_template: Template) -> int:
            return sum(term.topology_key == key and term.selects(placed_template) for term in self.anti_affinity_terms)

        def count_avoiding(key: str, placed_template: Template) -> int:
            return sum(
                term.topology_key == key and term.selects(template.namespace, template.labels, labels)
                for term in placed_template.anti_affinity_terms
            )

        self.view = view
        self.near = {term.topology_key: self._register(term.topology_key, count_near) for term in self.affinity_terms}
        self.avoided = {
            term.topology_key: self._register(term.topology_key, count_avoided) for term in self.anti_affinity_terms
        }
        self._count_avoiding = count_avoiding
        self.avoiding: dict[str, DomainCounter] = {}
        self._add_avoiding_counters()

    def _register(self, key: str, weigh_by_key: WeighByKey) -> DomainCounter:
        def weigh(placed_template: Template) -> tuple[int, int]:
            weight = weigh_by_key(key, placed_template)
            return weight, weight

        snapshot = self.view.snapshot
        return snapshot.register_counter(DomainCounter(snapshot.column(key), weigh))

    def _add_avoiding_counters(self) -> bool:
        """Count placed pods whose anti-affinity forbids ours, one counter per topology key that may be used."""
        keys = self.view.snapshot.anti_affinity_keys
        self._known_keys = len(keys)
        own = (term.topology_key for term in self.view.template.anti_affinity_terms)  # once placed, ours counts too
        new_keys = [key for key in dict.fromkeys((*keys, *own)) if key not in self.avoiding]
        self.avoiding |= {key: self._register(key, self._count_avoiding) for key in new_keys}
        return bool(new_keys)

    def refresh(self) -> Index | slice | None:
        if len(self.view.snapshot.anti_affinity_keys) != self._known_keys and self._add_avoiding_counters():
            return ALL
        counters = [*self.near.values(), *self.avoided.values(), *self.avoiding.values()]
        changed = [counter for counter in counters if counter.changed_domains]
        if not changed:
            return None
        rows: set[int] = set()
        is_small = not any(
            counter.changed_domains for counter in self.near.values()
        )  # "nobody matches yet" concerns all nodes
        for counter in changed:
            is_small = is_small and counter.column.is_unique and len(counter.changed_domains) <= _FEW
            if is_small:
                rows.update(counter.column.first[domain] for domain in counter.changed_domains)
            counter.changed_domains.clear()
        return np.array(sorted(rows), dtype=np.intp) if is_small else ALL

    def failing(self, rows: Rows, load: Load) -> list[tuple[Reason, Mask]]:
        far = self._find_far(rows, load)
        failing = [] if far is None else [(AFFINITY, far)]
        for reason, counters in ((ANTI_AFFINITY, self.avoided), (EXISTING, self.avoiding)):
            masks = [_counts_at(counter, rows) > 0 for counter in counters.values() if counter.hits]
            if masks:
                mask = masks[0] if len(masks) == 1 else np.logical_or.reduce(masks)
                for _, earlier in failing:
                    mask = mask & ~earlier  # only the first of the three counts
                failing.append((reason, mask))
        return failing

    def _find_far(self, rows: Rows, load: Load) -> Mask | None:
        if not self.affinity_terms:
            return None
        lacks_label = np.zeros(count_nodes(rows, load), dtype=np.bool_)
        lacks_company = lacks_label.copy()
        for counter in self.near.values():
            lacks_label |= counter.column.ids[rows] < 0
            lacks_company |= _counts_at(counter, rows) <= 0
        is_first = self.is_first_allowed and not any(counter.hits for counter in self.near.values())
        return lacks_label if is_first else lacks_label | lacks_company

    def allows(self, row: int, snapshot: Snapshot) -> bool:
        if any(counter.count_at(row) > 0 for counter in (*self.avoided.values(), *self.avoiding.values())):
            return False
        if not self.affinity_terms:
            return True
        if any(counter.column.numbers[row] < 0 for counter in self.near.values()):
            return False
        is_first = self.is_first_allowed and not any(counter.hits for counter in self.near.values())
        return is_first or all(counter.count_at(row) > 0 for counter in self.near.values())

    def describe(self, rows: list[int]) -> dict[int, list[RefusalDetail]]:
        """As with reasons only the first counts: affinity, anti-affinity, that of others."""
        details: dict[int, list[RefusalDetail]] = {row: [] for row in rows}
        for describe in (self._describe_near, self._describe_avoided, self._describe_avoiding):
            describe({row: entries for row, entries in details.items() if not entries})
        return details

    def _describe_avoided(self, details: dict[int, list[RefusalDetail]]) -> None:
        placed_templates = self.view.snapshot.list_placed_templates()
        for number, term in enumerate(self.anti_affinity_terms):
            pod_term = self._list_required("pod_anti_affinity")[number]
            barring = [placed for placed in placed_templates if term.selects(placed)]
            self._describe_term(details, "podAntiAffinity", f"its podAntiAffinity[{number}]", pod_term, barring)

    def _describe_avoiding(self, details: dict[int, list[RefusalDetail]]) -> None:
        own, barring_by_term = self.view.template, dict[str, tuple[PodAffinityTerm, list[Template]]]()
        labels = self.view.snapshot.facts.labels_of(own.namespace)
        for placed in self.view.snapshot.list_placed_templates():
            rules = placed.affinity.pod_anti_affinity
            for pod_term, compiled in zip(rules.required if rules else [], placed.anti_affinity_terms, strict=True):
                if compiled.selects(own.namespace, own.labels, labels):
                    barring_by_term.setdefault(describe_pod_term(pod_term), (pod_term, []))[1].append(placed)
        for pod_term, barring in barring_by_term.values():
            self._describe_term(details, "podAntiAffinityOfOthers", "podAntiAffinity of others", pod_term, barring)

    def _describe_near(self, details: dict[int, list[RefusalDetail]]) -> None:
        is_first = self.is_first_allowed and not any(counter.hits for counter in self.near.values())
        for number, term in enumerate(self._list_required("pod_affinity")):
            counter, cause = self.near[term.topology_key], f"its podAffinity[{number}] ({describe_pod_term(term)})"
            for row, entries in details.items():
                is_unlabelled = counter.column.numbers[row] < 0
                if is_unlabelled or (not is_first and counter.count_at(row) <= 0):
                    value = "it has no such label" if is_unlabelled else "no such pod there"
                    domain = self.view.snapshot.rows[row].labels.get(term.topology_key)
                    fields = _list_term_fields(term)
                    entries.append(RefusalDetail("podAffinity", cause, fields, value=value, actual=domain))

    def _describe_term(
        self,
        details: dict[int, list[RefusalDetail]],
        kind: str,
        whose: str,
        term: PodAffinityTerm,
        barring: list[Template],
    ) -> None:
        column = self.view.snapshot.column(term.topology_key)
        pods = find_barring_pods(self.view.snapshot, column, barring)
        for row, entries in details.items():
            if (pod := pods.get(column.numbers[row])) is not None:
                cause = f"{whose} ({describe_pod_term(term)})"
                entries.append(RefusalDetail(kind, cause, _list_term_fields(term), pod=pod))

    def _list_required(self, side: str) -> list[PodAffinityTerm]:
        rules: PodAffinity | None = getattr(self.view.template.affinity, side)
        return rules.required if rules else []

    def blocks_itself(self) -> bool | None:
        own = self.view.template
        if any(counter.weigh(own)[1] for counter in self.near.values()):
            return None
        own_counters = [
            counter for counter in (*self.avoided.values(), *self.avoiding.values()) if counter.weigh(own)[1]
        ]
        # Each node a domain of its own, and none without the label: only then does a pod block just its node.
        if any(not counter.column.is_unique or (counter.column.ids < 0).any() for counter in own_counters):
            return None
        return bool(own_counters)


class InterPodScore(ScorePart):
    """Preferred rules both ways, and required affinity of placed pods, summed over all topologies."""

    scope = Scope.CLUSTER
    normalise = staticmethod(between_lowest_and_highest)

    def __init__(self, view: View) -> None:
        self.view = view
        self.labels = view.snapshot.facts.labels_of(view.template.namespace)
        self.own = [
            *((OwnTerm(term, view), 1) for term in view.template.preferred_affinity_terms),
            *((OwnTerm(term, view), -1) for term in view.template.preferred_anti_affinity_terms),
        ]
        self.counters: dict[str, DomainCounter] = {}
        for term, _ in self.own:
            self._add_counter(term.topology_key)
        for required in view.template.affinity_terms:  # once placed, ours draws others
            self._add_counter(required.topology_key)
        self._known_keys = 0
        self._add_placed_counters()

    def _add_counter(self, key: str) -> None:
        if key in self.counters:
            return

        own = [(term, sign * term.weight) for term, sign in self.own if term.topology_key == key]

        def weigh(placed_template: Template) -> tuple[int, int]:
            if not own and not placed_template.has_terms:  # of most pods there is nothing to ask
                return 0, 0
            weights = [weight for term, weight in own if term.selects(placed_template)]
            if placed_template.has_terms:
                weights += self._list_weights_of(placed_template, key)
            return sum(weights), len(weights)

        snapshot = self.view.snapshot
        self.counters[key] = snapshot.register_counter(DomainCounter(snapshot.column(key), weigh))

    def _add_placed_counters(self) -> None:
        keys = self.view.snapshot.preference_keys
        if len(keys) != self._known_keys:
            self._known_keys = len(keys)
            for key in keys:
                self._add_counter(key)

    def _list_weights_of(self, placed_template: Template, key: str) -> Iterator[int]:
        """The weights of every rule of a placed pod about ours, in this topology."""
        template, hard_weight = self.view.template, self.view.profile.hard_pod_affinity_weight
        if hard_weight:
            for entry in placed_template.affinity_terms:
                if entry.topology_key == key and entry.selects(template.namespace, template.labels, self.labels):
                    yield hard_weight
        for entry in placed_template.preferred_affinity_terms:
            if entry.topology_key == key and entry.selects(template.namespace, template.labels, self.labels):
                yield entry.weight
        for entry in placed_template.preferred_anti_affinity_terms:
            if entry.topology_key == key and entry.selects(template.namespace, template.labels, self.labels):
                yield -entry.weight

    def is_skipped(self) -> bool:
        return not any(counter.hits for counter in self.counters.values())

    def refresh(self) -> bool:
        known = len(self.counters)
        self._add_placed_counters()
        changed = len(self.counters) != known
        for counter in self.counters.values():
            if counter.changed_domains:
                changed = True
                counter.changed_domains.clear()
        return changed

    def raw(self, rows: Rows, load: Load) -> Ints:
        total: Ints | None = None
        for counter in self.counters.values():
            if counter.hits:
                counts = _counts_at(counter, rows)
                total = counts if total is None else total + counts
        return np.zeros(count_nodes(rows, load), dtype=np.int64) if total is None else total

    def depends_on_own_pods(self) -> bool:
        return any(counter.weigh(self.view.template)[1] for counter in self.counters.values())


def _list_term_fields(term: PodAffinityTerm) -> tuple[tuple[str, object], ...]:
    return ("selector", describe_selector(term.label_selector)), ("topologyKey", term.topology_key)


def _counts_at(counter: DomainCounter, rows: Rows) -> Ints:
    """[node] the count in each node's domain."""
    return counter.counts[counter.column.ids[rows]]
