"""What is wrong with the affinity of a policy or a Wukong, each with its path, what was expected, and the fix. Pure.

Called by policy_problems.py and by placement.vm.problems. The terms are Kubernetes' own, and judged as those of pods.
"""

from __future__ import annotations

from collections.abc import Iterator

from wukong.admission.affinity_validation import find_node_term_problems, find_pod_term_problems, find_weight_problems
from wukong.admission.problem_text import describe_problem
from wukong.api.pod_affinity import NodeAffinitySpec, PodAffinitySpec


def find_pod_affinity_problems(rules: PodAffinitySpec | None, path: str) -> Iterator[str]:
    """Of podAffinity or podAntiAffinity."""
    if rules is None:
        return
    for index, term in enumerate(rules.required):
        yield from find_pod_term_problems(term, f"{path}.required[{index}]")
    for index, weighted in enumerate(rules.preferred):
        yield from find_weight_problems(weighted.weight, f"{path}.preferred[{index}]")
        yield from find_pod_term_problems(weighted.pod_affinity_term, f"{path}.preferred[{index}].podAffinityTerm")


def find_node_affinity_problems(rules: NodeAffinitySpec | None, path: str) -> Iterator[str]:
    """Of nodeAffinity."""
    if rules is None:
        return
    terms = [(f"{path}.required[{index}]", term) for index, term in enumerate(rules.required)]
    for index, weighted in enumerate(rules.preferred):
        yield from find_weight_problems(weighted.weight, f"{path}.preferred[{index}]")
        terms.append((f"{path}.preferred[{index}].preference", weighted.preference))
    for place, term in terms:
        yield from find_node_term_problems(term, place)
        if not term.match_expressions and not term.match_fields:
            yield describe_problem(
                place, "at least one of matchExpressions or matchFields", None, "A term without any matches no node."
            )
