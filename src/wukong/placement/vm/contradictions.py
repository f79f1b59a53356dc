"""Rules of one Wukong that bar each other, whatever the cluster is. Pure; for lint.py.

Everything here is certain: what is found cannot be satisfied by any cluster. What only might be so is not said.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from wukong.api.core import PodAffinityTerm
from wukong.api.vm import VmScheduling, Wukong
from wukong.placement.vm.affinity import HOSTNAME, anti_affinity_of, template_labels_of
from wukong.placement.vm.finding import Finding
from wukong.semantics.label_syntax import parse_integer
from wukong.semantics.pod_affinity import Term, compile_pod_term
from wukong.semantics.selectors import Requirement, compile_expressions, holds, require_labels

# Who shares a domain of one of these shares a domain of those after it.
_WIDENING = (HOSTNAME, "topology.kubernetes.io/zone", "topology.kubernetes.io/region")


def find_contradictions(wukong: Wukong) -> Iterator[Finding]:
    scheduling = wukong.spec.scheduling
    if scheduling is not None:
        yield from _find_pod_contradictions(wukong, scheduling)
        yield from _find_node_contradictions(wukong, scheduling)


def _find_pod_contradictions(wukong: Wukong, scheduling: VmScheduling) -> Iterator[Finding]:
    near = scheduling.pod_affinity.required if scheduling.pod_affinity is not None else []
    anti_affinity = anti_affinity_of(wukong)
    apart = anti_affinity.required if anti_affinity is not None else []
    is_explicit = scheduling.pod_anti_affinity is not None
    for index, near_term in enumerate(near):
        for other, apart_term in enumerate(apart):
            if not _is_barred(wukong, near_term, apart_term):
                continue
            source = f"podAntiAffinity.required[{other}]" if is_explicit else "what highAvailability.antiAffinity means"
            is_first_alone = _selects_itself(wukong, near_term)
            count = "only the first machine can be placed" if is_first_alone else "no machine can be placed"
            yield Finding(
                "warning" if is_first_alone and (wukong.spec.replicas or 1) == 1 else "error",
                wukong.key,
                f"$.spec.scheduling.podAffinity.required[{index}]",
                f"asks for a {near_term.topology_key} with the pods that {source} keeps it away from: {count}.",
                "Remove one of the two, or make one of them preferred.",
            )


def _is_barred(wukong: Wukong, near: PodAffinityTerm, apart: PodAffinityTerm) -> bool:
    """Whether every pod that satisfies the first term violates the second."""
    near_term, apart_term = (compile_pod_term(term, wukong.metadata.namespace) for term in (near, apart))
    if near.match_label_keys or near.mismatch_label_keys or apart.match_label_keys or apart.mismatch_label_keys:
        return False  # those depend on the pod
    return _is_as_narrow(near.topology_key, apart.topology_key) and _is_subset(near_term, apart_term)


def _is_as_narrow(key: str, other: str) -> bool:
    if key == other:
        return True
    return key in _WIDENING and other in _WIDENING and _WIDENING.index(key) < _WIDENING.index(other)


def _is_subset(term: Term, other: Term) -> bool:
    """Whether every pod that `term` selects is selected by `other`: it asks for all that the other asks for."""
    if term.selector is None or other.selector is None:
        return False
    is_in_namespaces = other.namespace_selector == () or (
        term.namespaces <= other.namespaces
        and (term.namespace_selector is None or term.namespace_selector == other.namespace_selector)
    )
    return is_in_namespaces and set(other.selector) <= set(term.selector)


def _selects_itself(wukong: Wukong, term: PodAffinityTerm) -> bool:
    """Whether the machine is one of the pods it wants to be near: then the first may be placed anywhere."""
    compiled = compile_pod_term(term, wukong.metadata.namespace)
    return compiled.selects(wukong.metadata.namespace, template_labels_of(wukong), {})


def _find_node_contradictions(wukong: Wukong, scheduling: VmScheduling) -> Iterator[Finding]:
    terms = scheduling.node_affinity.required if scheduling.node_affinity is not None else []
    selector = require_labels(scheduling.node_selector)
    conflicts: list[tuple[int, str]] = []
    for index, term in enumerate(terms):
        expressions = compile_expressions(term.match_expressions) or ()
        if (key := find_impossible_key((*selector, *expressions))) is not None:
            conflicts.append((index, key))
    for index, key in conflicts:
        is_by_selector = key in scheduling.node_selector
        what = f"no node has a label {key} as this and {'nodeSelector' if is_by_selector else 'it'} itself ask for"
        all_fail = len(conflicts) == len(terms)
        yield Finding(
            "error" if all_fail else "warning",
            wukong.key,
            f"$.spec.scheduling.nodeAffinity.required[{index}]",
            f"{what}: {'no machine can be placed' if all_fail else 'this alternative never holds'}.",
            f"Mend what is said of {key}, or remove it.",
        )


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
