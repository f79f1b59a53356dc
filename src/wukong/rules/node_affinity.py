"""Node selectors and node affinity: the NodeName and NodeAffinity filters, and NodeAffinity as score.

Also tells spread.py which nodes a pod may go to. The affinity that a scheduler profile adds to every pod is part of the
filter and the score, not of that.
"""

from __future__ import annotations

from wukong.api.core import Node, NodeAffinity, Pod, PreferredSchedulingTerm
from wukong.api.profile import MAX_SCORE
from wukong.rules.selectors import (
    find_names_in_fields,
    is_empty_term,
    is_valid_term,
    node_selector_selects,
    require_equal,
    selects,
    term_matches,
)
from wukong.rules.verdict import Rejection, build_unresolvable

WRONG_NAME = "node(s) didn't match the requested node name"
NO_MATCH = "node(s) didn't match Pod's node affinity/selector"
NO_MATCH_ADDED = "node(s) didn't match scheduler-enforced node affinity"
NAMES_CONFLICT = "pod affinity terms conflict"


class UnreadablePreferenceError(Exception):
    """A preferred term kube-scheduler cannot read. The API server lets it through; every cycle that scores fails."""


def reject_other_name(pod: Pod, node: Node) -> Rejection | None:
    return None if pod.spec.node_name in ("", node.metadata.name) else build_unresolvable(WRONG_NAME)


def find_named_nodes(pod: Pod) -> set[str] | None:
    """The only nodes looked at, if every required term names nodes in its fields. Empty: the names contradict."""
    affinity = _node_affinity_of(pod)
    if affinity is None or affinity.required is None or not affinity.required.node_selector_terms:
        return None
    return find_names_in_fields(affinity.required.node_selector_terms)


def reject(pod: Pod, node: Node, added: NodeAffinity | None) -> Rejection | None:
    if added is not None and not _allows(added, node):
        return build_unresolvable(NO_MATCH_ADDED)
    return None if allows_node(pod, node) else build_unresolvable(NO_MATCH)


def allows_node(pod: Pod, node: Node) -> bool:
    """Whether the pod's nodeSelector and required node affinity both accept the node."""
    if not selects(require_equal(pod.spec.node_selector), node.metadata.labels):
        return False
    affinity = _node_affinity_of(pod)
    return affinity is None or _allows(affinity, node)


def score(pod: Pod, nodes: list[Node], added: NodeAffinity | None) -> dict[str, int] | None:
    """The weights of the preferred terms a node matches, scaled so that the best has 100. None: nothing preferred."""
    affinity = _node_affinity_of(pod)
    own = affinity.preferred if affinity is not None else []
    _check_preferences(own)
    terms = [*own, *(added.preferred if added is not None else [])]
    if not terms:
        return None
    weights = {node.metadata.name: _sum_weights(terms, node) for node in nodes}
    most = max(weights.values(), default=0)
    return {name: MAX_SCORE * weight // most if most else 0 for name, weight in weights.items()}


def _allows(affinity: NodeAffinity, node: Node) -> bool:
    required = affinity.required
    return required is None or node_selector_selects(required, node.metadata.labels, node.metadata.name)


def _sum_weights(terms: list[PreferredSchedulingTerm], node: Node) -> int:
    labels, name = node.metadata.labels, node.metadata.name
    return sum(term.weight for term in terms if term_matches(term.preference, labels, name))


def _check_preferences(terms: list[PreferredSchedulingTerm]) -> None:
    for index, term in enumerate(terms):
        if term.weight and not is_empty_term(term.preference) and not is_valid_term(term.preference):
            place = f"preferredDuringSchedulingIgnoredDuringExecution[{index}].preference"
            raise UnreadablePreferenceError(f"{place} has a requirement that cannot be read")


def _node_affinity_of(pod: Pod) -> NodeAffinity | None:
    return pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
