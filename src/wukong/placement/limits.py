"""How much a policy, or a Wukong's scheduling, may hold. Anybody who may create one makes us read it, for every pod, on
every node.

The CustomResourceDefinitions have the same numbers (tests/placement holds them to that), but for what they cannot see:
the configs of rules. compile.py finds what is beyond a limit; such a policy is not accepted, and selects no pod.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from wukong.api.meta import LabelSelector
from wukong.api.placement import PlacementPolicySpec, PolicyScheduling, Scheduling
from wukong.api.pod_affinity import MOST_CONSTRAINTS, MOST_TERMS, MOST_TOLERATIONS

MOST_BYTES = 64 * 1024  # of a spec as JSON
MOST_RULES = 32
MOST_FLOORS = 16  # requiredResources
MOST_LABELS = 32  # matchLabels of a selector
MOST_EXPRESSIONS = 32
MOST_VALUES = 64  # of an expression
MOST_NODE_TERMS = 64  # required node terms that a pod or VM gets: kube-scheduler tries every one of them on every node


def find_size_problems(spec: PlacementPolicySpec) -> Iterator[str]:
    """What is so large that nobody should look at the rest of the policy."""
    yield from _find_byte_problems(spec, "$.spec")
    if spec.scheduling is not None:
        yield from _find_scheduling_count_problems(spec.scheduling, "$.spec.scheduling")
        yield from _find_pod_rule_count_problems(spec.scheduling, "$.spec.scheduling")


def find_scheduling_size_problems(scheduling: Scheduling | None, path: str = "$.spec.scheduling") -> Iterator[str]:
    """The same of the scheduling block of a policy or of a Wukong: only resources and rules are looked at."""
    if scheduling is None:
        return
    block = Scheduling(resource_affinity=scheduling.resource_affinity, scheduling_policy=scheduling.scheduling_policy)
    yield from _find_byte_problems(block, path)
    yield from _find_scheduling_count_problems(block, path)


def _find_byte_problems(value: msgspec.Struct, path: str) -> Iterator[str]:
    try:
        size = len(msgspec.json.encode(value))
    except Exception as error:  # nested too deeply, or numbers that JSON does not have
        yield f"{path}: cannot be written as JSON: {type(error).__name__}: {error}. Make it simpler."
        return
    if size > MOST_BYTES:
        yield f"{path}: expected at most {MOST_BYTES:,} bytes, got {size:,}. Split it, or make it shorter."


def _find_scheduling_count_problems(scheduling: Scheduling, path: str) -> Iterator[str]:
    policy, affinity = scheduling.scheduling_policy, scheduling.resource_affinity
    if policy is not None:
        yield from _find_count_problems(f"{path}.schedulingPolicy.rules", MOST_RULES, len(policy.rules))
    if affinity is not None:
        place = f"{path}.resourceAffinity.requiredResources"
        yield from _find_count_problems(place, MOST_FLOORS, len(affinity.required_resources))


def _find_pod_rule_count_problems(scheduling: PolicyScheduling, path: str) -> Iterator[str]:
    affinities = {
        "podAffinity": scheduling.pod_affinity,
        "podAntiAffinity": scheduling.pod_anti_affinity,
        "nodeAffinity": scheduling.node_affinity,
    }
    for name, affinity in affinities.items():
        if affinity is not None:
            yield from _find_count_problems(f"{path}.{name}.required", MOST_TERMS, len(affinity.required))
            yield from _find_count_problems(f"{path}.{name}.preferred", MOST_TERMS, len(affinity.preferred))
    yield from _find_count_problems(f"{path}.tolerations", MOST_TOLERATIONS, len(scheduling.tolerations))
    constraints = scheduling.topology_spread_constraints
    yield from _find_count_problems(f"{path}.topologySpreadConstraints", MOST_CONSTRAINTS, len(constraints))


def find_selector_size_problems(selector: LabelSelector | None, path: str) -> Iterator[str]:
    if selector is None:
        return
    yield from _find_count_problems(f"{path}.matchLabels", MOST_LABELS, len(selector.match_labels))
    expressions = selector.match_expressions
    yield from _find_count_problems(f"{path}.matchExpressions", MOST_EXPRESSIONS, len(expressions))
    for index, expression in enumerate(expressions[:MOST_EXPRESSIONS]):
        place = f"{path}.matchExpressions[{index}].values"
        yield from _find_count_problems(place, MOST_VALUES, len(expression.values))


def _find_count_problems(path: str, most: int, count: int) -> Iterator[str]:
    if count > most:
        yield f"{path}: expected at most {most}, got {count:,}. Remove some."
