"""Terms of inter-pod affinity and anti-affinity, compiled: which pods does a term select?"""

from __future__ import annotations

from typing import NamedTuple

from wukong.api.core import PodAffinityTerm
from wukong.semantics.label_syntax import Labels
from wukong.semantics.selectors import Selector, compile_selector, selects


class Term(NamedTuple):
    """One inter-pod (anti-)affinity term, as its owner wrote it."""

    selector: Selector | None
    namespaces: frozenset[str]
    namespace_selector: Selector | None
    topology_key: str
    weight: int

    def selects(self, namespace: str, labels: Labels, namespace_labels: Labels) -> bool:
        """Whether it selects a pod with these labels, in this namespace with the namespace's labels."""
        in_namespace = namespace in self.namespaces or selects(self.namespace_selector, namespace_labels)
        return in_namespace and selects(self.selector, labels)


def compile_pod_term(term: PodAffinityTerm, owner_namespace: str, weight: int = 0) -> Term:
    """A term without namespaces and namespaceSelector selects in its owner's namespace only."""
    namespaces = frozenset(term.namespaces)
    if not namespaces and term.namespace_selector is None:
        namespaces = frozenset((owner_namespace,))
    return Term(
        compile_selector(term.label_selector),
        namespaces,
        compile_selector(term.namespace_selector),
        term.topology_key,
        weight,
    )
