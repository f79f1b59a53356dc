"""Rules of one Wukong that bar each other, whatever the cluster is. Pure; for lint.py.

Everything here is certain: what is found cannot be satisfied by any cluster. What only might be so is not said.
"""

from __future__ import annotations

from collections.abc import Iterator

from wukong.api.core import PodAffinityTerm
from wukong.api.vm import VmScheduling, Wukong
from wukong.placement.term_conflicts import find_impossible_key, is_barred
from wukong.placement.vm.affinity import anti_affinity_of, template_labels_of
from wukong.placement.vm.finding import Finding
from wukong.semantics.pod_affinity import compile_pod_term
from wukong.semantics.selectors import compile_expressions, require_labels


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
            if not is_barred(near_term, apart_term, wukong.metadata.namespace):
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
