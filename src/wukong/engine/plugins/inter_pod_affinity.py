"""InterPodAffinity: pods that must, must not, or would rather be placed near others; rules of placed pods count too.

Every rule becomes a counter over its topology key (see counter.py): how many placed pods in a domain it is about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from wukong.engine.arrays import ALL, Index, Ints, Mask, Rows
from wukong.engine.counter import Counter
from wukong.engine.plugin import (
    FilterPart,
    Load,
    Plugin,
    Reason,
    Scope,
    ScorePart,
    between_lowest_and_highest,
    width,
)
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
        return Required(view)

    def score(self, view: View) -> ScorePart | None:
        template = view.template
        has_own = bool(template.preferred_affinity_terms or template.preferred_anti_affinity_terms)
        if view.profile.ignore_preferred_terms_of_existing_pods and not has_own:
            return None
        return Preferred(view)


class OwnTerm:
    """A term of the pod being placed: its namespace selector is resolved to names beforehand."""

    def __init__(self, term: Term, view: View) -> None:
        self.selector, self.topology_key, self.weight = term.selector, term.topology_key, term.weight
        chosen = term.namespace_selector
        named = {name for name, labels in view.snapshot.facts.namespaces.items() if selects(chosen, labels)}
        self.namespaces = term.namespaces | named
        # Up to 1.36 the resolved selector is still asked, about a namespace without labels (see api/versions.py).
        sees_none = view.profile.version.own_namespace_selector_sees_no_labels and selects(chosen, {})
        self.is_anywhere = chosen == EVERYTHING or sees_none

    def selects(self, template: Template) -> bool:
        in_namespace = self.is_anywhere or template.namespace in self.namespaces
        return in_namespace and selects(self.selector, template.labels)


class Required(FilterPart):
    """Required rules, both ways: the pod's own, and those of placed pods that forbid it."""

    scope = Scope.CLUSTER

    def __init__(self, view: View) -> None:
        template = view.template
        labels = view.snapshot.facts.labels_of(template.namespace)
        self.together = [OwnTerm(term, view) for term in template.affinity_terms]
        self.apart = [OwnTerm(term, view) for term in template.anti_affinity_terms]
        self.is_first_allowed = bool(self.together) and all(term.selects(template) for term in self.together)

        def near(key: str, other: Template) -> int:
            if not all(term.selects(other) for term in self.together):
                return 0
            return sum(term.topology_key == key for term in self.together)

        def avoided(key: str, other: Template) -> int:
            return sum(term.topology_key == key and term.selects(other) for term in self.apart)

        def avoiding(key: str, other: Template) -> int:
            return sum(
                term.topology_key == key and term.selects(template.namespace, template.labels, labels)
                for term in other.anti_affinity_terms
            )

        self.view = view
        self.near = {term.topology_key: self._count(term.topology_key, near) for term in self.together}
        self.avoided = {term.topology_key: self._count(term.topology_key, avoided) for term in self.apart}
        self._avoiding = avoiding
        self.avoiding: dict[str, Counter] = {}
        self._watch_avoiding()

    def _count(self, key: str, weigh_by_key: WeighByKey) -> Counter:
        def weigh(other: Template) -> tuple[int, int]:
            weight = weigh_by_key(key, other)
            return weight, weight

        snapshot = self.view.snapshot
        return snapshot.count(Counter(snapshot.column(key), weigh))

    def _watch_avoiding(self) -> bool:
        """Count placed pods whose anti-affinity forbids ours, one counter per topology key that may be used."""
        keys = self.view.snapshot.anti_affinity_keys
        self._known_keys = len(keys)
        own = (term.topology_key for term in self.view.template.anti_affinity_terms)  # once placed, ours counts too
        fresh = [key for key in dict.fromkeys((*keys, *own)) if key not in self.avoiding]
        self.avoiding |= {key: self._count(key, self._avoiding) for key in fresh}
        return bool(fresh)

    def refresh(self) -> Index | slice | None:
        if len(self.view.snapshot.anti_affinity_keys) != self._known_keys and self._watch_avoiding():
            return ALL
        counters = [*self.near.values(), *self.avoided.values(), *self.avoiding.values()]
        touched = [counter for counter in counters if counter.touched]
        if not touched:
            return None
        rows: set[int] = set()
        is_small = not any(counter.touched for counter in self.near.values())  # "nobody matches yet" concerns all nodes
        for counter in touched:
            is_small = is_small and counter.column.is_unique and len(counter.touched) <= _FEW
            if is_small:
                rows.update(counter.column.first[domain] for domain in counter.touched)
            counter.touched.clear()
        return np.array(sorted(rows), dtype=np.intp) if is_small else ALL

    def failing(self, rows: Rows, load: Load) -> list[tuple[Reason, Mask]]:
        far = self._far(rows, load)
        failing = [] if far is None else [(AFFINITY, far)]
        for reason, counters in ((ANTI_AFFINITY, self.avoided), (EXISTING, self.avoiding)):
            masks = [_seen(counter, rows) > 0 for counter in counters.values() if counter.hits]
            if masks:
                mask = masks[0] if len(masks) == 1 else np.logical_or.reduce(masks)
                for _, earlier in failing:
                    mask = mask & ~earlier  # only the first of the three counts
                failing.append((reason, mask))
        return failing

    def _far(self, rows: Rows, load: Load) -> Mask | None:
        if not self.together:
            return None
        lacks_label = np.zeros(width(rows, load), dtype=np.bool_)
        lacks_company = lacks_label.copy()
        for counter in self.near.values():
            lacks_label |= counter.column.ids[rows] < 0
            lacks_company |= _seen(counter, rows) <= 0
        is_first = self.is_first_allowed and not any(counter.hits for counter in self.near.values())
        return lacks_label if is_first else lacks_label | lacks_company

    def allows(self, row: int, snapshot: Snapshot) -> bool:
        if any(counter.at(row) > 0 for counter in (*self.avoided.values(), *self.avoiding.values())):
            return False
        if not self.together:
            return True
        if any(counter.column.numbers[row] < 0 for counter in self.near.values()):
            return False
        is_first = self.is_first_allowed and not any(counter.hits for counter in self.near.values())
        return is_first or all(counter.at(row) > 0 for counter in self.near.values())

    def blocks_itself(self) -> bool | None:
        own = self.view.template
        if any(counter.weigh(own)[1] for counter in self.near.values()):
            return None
        fed = [counter for counter in (*self.avoided.values(), *self.avoiding.values()) if counter.weigh(own)[1]]
        # Each node a domain of its own, and none without the label: only then does a pod block just its node.
        if any(not counter.column.is_unique or (counter.column.ids < 0).any() for counter in fed):
            return None
        return bool(fed)


class Preferred(ScorePart):
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
        self.counters: dict[str, Counter] = {}
        for term, _ in self.own:
            self._watch(term.topology_key)
        for required in view.template.affinity_terms:  # once placed, ours draws others
            self._watch(required.topology_key)
        self._known_keys = 0
        self._watch_placed()

    def _watch(self, key: str) -> None:
        if key in self.counters:
            return

        def weigh(other: Template) -> tuple[int, int]:
            weights = [weight for topology_key, weight in self._weights(other) if topology_key == key]
            return sum(weights), len(weights)

        snapshot = self.view.snapshot
        self.counters[key] = snapshot.count(Counter(snapshot.column(key), weigh))

    def _watch_placed(self) -> None:
        keys = self.view.snapshot.preference_keys
        if len(keys) != self._known_keys:
            self._known_keys = len(keys)
            for key in keys:
                self._watch(key)

    def _weights(self, other: Template) -> Iterator[tuple[str, int]]:
        """Every rule between our pod and a placed one: its topology key and weight."""
        for term, sign in self.own:
            if term.selects(other):
                yield term.topology_key, sign * term.weight
        if not other.has_terms:
            return
        template, hard = self.view.template, self.view.profile.hard_pod_affinity_weight
        if hard:
            for entry in other.affinity_terms:
                if entry.selects(template.namespace, template.labels, self.labels):
                    yield entry.topology_key, hard
        for entry in other.preferred_affinity_terms:
            if entry.selects(template.namespace, template.labels, self.labels):
                yield entry.topology_key, entry.weight
        for entry in other.preferred_anti_affinity_terms:
            if entry.selects(template.namespace, template.labels, self.labels):
                yield entry.topology_key, -entry.weight

    def is_skipped(self) -> bool:
        return not any(counter.hits for counter in self.counters.values())

    def refresh(self) -> bool:
        known = len(self.counters)
        self._watch_placed()
        changed = len(self.counters) != known
        for counter in self.counters.values():
            if counter.touched:
                changed = True
                counter.touched.clear()
        return changed

    def raw(self, rows: Rows, load: Load) -> Ints:
        total: Ints | None = None
        for counter in self.counters.values():
            if counter.hits:
                seen = _seen(counter, rows)
                total = seen if total is None else total + seen
        return np.zeros(width(rows, load), dtype=np.int64) if total is None else total

    def depends_on_own_pods(self) -> bool:
        return any(True for _ in self._weights(self.view.template))


def _seen(counter: Counter, rows: Rows) -> Ints:
    """[node] the count in each node's domain."""
    return counter.counts[counter.column.ids[rows]]
