"""How much a policy may hold. Anybody who may create one makes us read it, for every pod, on every node.

The CustomResourceDefinitions have the same numbers (tests/placement holds them to that), but for what they cannot see:
the configs of rules. compile.py finds what is beyond a limit; such a policy is not accepted, and selects no pod.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from wukong.api.meta import LabelSelector
from wukong.api.placement import PlacementPolicySpec, Scheduling

MOST_BYTES = 64 * 1024  # of a spec as JSON
MOST_RULES = 32
MOST_FLOORS = 16  # requiredResources
MOST_LABELS = 32  # matchLabels of a selector
MOST_EXPRESSIONS = 32
MOST_VALUES = 64  # of an expression


def find_size_problems(spec: PlacementPolicySpec) -> Iterator[str]:
    """What is so large that nobody should look at the rest of the policy."""
    try:
        size = len(msgspec.json.encode(spec))
    except Exception as error:  # nested too deeply, or numbers that JSON does not have
        yield f"$.spec: cannot be written as JSON: {type(error).__name__}: {error}. Make it simpler."
        return
    if size > MOST_BYTES:
        yield f"$.spec: expected at most {MOST_BYTES:,} bytes, got {size:,}. Split it, or make it shorter."
    yield from find_scheduling_size_problems(spec.scheduling)


def find_scheduling_size_problems(scheduling: Scheduling | None) -> Iterator[str]:
    """The same for the scheduling block of a policy or of a Wukong."""
    if scheduling is None:
        return
    policy, affinity = scheduling.scheduling_policy, scheduling.resource_affinity
    if policy is not None:
        yield from _find_count_problems("$.spec.scheduling.schedulingPolicy.rules", MOST_RULES, len(policy.rules))
    if affinity is not None:
        path = "$.spec.scheduling.resourceAffinity.requiredResources"
        yield from _find_count_problems(path, MOST_FLOORS, len(affinity.required_resources))


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
