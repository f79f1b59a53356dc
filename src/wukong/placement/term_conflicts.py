"""Required rules that bar each other: terms about pods, and requirements on the labels of nodes. Pure.

Asked by vm/contradictions.py about Wukongs and by the warnings of a plan about workloads. Everything here is certain:
what is found cannot be satisfied by any cluster. What only might be so is not said.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from wukong.api.core import PodAffinityTerm
from wukong.semantics.label_syntax import parse_integer
from wukong.semantics.pod_affinity import Term, compile_pod_term
from wukong.semantics.selectors import Requirement, holds

# Who shares a domain of one of these shares a domain of those after it.
_WIDENING = ("kubernetes.io/hostname", "topology.kubernetes.io/zone", "topology.kubernetes.io/region")


def is_barred(near: PodAffinityTerm, apart: PodAffinityTerm, namespace: str) -> bool:
    """Whether every pod that satisfies the affinity term violates the anti-affinity term of the same owner."""
    near_term, apart_term = (compile_pod_term(term, namespace) for term in (near, apart))
    if near.match_label_keys or near.mismatch_label_keys or apart.match_label_keys or apart.mismatch_label_keys:
        return False  # those depend on the pod
    return is_as_narrow(near.topology_key, apart.topology_key) and is_subset(near_term, apart_term)


def is_as_narrow(key: str, other: str) -> bool:
    """Whether who shares a domain of `key` shares one of `other`, too."""
    if key == other:
        return True
    return key in _WIDENING and other in _WIDENING and _WIDENING.index(key) < _WIDENING.index(other)


def is_subset(term: Term, other: Term) -> bool:
    """Whether every pod that `term` selects is selected by `other`: it asks for all that the other asks for."""
    if term.selector is None or other.selector is None:
        return False
    is_in_namespaces = other.namespace_selector == () or (
        term.namespaces <= other.namespaces
        and (term.namespace_selector is None or term.namespace_selector == other.namespace_selector)
    )
    return is_in_namespaces and set(other.selector) <= set(term.selector)


def find_impossible_key(requirements: Iterable[Requirement]) -> str | None:
    """A label key of which no value, nor its absence, satisfies all requirements; None if there is none."""
    by_key: dict[str, list[Requirement]] = {}
    for requirement in requirements:
        by_key.setdefault(requirement[0], []).append(requirement)
    return next((key for key, entries in by_key.items() if not _is_possible(entries)), None)


def _is_possible(requirements: list[Requirement]) -> bool:
    """Whether some value, or the absence of the label, satisfies all of them."""
    return any(
        all(holds(operator, values, candidate) for _, operator, values in requirements)
        for candidate in _candidates(requirements)
    )


def _candidates(requirements: list[Requirement]) -> Iterator[str | None]:
    """If any value satisfies the requirements on one key, then one of these does."""
    known = {value for _, _, values in requirements for value in values}
    yield None
    yield f"other-{max(known, key=len, default='')[:40]}"  # longer than any of them, or as long as 40 characters allow
    yield from sorted(known)
    for _, operator, values in requirements:
        for bound in map(parse_integer, values):
            if bound is not None and operator in ("Gt", "Lt"):  # each of the others may rule out one more number
                step = 1 if operator == "Gt" else -1
                yield from (str(max(bound + step * distance, 0)) for distance in range(1, len(known) + 2))
