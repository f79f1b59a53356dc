"""InterPodAffinity as filter: terms of the newcomer towards placed pods, and of placed pods towards the newcomer.

Reads the terms for the score too (inter_pod_score.py). InterPodFilter counts once per decision; preemption then
removes and adds pods while it tries out victims.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from wukong.api.core import Node, Pod, PodAffinity, PodAffinityTerm
from wukong.api.profile import Profile
from wukong.rules.cluster import Cluster
from wukong.rules.labels import Labels
from wukong.rules.selectors import Requirements, requirements, selects
from wukong.rules.verdict import Rejection, build_rejection, build_unresolvable

NO_AFFINITY = "node(s) didn't match pod affinity rules"
ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
EXISTING_ANTI_AFFINITY = "node(s) didn't satisfy existing pods anti-affinity rules"

Pair = tuple[str, str]  # topology key and value: one domain


class Term(NamedTuple):
    """A pod affinity term with its selectors read."""

    topology_key: str
    namespaces: frozenset[str]
    namespace_selector: Requirements
    selector: Requirements
    weight: int = 0

    def matches(self, pod: Pod, namespace_labels: Labels) -> bool:
        in_namespace = pod.metadata.namespace in self.namespaces or selects(self.namespace_selector, namespace_labels)
        return in_namespace and selects(self.selector, pod.metadata.labels)


class InterPodFilter:
    """How many pods each domain has that the newcomer's terms, or whose own terms, speak of."""

    def __init__(self, cluster: Cluster, pod: Pod, profile: Profile) -> None:
        self.pod = pod
        self.namespace_labels = cluster.namespaces.get(pod.metadata.namespace, {})
        self.affinity = read_own_terms(cluster, pod, _affinity_terms_of(pod), profile)
        self.anti_affinity = read_own_terms(cluster, pod, _anti_affinity_terms_of(pod), profile)
        self.affinity_counts: Counter[Pair] = Counter()
        self.anti_affinity_counts: Counter[Pair] = Counter()
        self.existing_counts: Counter[Pair] = Counter()  # where placed pods do not want the newcomer
        for info in cluster.nodes.values():
            for placed_pod in info.pods:
                self._update(placed_pod, info.node, +1)

    def reject(self, node: Node) -> Rejection | None:
        if not self._has_affinity_match(node):
            return build_unresolvable(NO_AFFINITY)
        if any(self.anti_affinity_counts[pair] > 0 for pair in _pairs_of(self.anti_affinity, node)):
            return build_rejection(ANTI_AFFINITY)
        if any(self.existing_counts[pair] > 0 for pair in node.metadata.labels.items()):
            return build_rejection(EXISTING_ANTI_AFFINITY)
        return None

    def remove_pod(self, placed_pod: Pod, node: Node) -> None:
        self._update(placed_pod, node, -1)

    def add_pod(self, placed_pod: Pod, node: Node) -> None:
        self._update(placed_pod, node, +1)

    def copy(self) -> InterPodFilter:
        copy = InterPodFilter.__new__(InterPodFilter)
        copy.pod, copy.namespace_labels = self.pod, self.namespace_labels
        copy.affinity, copy.anti_affinity = self.affinity, self.anti_affinity
        copy.affinity_counts = Counter(self.affinity_counts)
        copy.anti_affinity_counts = Counter(self.anti_affinity_counts)
        copy.existing_counts = Counter(self.existing_counts)
        return copy

    def _has_affinity_match(self, node: Node) -> bool:
        """Every term's domain has a pod that matches all terms. The first of a group that wants itself starts it."""
        pairs = _pairs_of(self.affinity, node)
        if len(pairs) < len(self.affinity):
            return False
        if all(self.affinity_counts[pair] > 0 for pair in pairs):
            return True
        return not any(self.affinity_counts.values()) and _match_all(self.affinity, self.pod)

    def _update(self, placed_pod: Pod, node: Node, change: int) -> None:
        if _match_all(self.affinity, placed_pod):
            for pair in _pairs_of(self.affinity, node):
                self.affinity_counts[pair] += change
        for pair in _pairs_of([term for term in self.anti_affinity if term.matches(placed_pod, {})], node):
            self.anti_affinity_counts[pair] += change
        their_terms = [read_placed_term(placed_pod, term) for term in _anti_affinity_terms_of(placed_pod)]
        for pair in _pairs_of([term for term in their_terms if term.matches(self.pod, self.namespace_labels)], node):
            self.existing_counts[pair] += change


def read_placed_term(pod: Pod, term: PodAffinityTerm, weight: int = 0) -> Term:
    """A term as it is written. Without namespaces and selector it means the pod's own namespace."""
    is_own_namespace = not term.namespaces and term.namespace_selector is None
    return Term(
        topology_key=term.topology_key,
        namespaces=frozenset([pod.metadata.namespace] if is_own_namespace else term.namespaces),
        namespace_selector=requirements(term.namespace_selector),
        selector=requirements(term.label_selector),
        weight=weight,
    )


def read_own_terms(cluster: Cluster, pod: Pod, terms: list[PodAffinityTerm], profile: Profile) -> list[Term]:
    return [resolve_own_term(cluster, read_placed_term(pod, term), profile) for term in terms]


def resolve_own_term(cluster: Cluster, term: Term, profile: Profile) -> Term:
    """A term of the newcomer: its namespaceSelector is resolved to names, then asked with no labels at all.

    Up to 1.36 the resolved selector stays behind by mistake, so one that accepts an empty label set (only NotIn and
    DoesNotExist) accepts every namespace. Followed where the version says so.
    """
    if not term.namespace_selector:
        return term  # absent: nothing to resolve; empty: every namespace, listed or not
    names = {name for name, labels in cluster.namespaces.items() if selects(term.namespace_selector, labels)}
    stays = profile.version.own_namespace_selector_sees_no_labels
    return term._replace(
        namespaces=term.namespaces | names, namespace_selector=term.namespace_selector if stays else None
    )


def _affinity_terms_of(pod: Pod) -> list[PodAffinityTerm]:
    return _required_terms_of(pod.spec.affinity.pod_affinity if pod.spec.affinity is not None else None)


def _anti_affinity_terms_of(pod: Pod) -> list[PodAffinityTerm]:
    return _required_terms_of(pod.spec.affinity.pod_anti_affinity if pod.spec.affinity is not None else None)


def _required_terms_of(affinity: PodAffinity | None) -> list[PodAffinityTerm]:
    return affinity.required if affinity is not None else []


def _pairs_of(terms: list[Term], node: Node) -> list[Pair]:
    """The node's domain for each term whose key it has."""
    labels = node.metadata.labels
    return [(term.topology_key, labels[term.topology_key]) for term in terms if term.topology_key in labels]


def _match_all(terms: list[Term], pod: Pod) -> bool:
    return bool(terms) and all(term.matches(pod, {}) for term in terms)
